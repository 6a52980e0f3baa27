// codband doctor: whether a data directory is sound.
#include <fmt/format.h>

#include <memory>

#include "codband/cli/command.h"
#include "codband/cli/findings_text.h"
#include "codband/server/admin/findings.h"

namespace codband::cli {
namespace {

constexpr std::string_view kDoctorFooter = R"(
Reads everything and changes nothing; a server may be running on the directory. Checks that the store
opens, that all checksums match, that every record can be read, and that the models add up to their
users.

Exit code: 0 sound, 1 not sound, 2 no data directory.

Example:
  codband doctor --data /var/lib/codband)";

Status RunDoctor(const std::string& data) {
  const auto findings = server::ExamineData(data);
  if (!findings.ok()) return findings.status();
  fmt::print("{}", FindingsText(findings.value()));
  return server::CheckSound(data, findings.value());
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Status& status) {
  auto data = std::make_shared<std::string>();
  const Command command(app, "doctor", "Check whether a data directory is sound", kDoctorFooter);
  command.Option("--data", *data, "DIR", "The data directory, or a backup", Command::kRequired);
  command.Run(status, [data] { return RunDoctor(*data); });
}

}  // namespace codband::cli
