#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codband/experiments/paper_report.h"
#include "codband/report/table.h"

namespace codband::experiments {

// A straight line through points by least squares.
struct LineFit {
  double intercept = 0;
  double slope = 0;
  double r_squared = 0;  // 1: all points on the line
};

// Preconditions: equal sizes, at least two different x.
LineFit FitLine(const std::vector<double>& x, const std::vector<double>& y);

// Regret on the scales on which the paper's bound is a straight line: against √T log T without
// changes (setting3), against the number of changes (rows that differ in their periods), against
// the number of tastes (rows that differ in K). Only what the record's experiments allow.
struct TheoryCheck {
  std::vector<std::pair<std::string, std::string>> figures;  // file name, SVG
  report::ReportTable slopes;
};

TheoryCheck CheckTheory(const PaperRecord& record);

}  // namespace codband::experiments
