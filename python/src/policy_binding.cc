// codband.Policy, Decision, Ranking and Outcome.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>

#include "codband/policy/registry.h"
#include "codband/policy/state_file.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/policy_handle.h"

namespace codband::python {
namespace {

using namespace py::literals;

std::optional<std::uint64_t> ToEvent(py::handle event) {
  if (event.is_none()) return std::nullopt;
  return ToNumber(event, "event");
}

ArmsView ToArms(const Doubles& arms) {
  return {.features = Values(arms), .dim = static_cast<std::size_t>(arms.shape(1))};
}

std::string ArmsShape(const PolicyHandle& policy) {
  return fmt::format("(arms, {})", policy.dim());
}

std::unique_ptr<PolicyHandle> MakeHandle(const std::string& spec, py::handle dim, py::handle seed) {
  PolicyContext context{.dim = ToNumber(dim, "dim")};
  return std::make_unique<PolicyHandle>(ValueOf(MakePolicy(spec, context)), ToNumber(seed, "seed"),
                                        0);
}

std::unique_ptr<PolicyHandle> DecodeHandle(const py::bytes& state, std::uint64_t seed,
                                           std::uint64_t next_event) {
  const std::string_view bytes = state;
  auto policy = [&] {
    const py::gil_scoped_release release;
    return DecodeState(bytes, {});
  }();
  return std::make_unique<PolicyHandle>(ValueOf(std::move(policy)), seed, next_event);
}

py::bytes EncodeHandle(const PolicyHandle& policy) {
  const std::string state = [&] {
    const py::gil_scoped_release release;
    return policy.Read([](const Policy& p) { return EncodeState(p); });
  }();
  return py::bytes(state);
}

KeyedDecision ChooseOne(PolicyHandle& policy, py::handle user, py::handle arms, py::handle event) {
  const UserId id = ToUser(user);
  const Doubles array = ToDoubles(arms, "arms", 2, ArmsShape(policy));
  const std::optional<std::uint64_t> given = ToEvent(event);
  PolicyHandle::Events counted(policy, given ? 0 : 1);
  KeyedDecision made{.decision = {}, .key = policy.KeyOf(given.value_or(counted.first()))};
  const py::gil_scoped_release release;
  policy.Read([&](const Policy& p) { p.Choose(id, ToArms(array), made.key, made.decision); });
  counted.Keep();
  return made;
}

struct KeyedRanking {
  Ranking ranking;
  EventKey key;
};

KeyedRanking RankArms(PolicyHandle& policy, py::handle user, py::handle arms, py::handle event,
                      py::handle uniform) {
  const UserId id = ToUser(user);
  const double floor = ToReal(uniform, "floor");
  const Doubles array = ToDoubles(arms, "arms", 2, ArmsShape(policy));
  const std::optional<std::uint64_t> given = ToEvent(event);
  PolicyHandle::Events counted(policy, given ? 0 : 1);
  KeyedRanking ranked{.ranking = {}, .key = policy.KeyOf(given.value_or(counted.first()))};
  const py::gil_scoped_release release;
  policy.Read(
      [&](const Policy& p) { p.Rank(id, ToArms(array), ranked.key, floor, ranked.ranking); });
  counted.Keep();
  return ranked;
}

LearnOutcome LearnOne(PolicyHandle& policy, py::handle decision, py::handle value) {
  const auto& made = ToInstance<KeyedDecision>(decision, "decision", "a Decision");
  const double reward = ToReal(value, "reward");
  const py::gil_scoped_release release;
  return policy.Write([&](Policy& p) { return p.Learn(made.decision, reward, made.key); });
}

// By score, the choice first.
std::vector<std::int64_t> OrderOf(const Ranking& ranking) {
  std::vector<std::int64_t> order(ranking.arms.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](std::int64_t arm) {
    return ranking.arms[static_cast<std::size_t>(arm)].score;
  };
  std::ranges::stable_sort(order,
                           [&](std::int64_t a, std::int64_t b) { return rank(a) > rank(b); });
  const auto chosen = std::ranges::find(order, std::int64_t{ranking.decision.arm});
  std::rotate(order.begin(), chosen, chosen + 1);
  return order;
}

py::array_t<double> ArmsColumn(const KeyedRanking& ranked, double Ranking::Arm::*column) {
  py::array_t<double> values(static_cast<py::ssize_t>(ranked.ranking.arms.size()));
  double* out = values.mutable_data();
  for (const Ranking::Arm& arm : ranked.ranking.arms) *out++ = arm.*column;
  return values;
}

py::dict DecisionDict(const KeyedDecision& made) {
  const Decision& d = made.decision;
  return py::dict("user"_a = d.user, "arm"_a = d.arm, "features"_a = d.features,
                  "model"_a = ModelObject(d.model), "period"_a = d.period, "mean"_a = d.mean,
                  "width"_a = d.width, "score"_a = d.score, "propensity"_a = d.propensity,
                  "seed"_a = made.key.seed, "event"_a = made.key.event);
}

KeyedDecision DecisionFromDict(py::handle given) {
  if (PyDict_Check(given.ptr()) == 0) ThrowWrongType(given, "fields", "a dictionary");
  const auto fields = py::reinterpret_borrow<py::dict>(given);
  const auto get = [&](const char* name) -> py::object {
    if (!fields.contains(name)) {
      throw py::value_error(
          fmt::format("{}: is missing, expected as Decision.to_dict() gives it", name));
    }
    return fields[name];
  };
  const auto real = [&](const char* name) { return ToReal(get(name), name); };
  const auto small = [&](const char* name) {
    const std::uint64_t number = ToNumber(get(name), name);
    if (number > std::numeric_limits<std::uint32_t>::max()) {
      throw py::value_error(fmt::format("{}: is {}, expected at most 2**32 - 1", name, number));
    }
    return static_cast<std::uint32_t>(number);
  };
  const Doubles features = ToDoubles(get("features"), "features", 1, "(features,)");
  const std::span<const double> values = Values(features);
  const py::object model = get("model");
  return {.decision = {.user = ToUser(get("user")),
                       .arm = small("arm"),
                       .features = {values.begin(), values.end()},
                       .model = model.is_none() ? kNoModel : ToNumber(model, "model"),
                       .period = small("period"),
                       .mean = real("mean"),
                       .width = real("width"),
                       .score = real("score"),
                       .propensity = real("propensity")},
          .key = {.seed = ToNumber(get("seed"), "seed"), .event = ToNumber(get("event"), "event")}};
}

py::list ModelDicts(const PolicyHandle& policy) {
  const std::vector<ModelDescription> models = [&] {
    const py::gil_scoped_release release;
    return policy.Read([](const Policy& p) { return p.DescribeModels(); });
  }();
  py::list list;
  for (const ModelDescription& model : models) {
    list.append(py::dict("id"_a = model.id, "users"_a = model.users, "periods"_a = model.periods,
                         "observations"_a = model.observations,
                         "theta"_a = CopyOf(std::span<const double>(model.theta)),
                         "intercept"_a = model.intercept));
  }
  return list;
}

py::object UserDict(const PolicyHandle& policy, py::handle user) {
  const UserId id = ToUser(user);
  const std::optional<UserDescription> description = [&] {
    const py::gil_scoped_release release;
    return policy.Read([&](const Policy& p) { return p.DescribeUser(id); });
  }();
  if (!description) return py::none();
  return py::dict("model"_a = ModelObject(description->model), "chance"_a = description->chance,
                  "observations"_a = description->observations);
}

py::dict InfoDict(const PolicyInfo& info) {
  py::list params;
  for (const ParamInfo& param : info.params) {
    params.append(py::dict("name"_a = param.name, "help"_a = param.help,
                           "allowed"_a = param.AllowedText(), "default"_a = param.DefaultText()));
  }
  py::list presets;
  for (const Preset& preset : info.presets) {
    presets.append(py::dict("name"_a = preset.name, "help"_a = preset.help));
  }
  return py::dict("name"_a = info.name, "summary"_a = info.summary, "paper"_a = info.paper,
                  "shares_between_users"_a = info.shares_between_users,
                  "detects_changes"_a = info.detects_changes, "knows_truth"_a = info.knows_truth,
                  "parameters"_a = params, "presets"_a = presets);
}

void BindDecision(py::module_& module) {
  py::class_<KeyedDecision>(
      module, "Decision",
      "What was chosen, with all that learning from it needs. Plain data: keep it, pickle it, "
      "store\n"
      "to_dict() as JSON; its reward may come after days, in any order, after a restart.")
      .def_property_readonly(
          "user", [](const KeyedDecision& d) { return d.decision.user; },
          "the user's number; of a user given as text, the hash")
      .def_property_readonly(
          "arm", [](const KeyedDecision& d) { return d.decision.arm; }, "row of the chosen arm")
      .def_property_readonly(
          "features",
          [](const KeyedDecision& d) {
            return CopyOf(std::span<const double>(d.decision.features));
          },
          "features of the chosen arm (a copy)")
      .def_property_readonly(
          "model", [](const KeyedDecision& d) { return ModelObject(d.decision.model); },
          "the model it was made under, or None")
      .def_property_readonly(
          "period", [](const KeyedDecision& d) { return d.decision.period; },
          "number of changes of the user detected before")
      .def_property_readonly(
          "mean", [](const KeyedDecision& d) { return d.decision.mean; }, "expected reward")
      .def_property_readonly(
          "width", [](const KeyedDecision& d) { return d.decision.width; },
          "standard deviation of that expectation")
      .def_property_readonly(
          "score", [](const KeyedDecision& d) { return d.decision.score; },
          "what the arms were compared by")
      .def_property_readonly(
          "propensity", [](const KeyedDecision& d) { return d.decision.propensity; },
          "probability of this choice; nan where choose() has no closed form")
      .def_property_readonly(
          "event", [](const KeyedDecision& d) { return d.key.event; },
          "number of the event, which names its random draws")
      .def("to_dict", &DecisionDict, "Everything as a dictionary of plain numbers.")
      .def_static("from_dict", &DecisionFromDict, "fields"_a, "The decision that to_dict() gave.")
      .def("__repr__",
           [](const KeyedDecision& d) {
             return fmt::format(
                 "Decision(user={}, arm={}, mean={:.6g}, propensity={:.6g}, event={})",
                 d.decision.user, d.decision.arm, d.decision.mean, d.decision.propensity,
                 d.key.event);
           })
      .def(py::pickle(&DecisionDict,
                      [](const py::dict& fields) { return DecisionFromDict(fields); }));
}

void BindRanking(py::module_& module) {
  py::class_<KeyedRanking>(
      module, "Ranking",
      "How a policy rates every arm, and its choice. Arrays are in the order of\n"
      "the offer; `order` ranks them.")
      .def_property_readonly(
          "decision",
          [](const KeyedRanking& r) {
            return KeyedDecision{r.ranking.decision, r.key};
          },
          "the choice; its propensity is exact")
      .def_property_readonly(
          "arm", [](const KeyedRanking& r) { return r.ranking.decision.arm; },
          "row of the chosen arm")
      .def_property_readonly(
          "order",
          [](const KeyedRanking& r) {
            const std::vector<std::int64_t> order = OrderOf(r.ranking);
            return CopyOf(std::span<const std::int64_t>(order));
          },
          "rows of the arms: the choice first, then by score")
      .def_property_readonly(
          "mean", [](const KeyedRanking& r) { return ArmsColumn(r, &Ranking::Arm::mean); },
          "expected reward of each arm")
      .def_property_readonly(
          "width", [](const KeyedRanking& r) { return ArmsColumn(r, &Ranking::Arm::width); },
          "standard deviation of each expectation")
      .def_property_readonly(
          "score", [](const KeyedRanking& r) { return ArmsColumn(r, &Ranking::Arm::score); },
          "what the arms are ordered by")
      .def_property_readonly(
          "probability",
          [](const KeyedRanking& r) { return ArmsColumn(r, &Ranking::Arm::probability); },
          "probability with which each arm is chosen; the choice was drawn from these")
      .def_property_readonly(
          "theta",
          [](const KeyedRanking& r) { return CopyOf(std::span<const double>(r.ranking.theta)); },
          "the parameter behind the means; empty if there is none")
      .def_property_readonly(
          "intercept", [](const KeyedRanking& r) { return r.ranking.intercept; },
          "mean = features @ theta + intercept")
      .def_property_readonly(
          "draws", [](const KeyedRanking& r) { return r.ranking.draws; },
          "samples behind the probabilities; 0: closed form")
      .def("__len__", [](const KeyedRanking& r) { return r.ranking.arms.size(); });

  py::class_<LearnOutcome>(module, "Outcome",
                           "What learning led to. True if a change of the user was detected.")
      .def_readonly("change_detected", &LearnOutcome::change_detected)
      .def_property_readonly(
          "before", [](const LearnOutcome& o) { return ModelObject(o.before); },
          "the user's model before, where models are shared")
      .def_property_readonly(
          "after", [](const LearnOutcome& o) { return ModelObject(o.after); },
          "the user's model after, where models are shared")
      .def("__bool__", [](const LearnOutcome& o) { return o.change_detected; })
      .def("__repr__", [](const LearnOutcome& o) {
        return fmt::format("Outcome(change_detected={})", o.change_detected ? "True" : "False");
      });
}

}  // namespace

void BindPolicies(py::module_& module) {
  BindDecision(module);
  BindRanking(module);
  py::class_<PolicyHandle>(module, "Policy", "See codband.Policy.")
      .def(py::init(&MakeHandle), "spec"_a = "codband", py::kw_only(), "dim"_a, "seed"_a = 1)
      .def(py::init(&DecodeHandle), "state"_a, "seed"_a, "next_event"_a)
      .def("choose", &ChooseOne, "user"_a, "arms"_a, "event"_a = py::none(),
           "Chooses one of the arms, an (arms, dim) array, for the user: a number or a text.\n\n"
           "`event` names the random draws; without it events are counted.")
      .def("rank", &RankArms, "user"_a, "arms"_a, "event"_a = py::none(), "floor"_a = 0.0,
           "Chooses like choose() and rates every arm, with exact probabilities.\n\n"
           "A share `floor` of the choices is uniformly random.")
      .def("learn", &LearnOne, "decision"_a, "reward"_a,
           "Learns what the decision brought. Once for each decision.")
      .def(
          "forget",
          [](PolicyHandle& policy, py::handle user) {
            const UserId id = ToUser(user);
            const py::gil_scoped_release release;
            return policy.Write([&](Policy& p) { return p.Forget(id); });
          },
          "user"_a, "Removes all that was learned from the user; False if they are unknown.")
      .def("models", &ModelDicts, "The shared models, for display: a list of dictionaries.")
      .def("user", &UserDict, "user"_a,
           "Model, its chance, and observations since the last change; None if unknown.")
      .def_property_readonly("dim", &PolicyHandle::dim, "number of features of an arm")
      .def_property_readonly("spec", &PolicyHandle::spec, "name and every parameter")
      .def_property_readonly("seed", &PolicyHandle::seed)
      .def_property_readonly("next_event", &PolicyHandle::next_event,
                             "number of the next event that is counted")
      .def_property_readonly("model_count",
                             [](const PolicyHandle& policy) {
                               const py::gil_scoped_release release;
                               return policy.Read([](const Policy& p) { return p.model_count(); });
                             })
      .def("_encode", &EncodeHandle);

  module.def("policy_infos", [] {
    py::list infos;
    for (const PolicyInfo* info : RegisteredPolicies()) infos.append(InfoDict(*info));
    return infos;
  });
  module.def("policy_specs", &RegisteredSpecs);
  module.def("split_policy_list", &SplitPolicyList);
}

}  // namespace codband::python
