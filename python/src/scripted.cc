#include "python/src/scripted.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "python/src/arrays.h"

namespace codband::python {
namespace {

// A Python object that may be destroyed on any thread.
class Held {
 public:
  explicit Held(py::object object) : object_(std::move(object)) {}
  ~Held() {
    const py::gil_scoped_acquire acquire;
    object_ = {};
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const py::object& operator*() const { return object_; }

 private:
  py::object object_;
};

std::string TypeOf(const py::object& object) {
  return py::str(py::type::handle_of(object).attr("__name__"));
}

std::size_t Attribute(const py::object& self, const char* name) {
  if (!py::hasattr(self, name)) {
    throw py::value_error(fmt::format("{}: has no attribute {}", TypeOf(self), name));
  }
  const std::uint64_t value = ToNumber(self.attr(name), name);
  if (value < 1) throw py::value_error(fmt::format("{}: is 0, expected at least 1", name));
  return value;
}

class ScriptedPolicy final : public Policy {
 public:
  ScriptedPolicy(std::string name, std::size_t dim, py::object self)
      : Policy(dim), name_(std::move(name)), self_(std::move(self)) {
    set_spec(name_);
  }

  bool Forget(UserId user) override {
    const py::gil_scoped_acquire acquire;
    if (!py::hasattr(*self_, "forget"))
      throw std::invalid_argument(name_ + " has no method forget");
    return (*self_).attr("forget")(user).cast<bool>();
  }

  std::size_t model_count() const override {
    const py::gil_scoped_acquire acquire;
    return py::hasattr(*self_, "model_count")
               ? ToNumber((*self_).attr("model_count"), "model_count")
               : 0;
  }

 private:
  // The runners keep no state; to keep that of a Python policy is up to its author.
  void DoSaveState(ByteWriter&) const override {
    throw std::invalid_argument(name_ + " cannot be saved");
  }
  void DoLoadState(ByteReader&) override {
    throw std::invalid_argument(name_ + " cannot be loaded");
  }
  void DoGrow(std::size_t) override { throw std::invalid_argument(name_ + " cannot grow"); }
  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override {
    const py::gil_scoped_acquire acquire;
    const std::vector<std::size_t> shape = {arms.count(), arms.dim};
    // A copy: the policy may keep it, and the runner reuses its memory.
    const py::array_t<double> copy(shape, arms.features.data());
    py::object chosen = (*self_).attr("choose")(user, copy, ScriptedRandom(key));
    double propensity = 0;
    if (py::isinstance<py::tuple>(chosen)) {
      const py::tuple pair = chosen;
      if (pair.size() != 2) Refuse("choose returned a tuple of " + std::to_string(pair.size()));
      propensity = py::float_(pair[1]);
      if (!(propensity > 0 && propensity <= 1)) {
        Refuse(fmt::format("choose returned the propensity {}", propensity));
      }
      chosen = pair[0];
    }
    if (PyIndex_Check(chosen.ptr()) == 0)
      Refuse("choose returned " + std::string(py::repr(chosen)));
    const auto arm = py::int_(chosen).cast<std::int64_t>();
    if (arm < 0 || static_cast<std::size_t>(arm) >= arms.count()) {
      Refuse(fmt::format("choose returned {} of {} arms", arm, arms.count()));
    }
    decision.arm = static_cast<std::uint32_t>(arm);
    return propensity > 0 ? Propensity::Of(propensity) : Propensity::Sampled();
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) override {
    const py::gil_scoped_acquire acquire;
    const py::object changed = (*self_).attr("learn")(
        decision.user, CopyOf(std::span<const double>(decision.features)), reward);
    return {.change_detected = !changed.is_none() && changed.cast<bool>()};
  }

  [[noreturn]] void Refuse(const std::string& what) const {
    throw py::value_error(fmt::format(
        "{}.{}, expected the row of an arm, or a tuple of it and its propensity in (0, 1]", name_,
        what));
  }

  std::string name_;
  Held self_;
};

class ScriptedEnvironment final : public sim::Environment {
 public:
  explicit ScriptedEnvironment(py::object self)
      : users_(Attribute(self, "users")),
        rounds_(Attribute(self, "rounds")),
        dim_(Attribute(self, "dim")),
        noise_(py::hasattr(self, "noise") ? self.attr("noise").cast<double>() : 0.1),
        knows_models_(py::hasattr(self, "model_of")),
        self_(std::move(self)) {}

