#include "codband/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "codband/base/clock.h"
#include "codband/base/text.h"

namespace codband::report {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kBarColumns = 20;

// 65 → "1:05", 3725 → "1:02:05".
std::string FormatDuration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "–";
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// Whole units, rounded down, so that the total is shown only once it is reached.
std::string FormatAmount(double amount) {
  return GroupThousands(fmt::format("{:.0f}", std::floor(amount + 1e-9)));
}

int TerminalColumns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string FormatProgress(const ProgressState& state, int columns) {
  const double done = std::isfinite(state.done) ? std::max(0.0, state.done) : 0.0;
  const std::string elapsed = FormatDuration(state.elapsed_s) + " elapsed";
  std::string line;
  const auto append = [&line, columns](const std::string& part) {
    const std::string with_gap = (line.empty() ? "" : "  ") + part;
    const bool fits = DisplayWidth(line) + DisplayWidth(with_gap) <= columns;
    if (fits) line += with_gap;
    return fits;
  };
  if (!(state.total > 0)) {
    append(FormatAmount(done) + " done") && append(elapsed);
  } else {
    const double fraction = std::min(1.0, done / state.total);
    const double left = fraction > 0 ? state.elapsed_s * (1 - fraction) / fraction : -1;
    const auto filled = static_cast<std::size_t>(fraction * kBarColumns + 1e-9);
    const std::string bar =
        "[" + std::string(filled, '#') + std::string(kBarColumns - filled, '-') + "]";
    append(fmt::format("{} {:3.0f}%", bar, std::floor(100 * fraction + 1e-9))) &&
        append(FormatAmount(std::min(done, state.total)) + "/" + FormatAmount(state.total)) &&
        append(elapsed + ", " + FormatDuration(left) + " left");
  }
  const int room = columns - DisplayWidth(line) - 2;
  if (!state.label.empty() && room >= 8) append(Truncate(OneLine(state.label), room));
  return line;
}

Progress::Progress(ProgressOptions options)
    : fd_(options.fd),
      enabled_(options.enabled.value_or(isatty(options.fd) == 1)),
      clock_(options.clock ? std::move(options.clock) : WallSeconds),
      start_s_(clock_()) {
  state_.total = options.total;
}

Progress::~Progress() { Finish(); }

void Progress::Advance(double work) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  state_.done += work;
  DrawIfDue();
}

void Progress::Set(double done) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  state_.done = done;
  DrawIfDue();
}

void Progress::SetLabel(std::string label) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  state_.label = std::move(label);
  DrawIfDue();
}

void Progress::Finish() {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  // Spaces rather than an escape sequence, which not every terminal knows.
  if (drawn_columns_ > 0) {
    Write("\r" + std::string(static_cast<std::size_t>(drawn_columns_), ' ') + "\r");
  }
}

void Progress::DrawIfDue() {
  if (finished_) return;
  const double now = clock_();
  if (drawn_s_ && now - *drawn_s_ < kRedrawSeconds) return;
  drawn_s_ = now;
  state_.elapsed_s = now - start_s_;
  // The last column stays free: some terminals wrap as soon as it is written.
  std::string line = FormatProgress(state_, TerminalColumns(fd_) - 1);
  const int width = DisplayWidth(line);
  line.append(static_cast<std::size_t>(std::max(0, drawn_columns_ - width)), ' ');
  drawn_columns_ = width;
  Write("\r" + line);
}

void Progress::Write(const std::string& text) {
  [[maybe_unused]] const ssize_t ignored = write(fd_, text.data(), text.size());
}

}  // namespace codband::report
