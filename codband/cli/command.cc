#include "codband/cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace codband::cli {

namespace {

std::string Quoted(const std::string& text) {
  const bool plain = text.find_first_of(" '\"\\$&|;<>()*?[]#~`!{}\n") == text.npos;
  return plain && !text.empty() ? text : "'" + text + "'";
}

}  // namespace

Command::Command(CLI::App& app, const char* name, const char* help, std::string_view footer)
    : command_(app.add_subcommand(name, help)) {
  command_->footer(std::string(footer));
}

void Command::Option(const char* name, std::string& target, const char* value, const char* help,
                     Need need) const {
  command_->add_option(name, target, help)->type_name(value)->required(need == kRequired);
}

void Command::List(const char* name, std::vector<std::string>& target, const char* value,
                   const char* help) const {
  command_->add_option(name, target, help)->type_name(value)->required();
}

void Command::Repeated(const char* name, std::vector<std::string>& target, const char* value,
                       const char* help) const {
  command_->add_option(name, target, help)->type_name(value)->expected(1)->take_all();
}

void Command::Switch(const char* name, bool& target, const char* help) const {
  command_->add_flag(name, target, help);
}

void Command::Run(Status& status, std::function<Status()> run) const {
  command_->callback([&status, run = std::move(run)] { status = run(); });
}

bool Command::Given(const char* name) const { return command_->count(name) > 0; }

std::string Command::Typed(std::string_view without) const {
  std::string text = "codband " + command_->get_name();
  for (const CLI::Option* option : command_->get_options()) {
    if (option->count() == 0 || option->get_name() == without) continue;
    text += " " + option->get_name();
    if (option->get_expected_max() == 0) continue;
    for (const std::string& value : option->results()) text += " " + Quoted(value);
  }
  return text;
}

Result<std::vector<std::size_t>> SelectNames(std::string_view flag, std::string_view list,
                                             std::span<const std::string> names) {
  std::vector<std::size_t> selected;
  if (list.empty()) {
    selected.resize(names.size());
    std::iota(selected.begin(), selected.end(), 0);
  }
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    list = comma == list.npos ? std::string_view{} : list.substr(comma + 1);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return Status::InvalidArgument(
          fmt::format("{}: '{}' is unknown; there are {}", flag, name, fmt::join(names, ", ")));
    }
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (std::ranges::count(selected, index) == 0) selected.push_back(index);
  }
  return selected;
}

}  // namespace codband::cli
