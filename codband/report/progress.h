#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace codband::report {

struct ProgressState {
  double done = 0;
  double total = 0;
  double elapsed_s = 0;
  std::string label = {};
};

// One line without a line break, at most `columns` wide:
//   [########------------]  40%  400/1,000  1:05 elapsed, 1:38 left  linucb
// The time left assumes that the remaining work goes as fast as the work so far; "–" while nothing
// is done. Parts that do not fit are left out, the label first. Control characters are removed.
std::string FormatProgress(const ProgressState& state, int columns);

struct ProgressOptions {
  double total = 1;                    // in units of the caller's choice; not more than 0: unknown
  int fd = 2;                          // standard error
  std::optional<bool> enabled = {};    // without a value: enabled if fd is a terminal
  std::function<double()> clock = {};  // seconds; without a function: WallSeconds
};

// A progress bar on one line of a terminal, redrawn at most ten times a second. When it is not
// enabled it writes nothing at all. Thread-safe: workers call Advance as they finish pieces. Write
// errors are ignored: a lost bar must not stop the work.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // Finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Adds work; a part of a unit is fine. Work past the total is shown as 100%.
  void Advance(double work = 1);
  // Replaces the work done so far.
  void Set(double done);
  // What is being worked on; shown from the next redraw on.
  void SetLabel(std::string label);
  // Clears the line. Nothing is drawn after it. May be called more than once.
  void Finish();

 private:
  void DrawIfDue();  // holding mutex_
  void Write(const std::string& text);

  const int fd_;
  const bool enabled_;
  const std::function<double()> clock_;
  const double start_s_;
  std::mutex mutex_;
  ProgressState state_;
  std::optional<double> drawn_s_;
  int drawn_columns_ = 0;
  bool finished_ = false;
};

}  // namespace codband::report
