#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codband/experiments/paper_report.h"
#include "codband/report/table.h"

namespace codband::experiments {

// The least-squares line through points.
struct LineFit {
  double intercept = 0;
  double slope = 0;
  double r_squared = 0;  // 1: all points on the line
};

// Preconditions: equal sizes, at least two different x.
LineFit FitLine(const std::vector<double>& x, const std::vector<double>& y);

// Regret on the scales on which the paper's bound is linear: against √T log T without changes
// (setting3), against the number of changes (rows that differ in their periods), against the number
// of tastes (rows that differ in K). Scales for which the record lacks experiments are left out.
struct TheoryCheck {
  std::vector<std::pair<std::string, std::string>> figures;  // file name, SVG
  report::ReportTable slopes;
};

TheoryCheck CheckTheory(const PaperRecord& record);

}  // namespace codband::experiments
