#include "codband/policy/club.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/policy/linucb.h"
#include "codband/policy/scoring.h"

namespace codband {
namespace {

constexpr std::size_t kWordBits = 64;

constexpr std::size_t WordsFor(std::size_t bits) { return (bits + kWordBits - 1) / kWordBits; }
constexpr std::uint64_t Bit(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

template <typename Visit>
void ForEachBit(std::uint64_t word, std::size_t k, const Visit& visit) {
  for (; word != 0; word &= word - 1) {
    visit(k * kWordBits + static_cast<std::size_t>(std::countr_zero(word)));
  }
}

// A complete graph less some edges. Only the cuts are stored, as rows of bits that end with the
// last cut: a new vertex costs nothing.
class CutGraph {
 public:
  std::size_t size() const { return cuts_.size(); }
  std::size_t degree(std::size_t v) const { return size() - 1 - cut_count_[v]; }

  void AddVertex() {
    cuts_.emplace_back();
    cut_count_.push_back(0);
  }

  // Precondition: a and b are neighbours.
  void Cut(std::size_t a, std::size_t b) {
    SetCut(a, b);
    SetCut(b, a);
  }

  // The first neighbour at or after `from`, going round. Precondition: v has a neighbour.
  std::size_t NextNeighbour(std::size_t v, std::size_t from) const {
    if (from >= size()) from = 0;
    std::size_t k = from / kWordBits;
    std::uint64_t word = Neighbours(v, k) & ~(Bit(from) - 1);
    while (word == 0) {
      k = k + 1 == WordsFor(size()) ? 0 : k + 1;
      word = Neighbours(v, k);
    }
    return k * kWordBits + static_cast<std::size_t>(std::countr_zero(word));
  }

  // Whether there is a way from a to b, which are not neighbours. If not, side() is the component
  // of one of them: the one that takes fewer steps to exhaust.
  bool Connected(std::size_t a, std::size_t b) {
    const std::size_t words = WordsFor(size());
    for (std::size_t k = 0; k < words; ++k) {
      if ((Neighbours(a, k) & Neighbours(b, k)) != 0) return true;
    }
    searches_[0].Start(a, words);
    searches_[1].Start(b, words);
    for (std::size_t turn = 0;; turn = 1 - turn) {
      Search& search = searches_[turn];
      if (search.pending.empty()) {
        side_ = turn;
        return false;
      }
      if (Expand(search, &searches_[1 - turn])) return true;
    }
  }

  // Precondition: Connected has just returned false, or Flood was called.
  std::span<const std::uint64_t> side() const { return searches_[side_].seen; }

  // Makes side() the component of v.
  void Flood(std::size_t v) {
    side_ = 0;
    searches_[0].Start(v, WordsFor(size()));
    while (!searches_[0].pending.empty()) Expand(searches_[0], nullptr);
  }

  // Precondition: v has no neighbours. Later vertices move down by one.
  void Erase(std::size_t v) {
    const auto at = static_cast<std::ptrdiff_t>(v);
    cuts_.erase(cuts_.begin() + at);
    cut_count_.erase(cut_count_.begin() + at);
    for (std::size_t u = 0; u < size(); ++u) {
      --cut_count_[u];
      EraseBit(cuts_[u], v);
    }
  }

  // The lower triangle, row by row.
  void Save(ByteWriter& out) const {
    for (std::size_t v = 0; v < size(); ++v) {
      for (std::size_t k = 0; k < WordsFor(v); ++k) out.U64(CutWord(v, k) & BelowMask(v, k));
    }
  }

  // Precondition: a graph of that many vertices, without cuts.
  void Load(ByteReader& in) {
    for (std::size_t v = 0; v < size(); ++v) {
      for (std::size_t k = 0; k < WordsFor(v) && in.ok(); ++k) {
        const std::uint64_t word = in.U64("cut edges");
        if ((word & ~BelowMask(v, k)) != 0) {
          in.Fail("cut edges", fmt::format("of vertex {} go beyond it", v));
          return;
        }
        ForEachBit(word, k, [&](std::size_t u) { Cut(v, u); });
      }
    }
  }

 private:
  // The vertices reached from one, and those of them whose neighbours were not yet looked at.
  struct Search {
    std::vector<std::uint64_t> seen;
    std::vector<std::size_t> pending;

    void Start(std::size_t v, std::size_t words) {
      seen.assign(words, 0);
      seen[v / kWordBits] |= Bit(v);
      pending.assign(1, v);
    }
  };

  // Looks at the neighbours of one pending vertex; true if the other search has seen one of them.
  bool Expand(Search& search, const Search* other) const {
    const std::size_t v = search.pending.back();
    search.pending.pop_back();
    for (std::size_t k = 0; k < search.seen.size(); ++k) {
      const std::uint64_t fresh = Neighbours(v, k) & ~search.seen[k];
      if (other != nullptr && (fresh & other->seen[k]) != 0) return true;
      search.seen[k] |= fresh;
      ForEachBit(fresh, k, [&](std::size_t u) { search.pending.push_back(u); });
    }
    return false;
  }

  std::uint64_t CutWord(std::size_t v, std::size_t k) const {
    return k < cuts_[v].size() ? cuts_[v][k] : 0;
  }

  // The bits of word k that stand for vertices below v.
  static std::uint64_t BelowMask(std::size_t v, std::size_t k) {
    if (v >= (k + 1) * kWordBits) return ~std::uint64_t{0};
    return v <= k * kWordBits ? 0 : Bit(v) - 1;
  }

  std::uint64_t Neighbours(std::size_t v, std::size_t k) const {
    const std::uint64_t others = k == v / kWordBits ? ~Bit(v) : ~std::uint64_t{0};
    return BelowMask(size(), k) & others & ~CutWord(v, k);
  }

  void SetCut(std::size_t a, std::size_t b) {
    if (cuts_[a].size() <= b / kWordBits) cuts_[a].resize(b / kWordBits + 1);
    cuts_[a][b / kWordBits] |= Bit(b);
    ++cut_count_[a];
  }

  static void EraseBit(std::vector<std::uint64_t>& row, std::size_t v) {
    for (std::size_t k = v / kWordBits; k < row.size(); ++k) {
      const std::uint64_t keep = k == v / kWordBits ? Bit(v) - 1 : 0;
      const std::uint64_t carry = k + 1 < row.size() ? row[k + 1] << (kWordBits - 1) : 0;
      row[k] = (row[k] & keep) | (((row[k] >> 1) | carry) & ~keep);
    }
  }

  std::vector<std::vector<std::uint64_t>> cuts_;
  std::vector<std::size_t> cut_count_;
  std::array<Search, 2> searches_;
  std::size_t side_ = 0;
};

struct Component {
  ModelId id;
  std::size_t members;
  GaussianPosterior posterior;  // of all observations of the members
};

struct User {
  UserId id;
  GaussianPosterior ridge;  // of the user's own observations
  Component* component;
  std::size_t cursor;  // the next user to be compared with
};

class Club final : public Policy {
 public:
  Club(std::size_t dim, const ClubOptions& options)
      : Policy(dim), options_(options), prior_(dim, options.lambda, 1), total_(prior_) {}

  bool Forget(UserId user) override {
    const auto found = index_.find(user);
    if (found == index_.end()) return false;
    const std::size_t at = found->second;
    while (graph_.degree(at) > 0) CutEdge(at, graph_.NextNeighbour(at, 0));
    total_.Remove(users_[at].ridge.stats());
    components_.erase(users_[at].component->id);
    graph_.Erase(at);
    users_.erase(users_.begin() + static_cast<std::ptrdiff_t>(at));
    index_.erase(found);
    for (std::size_t i = at; i < users_.size(); ++i) index_[users_[i].id] = i;
    for (User& other : users_) other.cursor -= other.cursor > at;
    RefreshEstimates(at);
    return true;
  }

  std::size_t model_count() const override { return components_.size(); }

  void SaveState(ByteWriter& out) const override {
    out.U64(next_component_);
    total_.Save(out);
    out.U64(components_.size());
    for (const auto& [id, component] : components_) {
      out.U64(id);
      component.posterior.Save(out);
    }
    out.U64(users_.size());
    for (const User& user : users_) {
      out.U64(user.id);
      out.U64(user.component->id);
      out.U64(user.cursor);
      user.ridge.Save(out);
    }
    graph_.Save(out);
  }

  void LoadState(ByteReader& in) override {
    next_component_ = in.U64("next component");
    total_.Load(in);
    LoadComponents(in);
    LoadUsers(in);
    if (in.ok()) graph_.Load(in);
    if (in.ok()) CheckComponents(in);
    if (!in.ok()) Clear();  // half a state is none
    RefreshEstimates(0);
  }

 private:
  void DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    const auto found = index_.find(user);
    if (found == index_.end()) {
      ChooseByUpperBound(total_, options_.alpha, arms, decision);
      return;
    }
    const Component& component = *users_[found->second].component;
    decision.model = component.id;
    ChooseByUpperBound(component.posterior, options_.alpha, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey) override {
    const auto [entry, is_new] = index_.try_emplace(decision.user, users_.size());
    if (is_new) Join(decision.user);
    const std::size_t at = entry->second;
    User& user = users_[at];
    user.ridge.Add(decision.features, reward);
    user.component->posterior.Add(decision.features, reward);
    total_.Add(decision.features, reward);
    RefreshEstimate(at);
    TestEdges(at);
    return {};
  }

  // A new user has an edge to everybody, so that everybody is connected.
  void Join(UserId user) {
    if (components_.empty()) {
      MakeComponent().posterior = total_;
    } else if (components_.size() > 1) {
      Component& all = components_.begin()->second;
      all.posterior = total_;
      all.members = users_.size();
      for (User& other : users_) other.component = &all;
      components_.erase(std::next(components_.begin()), components_.end());
    }
    Component& all = components_.begin()->second;
    ++all.members;
    users_.push_back({.id = user, .ridge = prior_, .component = &all, .cursor = 0});
    graph_.AddVertex();
    means_.resize(users_.size() * dim());
    bounds_.resize(users_.size());
  }

  // All edges of the user, or the next `checks` of them.
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
    SufficientStats moved(dim());
    for (std::size_t k = 0; k < graph_.side().size(); ++k) {
      ForEachBit(graph_.side()[k], k, [&](std::size_t i) {
        moved.Add(users_[i].ridge.stats());
        users_[i].component = &part;
        ++part.members;
      });
    }
    rest.members -= part.members;
    // A user alone is exactly on the user's own model.
    if (part.members == 1) {
      part.posterior = users_[inside].ridge;
    } else {
      part.posterior.Add(moved);
    }
    if (rest.members == 1) {
      rest.posterior = users_[outside].ridge;
    } else {
      rest.posterior.Remove(moved);
    }
  }

  Component& MakeComponent() {
    const ModelId id = next_component_++;
    return components_.emplace(id, Component{.id = id, .members = 0, .posterior = prior_})
        .first->second;
  }

  void RefreshEstimate(std::size_t at) {
    const GaussianPosterior& ridge = users_[at].ridge;
    std::ranges::copy(ridge.mean(), means_.begin() + static_cast<std::ptrdiff_t>(at * dim()));
    bounds_[at] = options_.alpha2 * EstimateSpread(ridge.stats().m());
  }

  void RefreshEstimates(std::size_t first) {
    means_.resize(users_.size() * dim());
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
    const std::size_t count =
        in.Count("number of components", GaussianPosterior::SavedBytes(dim()));
    for (std::size_t c = 0; c < count && in.ok(); ++c) {
      const ModelId id = in.U64("component");
      const auto [entry, is_new] =
          components_.emplace(id, Component{.id = id, .members = 0, .posterior = prior_});
      if (!is_new || id >= next_component_) {
        in.Fail("component",
                fmt::format("{} appears twice, or is not below {}", id, next_component_));
      }
      entry->second.posterior.Load(in);
    }
  }

  void LoadUsers(ByteReader& in) {
    users_.clear();
    index_.clear();
    graph_ = {};
    const std::size_t count = in.Count("number of users", GaussianPosterior::SavedBytes(dim()));
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
      if (component.posterior.stats().m() != sum) {
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
  GaussianPosterior prior_;
  GaussianPosterior total_;  // of all observations
  std::map<ModelId, Component> components_;
  ModelId next_component_ = 0;
  std::vector<User> users_;  // in the order of coming: the vertices of the graph
  std::unordered_map<UserId, std::size_t> index_;
  CutGraph graph_;
  // The estimate θ̂ and the bound CB of each user, next to each other for TestEdges.
  std::vector<double> means_;
  std::vector<double> bounds_;
};

}  // namespace

double EstimateSpread(std::uint64_t observations) {
  const auto n = static_cast<double>(observations);
  return std::sqrt((1 + std::log1p(n)) / (1 + n));
}

ParamInfo ChecksParam(std::string help, std::size_t default_value) {
  return {.name = "checks",
          .help = std::move(help),
          .min = 1,
          .max = 1e9,
          .default_value = static_cast<double>(default_value),
          .integer = true};
}

PolicyInfo ClubInfo() {
  const ClubOptions defaults;
  ParamInfo alpha = AlphaParam(defaults.alpha);
  alpha.help += " (0.1 for setting 1)";
  return {.name = "club",
          .summary = "users whose estimates stay close share a linear model; never forgets",
          .paper = "Gentile, Li & Zappella, ICML 2014",
          .shares_between_users = true,
          .params = {alpha,
                     LambdaParam(defaults.lambda),
                     {.name = "alpha2",
                      .help = "how far apart two users' estimates may be and yet be joined (2 for "
                              "setting 1)",
                      .min = 0,
                      .max = 1e6,
                      .default_value = defaults.alpha2},
                     ChecksParam("how many neighbours a user is compared with at an observation",
                                 defaults.checks)}};
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