  std::size_t dim() const override { return dim_; }
  std::size_t user_count() const override { return users_; }
  std::size_t round_count() const override { return rounds_; }
  double noise() const override { return noise_; }

  void StartRound(std::size_t round) override {
    changed_.clear();
    const py::gil_scoped_acquire acquire;
    if (!py::hasattr(*self_, "start_round")) return;
    const py::object changed = (*self_).attr("start_round")(round);
    if (changed.is_none()) return;
    for (const py::handle user : changed) changed_.insert(ToNumber(user, "start_round"));
  }
  bool changed(UserId user) const override { return changed_.contains(user); }

  void MakeVisit(std::size_t slot, sim::Visit& visit) const override {
    const py::gil_scoped_acquire acquire;
    const py::object made = (*self_).attr("visit")(slot);
    if (!py::isinstance<py::tuple>(made) || py::len(made) != 4) {
      throw py::value_error("visit: expected a tuple (user, arms, means, rewards)");
    }
    const py::tuple parts = made;
    visit.user = ToNumber(parts[0], "visit: user");
    if (visit.user >= users_) {
      throw py::value_error(
          fmt::format("visit: user is {}, expected at most {}", visit.user, users_ - 1));
    }
    const Doubles arms = ToDoubles(parts[1], "visit: arms", 2, fmt::format("(arms, {})", dim_));
    if (static_cast<std::size_t>(arms.shape(1)) != dim_ || arms.shape(0) == 0) {
      throw py::value_error(fmt::format("visit: arms has the shape ({}, {}), expected (arms, {})",
                                        arms.shape(0), arms.shape(1), dim_));
    }
    visit.arms.assign(Values(arms).begin(), Values(arms).end());
    TakeColumn(parts[2], "visit: means", arms.shape(0), visit.means);
    TakeColumn(parts[3], "visit: rewards", arms.shape(0), visit.rewards);
  }

  // What only yardsticks ask for, which the runner's callers refuse; users of one model without
  // model_of.
  std::size_t model_count() const override { return 1; }
  std::span<const double> parameter(std::size_t) const override {
    throw std::invalid_argument("an environment written in Python has no true parameters");
  }
  double hazard() const override {
    throw std::invalid_argument("an environment written in Python has no hazard rate");
  }
  std::size_t model_of(UserId user) const override {
    if (!knows_models_) return 0;
    const py::gil_scoped_acquire acquire;
    return ToNumber((*self_).attr("model_of")(user), "model_of");
  }

 private:
  static void TakeColumn(const py::object& values, const char* field, py::ssize_t count,
                         std::vector<double>& out) {
    const Doubles array = ToDoubles(values, field, 1, fmt::format("({},)", count));
    if (array.size() != count) {
      throw py::value_error(
          fmt::format("{}: has {} numbers, expected {}", field, array.size(), count));
    }
    out.assign(Values(array).begin(), Values(array).end());
  }

  std::size_t users_, rounds_, dim_;
  double noise_;
  bool knows_models_;
  Held self_;
  std::unordered_set<UserId> changed_;
};

}  // namespace

std::unique_ptr<Policy> MakeScriptedPolicy(std::string name, std::size_t dim, py::object self) {
  for (const char* method : {"choose", "learn"}) {
    if (!py::hasattr(self, method)) {
      throw py::value_error(fmt::format("policies: {} has no method {}", name, method));
    }
  }
  return std::make_unique<ScriptedPolicy>(std::move(name), dim, std::move(self));
}

std::unique_ptr<sim::Environment> MakeScriptedEnvironment(py::object self) {
  return std::make_unique<ScriptedEnvironment>(std::move(self));
}

PolicyFactory ScriptedFactory(const std::map<std::string, py::object>& factories) {
  auto held = std::make_shared<std::map<std::string, std::unique_ptr<Held>, std::less<>>>();
  for (const auto& [name, factory] : factories) (*held)[name] = std::make_unique<Held>(factory);
  return [held](std::string_view spec,
                const PolicyContext& context) -> Result<std::unique_ptr<Policy>> {
    const auto found = held->find(spec);
    if (found == held->end()) return MakePolicy(spec, context);
    const py::gil_scoped_acquire acquire;
    return MakeScriptedPolicy(found->first, context.dim, (**found->second)(context.dim));
  };
}

}  // namespace codband::python
