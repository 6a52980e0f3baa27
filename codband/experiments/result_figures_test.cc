#include "codband/experiments/result_figures.h"

#include <gtest/gtest.h>

namespace codband::experiments {
namespace {

sim::PolicyResults Results(const std::string& spec, std::size_t seeds) {
  sim::PolicyResults results{.spec = spec, .runs = {}};
  for (std::size_t s = 0; s < seeds; ++s) {
    results.runs.emplace_back().regret = {1.0 + static_cast<double>(s), 10, 20};
  }
  return results;
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

std::string Chart(const std::vector<sim::PolicyResults>& policies) {
  const std::vector<std::size_t> rounds = {10, 20, 30};
  return RegretChart("Regret", rounds, policies, report::Scale::kLinear);
}

TEST(ResultFiguresTest, ChartNamesEveryPolicyAndItsAxes) {
  const std::string svg = Chart({Results("linucb", 1), Results("codband:paper", 1)});
  for (const char* text : {"linucb", "codband:paper", "Regret", "rounds"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST(ResultFiguresTest, OnlyYardsticksAreDashed) {
  const std::size_t plain = Count(Chart({Results("linucb", 1)}), "cb-dashed");
  EXPECT_GT(Count(Chart({Results("oracle-greedy", 1)}), "cb-dashed"), plain);
}

TEST(ResultFiguresTest, TheCaptionTellsOfYardsticksOnlyIfThereAreAny) {
  EXPECT_EQ(YardstickNote(std::vector<std::string>{"codband", "random"}), "");
  EXPECT_NE(YardstickNote(std::vector<std::string>{"codband", "oracle-greedy"}), "");
}

TEST(ResultFiguresTest, OneSeedIsNoRange) {
  EXPECT_EQ(SeedsText(7, 1), "7");
  EXPECT_EQ(SeedsText(1, 5), "1 to 5");
}

TEST(ResultFiguresTest, APolicyHasOneColourWhateverElseIsShown) {
  for (const std::string policy : {"codband", "linucb", "dlinucb", "codband:paper"}) {
    const std::string line = "cb-c" + std::to_string(PolicyColour(policy) % 7);
    const std::string alone = Chart({Results(policy, 1)});
    const std::string beside = Chart({Results("club", 1), Results("adts", 1), Results(policy, 1)});
    EXPECT_GT(Count(alone, "\"cb-line " + line), 0U) << policy;
    EXPECT_GT(Count(beside, "\"cb-line " + line), 0U) << policy;
  }
  EXPECT_NE(PolicyColour("codband"), PolicyColour("codband:paper"));
  EXPECT_NE(PolicyColour("codband:paper"), PolicyColour("codband:other=1"));
}

TEST(ResultFiguresTest, OnlyCodbandIsThickAndNamedAtItsEnd) {
  EXPECT_EQ(Count(Chart({Results("codband:paper", 1), Results("linucb", 1)}), "\"cb-end\""), 0U);
  EXPECT_EQ(Count(Chart({Results("codband", 1), Results("linucb", 1)}), "\"cb-end\""), 1U);
}

TEST(ResultFiguresTest, SeveralSeedsHaveABandAndOneSeedHasNone) {
  const auto bands = [](std::size_t seeds) {
    return Count(Chart({Results("linucb", seeds)}), "cb-band");
  };
  EXPECT_GT(bands(2), bands(1));
}

TEST(ResultFiguresTest, DiagnosisHasAColumnForEachCellAndDashesForWhatDoesNotApply) {
  sim::RunSummary summary;
  summary.changes = {.true_changes = 4,
                     .detected = 3,
                     .false_alarms = 2,
                     .stable_steps = 1000,
                     .delays = {5, 7, 9}};
  summary.clusters = {.same_both = 1, .same_model = 2, .same_truth = 4};
  summary.models = 12;
  const std::vector<std::string> detecting = DiagnosisCells("codband", summary);
  EXPECT_EQ(detecting.size(), DiagnosisColumns().size());
  EXPECT_EQ(detecting, (std::vector<std::string>{"3 of 4", "7", "2.00", "12", "0.50", "0.25"}));
  EXPECT_EQ(DiagnosisCells("linucb", sim::RunSummary{}),
            (std::vector<std::string>{"–", "–", "–", "0", "–", "–"}));
}

TEST(ResultFiguresTest, YardsticksAreThePoliciesThatKnowTheTruth) {
  EXPECT_TRUE(IsYardstick("oracle-greedy"));
  EXPECT_TRUE(IsYardstick("oracle-filter"));
  EXPECT_FALSE(IsYardstick("codband"));
  EXPECT_FALSE(IsYardstick("nosuch"));
}

}  // namespace
}  // namespace codband::experiments
