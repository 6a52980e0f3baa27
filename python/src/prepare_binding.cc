// prepare: public data sets as recorded events.
#include <pybind11/stl.h>

#include <algorithm>
#include <map>

#include "codband/experiments/prepare_output.h"
#include "codband/experiments/prepare_settings.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"

namespace codband::python {
namespace {

using PrepareTexts = std::map<std::string, std::string>;

// The settings by name as the command line has them, without its dashes.
Result<replay::PrepareOptions> ReadPrepareSettings(data::DataSet set,
                                                   const PrepareTexts& settings) {
  std::vector<std::optional<std::string>> texts;
  std::vector<std::string_view> names;
  for (const experiments::PrepareSetting& setting : experiments::PrepareSettings()) {
    names.push_back(std::string_view(setting.flag).substr(2));
    const auto found = settings.find(std::string(names.back()));
    texts.push_back(found == settings.end() ? std::nullopt : std::optional(found->second));
  }
  for (const auto& [name, value] : settings) {
    if (std::ranges::find(names, name) == names.end()) return UnknownSetting(name, names);
  }
  auto options = experiments::ParsePrepare(set, texts);
  if (!options.ok()) return WithoutDashes(options.status());
  return options;
}

// Writes the stream, all of it or nothing; its meta.json.
Result<std::string> PrepareStream(data::DataSet set, const std::string& in, const std::string& out,
                                  bool overwrite, const replay::PrepareOptions& options) {
  data::InputLog log(options.strict);
  auto directory = data::OutputDirectory::Create(out, overwrite, replay::PreparedFiles());
  if (!directory.ok()) return directory.status();
  const data::WorkHooks hooks{.stopped = [] {
    const py::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  }};
  auto stream = replay::Prepare(set, in, options, directory.value(), log, hooks);
  if (!stream.ok()) return stream.status();
  const std::string meta = experiments::MetaJson(set, options, stream.value(), log);
  auto file = directory.value().Open(std::string(replay::kMetaFile));
  if (!file.ok()) return file.status();
  file.value().Write(meta);
  CODBAND_RETURN_IF_ERROR(file.value().Close());
  CODBAND_RETURN_IF_ERROR(directory.value().Commit());
  return meta;
}

std::string Prepare(const std::string& name, const std::string& in, const std::string& out,
                    bool overwrite, bool strict, const PrepareTexts& settings) {
  const data::DataSet set = ValueOf(experiments::ParseDataSet(name));
  replay::PrepareOptions options = ValueOf(ReadPrepareSettings(set, settings));
  options.strict = strict;
  auto meta = [&] {
    const py::gil_scoped_release release;
    return PrepareStream(set, in, out, overwrite, options);
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // Ctrl-C
  if (!meta.ok()) ThrowIfError(WithoutDashes(meta.status()));
  return std::move(meta).value();
}

}  // namespace

void BindPrepare(py::module_& module) { module.def("prepare", &Prepare); }

}  // namespace codband::python
