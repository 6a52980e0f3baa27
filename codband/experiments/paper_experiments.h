#pragma once

#include <map>
#include <string>
#include <vector>

#include "codband/sim/synthetic.h"

namespace codband::experiments {

// One experiment of the paper's synthetic section, with the numbers it published.
struct PaperExperiment {
  std::string name;        // "row1", "setting1"
  std::string title = {};  // for people
  sim::SyntheticOptions environment;
  std::map<std::string, double> published = {};  // accumulated regret by policy; empty for figures
};

// The eight rows of the table (row1 is also Figure 2 (b)) and the two other settings of Figure 2.
// `quick`: two fifths of the users, a third of the rounds, periods a third as long.
std::vector<PaperExperiment> PaperExperiments(bool quick);

// The policies of the section in the order of its table, then ours.
std::vector<std::string> PaperPolicies();

// The policy with the parameters that the paper used in this experiment: some differ in setting 1.
// A spec that has parameters of its own is left as it is.
std::string WithPaperSettings(const std::string& policy, const PaperExperiment& experiment);

}  // namespace codband::experiments
