#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codband/base/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace codband {

// Each subcommand adds itself to the program; its work runs when it was named on the command line,
// and leaves its outcome in `status`. Both outlive the parsing.
void AddSimulateCommand(CLI::App& app, Status& status);
void AddPaperCommand(CLI::App& app, Status& status);
void AddPoliciesCommand(CLI::App& app, Status& status);

// Flags are read as text and parsed here, so that every message names the flag, the value and what
// is allowed: "--users = 'many', expected a whole number from 1 to 10000000".
Result<std::size_t> ParseWhole(std::string_view flag, std::string_view text, std::size_t min,
                               std::size_t max);
Result<double> ParseReal(std::string_view flag, std::string_view text);

// The formats that results are printed in.
enum class OutputFormat { kTable, kJson, kCsv };
Result<OutputFormat> ParseFormat(std::string_view text);

}  // namespace codband
