#include "codband/policy/baselines/club.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/baselines/cut_graph.h"
#include "codband/policy/baselines/group_model.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"

namespace codband {
namespace {

struct Component {
  ModelId id;
  std::size_t members;
  GroupModel model;  // of all observations of the members
};

struct ClubUser {
  UserId id;
  linalg::GaussianPosterior ridge;  // of the user's own observations
  Component* component;
  std::size_t cursor;  // the next user to be compared with
};

class Club final : public Policy {
 public:
  Club(std::size_t dim, const ClubOptions& options)
      : Policy(dim),
        options_(options),
        prior_(dim, options.lambda, 1),
        total_(prior_),
        moved_(dim) {}

  bool Forget(UserId user) override {
    const auto found = index_.find(user);
    if (found == index_.end()) return false;
    const std::size_t at = found->second;
    while (graph_.degree(at) > 0) CutEdge(at, graph_.NextNeighbour(at, 0));
    components_.erase(users_[at].component->id);
    graph_.Erase(at);
    users_.erase(users_.begin() + static_cast<std::ptrdiff_t>(at));
    index_.erase(found);
    for (std::size_t i = at; i < users_.size(); ++i) index_[users_[i].id] = i;
    for (ClubUser& other : users_) other.cursor -= other.cursor > at;
    RefreshEstimates(at, dim());
    moved_.Clear();
    for (const ClubUser& other : users_) moved_.Add(other.ridge.stats());
    total_.Clear();
    total_.Add(moved_);
    return true;
  }

  std::size_t model_count() const override { return components_.size(); }

  void DoSaveState(ByteWriter& out) const override {
    out.U64(next_component_);
    total_.Save(out);
    out.U64(components_.size());
    for (const auto& [id, component] : components_) {
      out.U64(id);
      component.model.Save(out);
    }
    out.U64(users_.size());
    for (const ClubUser& user : users_) {
      out.U64(user.id);
      out.U64(user.component->id);
      out.U64(user.cursor);
      user.ridge.Save(out);
    }
    graph_.Save(out);
  }

  void DoLoadState(ByteReader& in) override {
    next_component_ = in.U64("next component");
    total_.Load(in);
    LoadComponents(in);
    LoadUsers(in);
    if (in.ok()) graph_.Load(in);
    if (in.ok()) CheckComponents(in);
    if (!in.ok()) Clear();  // no half-loaded state
    RefreshEstimates(0, dim());
  }

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    const auto found = index_.find(user);
    if (found == index_.end()) {
      return ChooseByUpperBound(total_, options_.alpha, arms, decision);
    }
    const Component& component = *users_[found->second].component;
    decision.model = component.id;
    return ChooseByUpperBound(component.model.posterior(), options_.alpha, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) override {
    const auto [entry, is_new] = index_.try_emplace(decision.user, users_.size());
    if (is_new) Join(decision.user);
    const std::size_t at = entry->second;
    ClubUser& user = users_[at];
    user.ridge.Add(decision.features, reward);
    user.component->model.Add(decision.features, reward);
    total_.Add(decision.features, reward);
    RefreshEstimate(at);
    TestEdges(at);
    return {};
  }

  void DoGrow(std::size_t dim) override {
    prior_.Grow(dim);
    total_.Grow(dim);
    moved_.Grow(dim, false);
    for (auto& [id, component] : components_) component.model.Grow(dim);
    for (ClubUser& user : users_) user.ridge.Grow(dim);
    RefreshEstimates(0, dim);
  }

  // A new user has an edge to everybody, so that everybody is connected.
  void Join(UserId user) {
    if (components_.empty()) {
      MakeComponent().model.Reset(total_);
    } else if (components_.size() > 1) {
      Component& all = components_.begin()->second;
      all.model.Reset(total_);
      all.members = users_.size();
      for (ClubUser& other : users_) other.component = &all;
      components_.erase(std::next(components_.begin()), components_.end());
    }
    Component& all = components_.begin()->second;
    ++all.members;
    users_.push_back({.id = user, .ridge = prior_, .component = &all, .cursor = 0});
    graph_.AddVertex();
    means_.resize(users_.size() * dim());
    bounds_.resize(users_.size());
  }

