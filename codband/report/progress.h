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
// The time left assumes a constant rate; "–" while nothing is done. Parts that do not fit are
// dropped, the label first. Control characters are removed.
std::string FormatProgress(const ProgressState& state, int columns);

struct ProgressOptions {
  double total = 1;                    // in any unit; 0 or less: unknown
  int fd = 2;                          // standard error
  std::optional<bool> enabled = {};    // without a value: enabled if fd is a terminal
  std::function<double()> clock = {};  // seconds; without a function: WallSeconds
};

// A progress bar on one line of a terminal, redrawn at most ten times a second. Writes nothing if
// it is not enabled. Thread-safe: workers call Advance as they finish pieces. Write errors are
// ignored: the work must not fail because of its progress bar.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // Finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Adds finished work, which may be a fraction of a unit. More than the total is shown as 100%.
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
