#include "codband/policy/params.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codband/policy/registry.h"

namespace codband {
namespace {

const PolicyContext kContext{.dim = 4, .noise = 0.3};

std::string SpecErrorOf(std::string_view spec) {
  const auto policy = MakePolicy(spec, kContext);
  EXPECT_FALSE(policy.ok()) << spec;
  EXPECT_EQ(policy.status().code(), StatusCode::kInvalidArgument);
  return policy.status().message();
}

std::string SpecOf(std::string_view spec) {
  const auto policy = MakePolicy(spec, kContext);
  EXPECT_TRUE(policy.ok()) << policy.status().ToString();
  return policy.value()->spec();
}

TEST(ParamsTest, SpecListsEveryParameterAndReadsBackToItself) {
  EXPECT_EQ(SpecOf("linucb"), "linucb:alpha=0.6,lambda=0.1,items=no");
  EXPECT_EQ(SpecOf("linucb:lambda=2.5"), "linucb:alpha=0.6,lambda=2.5,items=no");
  for (const PolicyInfo* info : RegisteredPolicies()) {
    if (info->knows_truth) continue;
    const std::string spec = SpecOf(info->name);
    EXPECT_EQ(SpecOf(spec), spec);
  }
}

TEST(ParamsTest, PresetComesFirstAndCanBeOverridden) {
  EXPECT_NE(SpecOf("codband:paper").find("likelihood=joint"), std::string::npos);
  EXPECT_NE(SpecOf("codband:paper").find("lambda=0.1"), std::string::npos);
  EXPECT_NE(SpecOf("codband:paper,likelihood=product").find("likelihood=product"),
            std::string::npos);
  EXPECT_EQ(SpecOf("codband:paper,likelihood=product"), SpecOf("codband:paper-product"));
}

TEST(ParamsTest, DefaultsFollowTheContext) {
  EXPECT_NE(SpecOf("lints").find("sigma=0.3"), std::string::npos);
  EXPECT_NE(SpecOf("codband").find("lambda=4"), std::string::npos);
  EXPECT_NE(SpecOf("lints:sigma=0.7").find("sigma=0.7"), std::string::npos);
}

TEST(ParamsTest, ErrorsNameTheParameterTheValueAndWhatIsAllowed) {
  EXPECT_EQ(SpecErrorOf("linucb:alpha=-1"),
            "policy 'linucb': alpha = '-1', expected a number from 0 to 1000");
  EXPECT_EQ(SpecErrorOf("lints:sigma=0"),
            "policy 'lints': sigma = '0', expected a number from 1e-06 to 1000000");
  EXPECT_EQ(SpecErrorOf("linucb:alpha=nan"),
            "policy 'linucb': alpha = 'nan', expected a number from 0 to 1000");
  EXPECT_EQ(SpecErrorOf("codband:tau=2.5"),
            "policy 'codband': tau = '2.5', expected a whole number from 1 to 100000");
  EXPECT_EQ(SpecErrorOf("codband:likelihood=exact"),
            "policy 'codband': likelihood = 'exact', expected one of joint, product");
  EXPECT_EQ(SpecErrorOf("linucb:alhpa=1"),
            "policy 'linucb': unknown parameter 'alhpa'; it takes alpha, lambda, items");
  EXPECT_EQ(SpecErrorOf("random:x=1"), "policy 'random' takes no parameters, so 'x' is unknown");
  EXPECT_EQ(SpecErrorOf("codband:paperr"),
            "policy 'codband': 'paperr' is neither a preset (paper, paper-product) nor name=value");
}

TEST(ParamsTest, DefaultsFromTheContextAreCheckedToo) {
  for (const double noise : {0.0, std::nan("")}) {
    const auto policy = MakePolicy("lints", {.dim = 4, .noise = noise});
    ASSERT_EQ(policy.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(policy.status().message().find("sigma = "), std::string::npos);
  }
  EXPECT_TRUE(MakePolicy("lints:sigma=1", {.dim = 4, .noise = 0.1}).ok());
}

TEST(RegistryTest, UnknownPolicyListsThoseThereAre) {
  const std::string message = SpecErrorOf("linucbb");
  EXPECT_NE(message.find("policy 'linucbb' is unknown"), std::string::npos);
  for (const PolicyInfo* info : RegisteredPolicies()) {
    EXPECT_NE(message.find(info->name), std::string::npos) << info->name;
  }
}

TEST(RegistryTest, OraclesNeedATruth) {
  EXPECT_NE(SpecErrorOf("oracle-greedy").find("only a simulation has them"), std::string::npos);
}

TEST(RegistryTest, DimensionIsChecked) {
  EXPECT_FALSE(MakePolicy("linucb", {.dim = 0}).ok());
  EXPECT_FALSE(MakePolicy("linucb", {.dim = 1025}).ok());
}

TEST(RegistryTest, PolicyListKeepsParametersWithTheirPolicy) {
  EXPECT_EQ(SplitPolicyList("linucb:alpha=0.3,lambda=1,codband:paper,likelihood=joint,random"),
            (std::vector<std::string>{"linucb:alpha=0.3,lambda=1", "codband:paper,likelihood=joint",
                                      "random"}));
  EXPECT_EQ(SplitPolicyList("linucb,alpha=0.3"), std::vector<std::string>{"linucb:alpha=0.3"});
  EXPECT_TRUE(SplitPolicyList("").empty());
}

}  // namespace
}  // namespace codband
