// codband doctor: whether a data directory is sound, and its repair.
#include <fmt/format.h>

#include <memory>

#include "codband/cli/command.h"
#include "codband/cli/findings_text.h"
#include "codband/engine/repair.h"
#include "codband/server/admin/findings.h"

namespace codband::cli {
namespace {

constexpr std::string_view kDoctorFooter = R"(
Reads everything and changes nothing; a server may be running on the directory. Checks that the store
opens, that all checksums match, that every record can be read, and that the models add up to their
users.

With --repair: tells what is damaged and what a repair would drop; with --yes too, repairs it: what
can be read is copied into a new store, and the damaged one is kept beside it as rocksdb.damaged. No
server may be running, and there must be room for a second copy of the data.

Exit code: 0 sound, or repaired; 1 not sound; 2 no data directory.

Examples:
  codband doctor --data /var/lib/codband
  codband doctor --data /var/lib/codband --repair
  codband doctor --data /var/lib/codband --repair --yes)";

struct DoctorFlags {
  std::string data;
  bool repair = false;
  bool yes = false;
};

Status RunRepair(const DoctorFlags& flags) {
  const auto report = engine::RepairData(flags.data, flags.yes);
  if (!report.ok()) return report.status();
  for (const std::string& damage : report.value().damage) fmt::print("damaged: {}\n", damage);
  for (const std::string& drop : report.value().drops) {
    fmt::print("{}: {}\n", flags.yes ? "dropped" : "would drop", drop);
  }
  if (report.value().damage.empty() && report.value().drops.empty()) {
    fmt::print("nothing is damaged, nothing was changed\n");
    return {};
  }
  if (flags.yes) {
    fmt::print("repaired; the damaged files are in {}: delete them when all is well\n",
               report.value().kept_aside);
    return {};
  }
  return {StatusCode::kCheckFailed,
          fmt::format("{} is damaged and was not changed; add --yes to repair it, which drops what "
                      "is listed, or restore a backup",
                      flags.data)};
}

Status RunDoctor(const DoctorFlags& flags) {
  if (flags.yes && !flags.repair) {
    return Status::InvalidArgument("--yes: is for --repair, which tells what it would drop");
  }
  if (flags.repair) return RunRepair(flags);
  const auto findings = server::ExamineData(flags.data);
  if (!findings.ok()) return findings.status();
  fmt::print("{}", FindingsText(findings.value()));
  return server::CheckSound(flags.data, findings.value());
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<DoctorFlags>();
  const Command command(app, "doctor", "Check whether a data directory is sound", kDoctorFooter);
  command.Option("--data", flags->data, "DIR", "The data directory, or a backup",
                 Command::kRequired);
  command.Switch("--repair", flags->repair, "Tell what a repair would drop; nothing is changed");
  command.Switch("--yes", flags->yes, "With --repair: repair it, and drop that");
  command.Run(status, [flags] { return RunDoctor(*flags); });
}

}  // namespace codband::cli