  // Tests all edges of the user, or the next `checks` of them.
  void TestEdges(std::size_t at) {
    const std::size_t degree = graph_.degree(at);
    const bool all = degree <= options_.checks;
    std::size_t next = all ? 0 : users_[at].cursor;
    for (std::size_t left = all ? degree : options_.checks; left > 0; --left) {
      next = graph_.NextNeighbour(at, next);
      if (AreApart(at, next)) CutEdge(at, next);
      ++next;
    }
    users_[at].cursor = all ? 0 : next;
  }

  bool AreApart(std::size_t a, std::size_t b) const {
    const double* const p = &means_[a * dim()];
    const double* const q = &means_[b * dim()];
    const double bound = bounds_[a] + bounds_[b];
    std::array<double, 4> sums{};
    std::size_t i = 0;
    for (; i + 4 <= dim(); i += 4) {
      for (std::size_t j = 0; j < 4; ++j) sums[j] += (p[i + j] - q[i + j]) * (p[i + j] - q[i + j]);
    }
    for (; i < dim(); ++i) sums[0] += (p[i] - q[i]) * (p[i] - q[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]) > bound * bound;
  }

  void CutEdge(std::size_t a, std::size_t b) {
    graph_.Cut(a, b);
    if (graph_.Connected(a, b)) return;
    const bool side_of_a = (graph_.side()[a / kWordBits] & Bit(a)) != 0;
    SplitOff(side_of_a ? a : b, side_of_a ? b : a);
  }

  // The graph's side, which has `inside` in it, becomes a component of its own; `outside` stays.
  void SplitOff(std::size_t inside, std::size_t outside) {
    Component& rest = *users_[outside].component;
    Component& part = MakeComponent();
    moved_.Clear();
    for (std::size_t k = 0; k < graph_.side().size(); ++k) {
      ForEachBit(graph_.side()[k], k, [&](std::size_t i) {
        moved_.Add(users_[i].ridge.stats());
        users_[i].component = &part;
        ++part.members;
      });
    }
    rest.members -= part.members;
    // A single member's component has exactly the member's own model.
    if (part.members == 1) {
      part.model.Reset(users_[inside].ridge);
    } else {
      part.model.Reset(moved_);
    }
    if (rest.members == 1) {
      rest.model.Reset(users_[outside].ridge);
    } else if (!rest.model.Remove(moved_)) {
      moved_.Clear();
      for (const ClubUser& user : users_) {
        if (user.component == &rest) moved_.Add(user.ridge.stats());
      }
      rest.model.Reset(moved_);
    }
  }

  Component& MakeComponent() {
    const ModelId id = next_component_++;
    return components_.emplace(id, Component{.id = id, .members = 0, .model = GroupModel(prior_)})
        .first->second;
  }

  void RefreshEstimate(std::size_t at) {
    const linalg::GaussianPosterior& ridge = users_[at].ridge;
    std::ranges::copy(ridge.mean(), means_.begin() + static_cast<std::ptrdiff_t>(at * ridge.dim()));
    bounds_[at] = options_.alpha2 * EstimateSpread(ridge.stats().m());
  }

  void RefreshEstimates(std::size_t first, std::size_t dim) {
    means_.resize(users_.size() * dim);
    bounds_.resize(users_.size());
    for (std::size_t i = first; i < users_.size(); ++i) RefreshEstimate(i);
  }

  void Clear() {
    users_.clear();
    index_.clear();
    graph_ = {};
    components_.clear();
    next_component_ = 0;
    total_.Clear();
  }

  void LoadComponents(ByteReader& in) {
    components_.clear();
    const std::size_t count = in.Count("number of components", GroupModel::SavedBytes(dim()));
    for (std::size_t c = 0; c < count && in.ok(); ++c) {
      const ModelId id = in.U64("component");
      const auto [entry, is_new] =
          components_.emplace(id, Component{.id = id, .members = 0, .model = GroupModel(prior_)});
      if (!is_new || id >= next_component_) {
        in.Fail("component",
                fmt::format("{} appears twice, or is not below {}", id, next_component_));
      }
      entry->second.model.Load(in);
    }
  }

