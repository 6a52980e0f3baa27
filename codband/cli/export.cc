// codband export: what was learned, as JSON.
#include "codband/server/admin/export.h"

#include <cstdio>
#include <memory>

#include "codband/cli/command.h"

namespace codband::cli {
namespace {

struct ExportFlags {
  std::string data;
  std::string out;
};

constexpr std::string_view kExportFooter = R"(
One JSON object: "meta" says what it is, "models" has the parameter of every model in full precision,
"users" the model of each user, its probability, and the user's changes. Times are in milliseconds
since 1970. Models are ordered by id; the order of users is stable. Nothing is changed; a server may
be running on the directory.

Examples:
  codband export --data /var/lib/codband --out learned.json
  codband export --data /var/lib/codband | jq '.models[] | {id, users}')";

}  // namespace

void AddExportCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ExportFlags>();
  const Command command(app, "export", "Print what was learned as JSON", kExportFooter);
  command.Option("--data", flags->data, "DIR", "The data directory, or a backup",
                 Command::kRequired);
  command.Option("--out", flags->out, "FILE", "File to write (default: standard output)");
  command.Run(status, [flags] {
    return flags->out.empty() ? server::ExportTo(flags->data, stdout)
                              : server::ExportToFile(flags->data, flags->out);
  });
}

}  // namespace codband::cli