  void LoadUsers(ByteReader& in) {
    users_.clear();
    index_.clear();
    graph_ = {};
    const std::size_t count =
        in.Count("number of users", linalg::GaussianPosterior::SavedBytes(dim()));
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const UserId id = in.U64("user");
      const auto component = components_.find(in.U64("component of a user"));
      const std::uint64_t cursor = in.U64("next user to compare with");
      if (!index_.emplace(id, i).second) in.Fail("user", "appears twice");
      if (component == components_.end()) in.Fail("component of a user", "does not exist");
      if (cursor > count) in.Fail("next user to compare with", fmt::format("is {}", cursor));
      if (!in.ok()) return;
      users_.push_back(
          {.id = id, .ridge = prior_, .component = &component->second, .cursor = cursor});
      users_.back().ridge.Load(in);
      graph_.AddVertex();
    }
  }

  // Fails unless the components are those of the graph and have the observations of their users.
  void CheckComponents(ByteReader& in) {
    std::vector<bool> seen(users_.size());
    std::uint64_t all_observations = 0;
    for (std::size_t i = 0; i < users_.size(); ++i) {
      all_observations += users_[i].ridge.stats().m();
      if (seen[i]) continue;
      Component& component = *users_[i].component;
      if (component.members > 0) in.Fail("component of a user", "is not connected");
      std::uint64_t sum = 0;
      graph_.Flood(i);
      for (std::size_t k = 0; k < graph_.side().size(); ++k) {
        ForEachBit(graph_.side()[k], k, [&](std::size_t j) {
          seen[j] = true;
          sum += users_[j].ridge.stats().m();
          ++component.members;
          if (users_[j].component != &component) {
            in.Fail("component of a user", "differs from that of a neighbour");
          }
        });
      }
      if (component.model.observations() != sum) {
        in.Fail("component", "has other observations than its users");
      }
    }
    for (const auto& [id, component] : components_) {
      if (component.members == 0) in.Fail("component", "has no users");
    }
    if (total_.stats().m() != all_observations) {
      in.Fail("number of observations", "is not that of all users");
    }
  }

  ClubOptions options_;
  linalg::GaussianPosterior prior_;
  linalg::GaussianPosterior total_;  // of all observations
  std::map<ModelId, Component> components_;
  ModelId next_component_ = 0;
  std::vector<ClubUser> users_;  // in the order of arrival: the vertices of the graph
  std::unordered_map<UserId, std::size_t> index_;
  CutGraph graph_;
  // The estimate θ̂ and the bound CB of each user, contiguous for TestEdges.
  std::vector<double> means_;
  std::vector<double> bounds_;
  linalg::SufficientStats moved_;  // scratch
};

}  // namespace

double EstimateSpread(std::uint64_t observations) {
  const auto n = static_cast<double>(observations);
  return std::sqrt((1 + std::log1p(n)) / (1 + n));
}

PolicyInfo ClubInfo() {
  const ClubOptions defaults;
  ParamInfo alpha = AlphaParam(defaults.alpha);
  alpha.help += " (0.1 for setting 1)";
  return {.name = "club",
          .summary = "users whose estimates stay close share a linear model; never forgets",
          .paper = "Gentile, Li & Zappella, ICML 2014",
          .shares_between_users = true,
          .params = {alpha, LambdaParam(defaults.lambda),
                     NumberParam("alpha2",
                                 "how far apart two users' estimates may be and yet be joined (2 "
                                 "for setting 1)",
                                 0, 1e6, defaults.alpha2),
                     WholeParam("checks", "edges of the user tested at an observation, at most",
                                1e9, defaults.checks)}};
}

std::unique_ptr<Policy> MakeClub(std::size_t dim, const ClubOptions& options) {
  return std::make_unique<Club>(dim, options);
}

std::unique_ptr<Policy> MakeClub(const ParamValues& params, const PolicyContext& context) {
  return MakeClub(context.dim, {.alpha = params.Number("alpha"),
                                .lambda = params.Number("lambda"),
                                .alpha2 = params.Number("alpha2"),
                                .checks = params.Integer("checks")});
}

}  // namespace codband
