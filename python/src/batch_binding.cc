// Many visits in one call.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cmath>
#include <utility>

#include "codband/linalg/kernels.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/policy_handle.h"

namespace codband::python {
namespace {

using namespace py::literals;

// The memory of the last batch that is gone, for the next one: allocating a vector for every
// decision would cost a tenth of a step. Guarded by the GIL.
std::vector<KeyedDecision>& Spare() {
  static auto* const spare = new std::vector<KeyedDecision>;  // outlives every batch
  return *spare;
}
constexpr std::size_t kMostSpareNumbers = 1 << 17;  // 1 MiB of features

// The arms of every visit: an array for each, or one for all.
class BatchArms {
 public:
  BatchArms(py::handle arms, std::size_t visits, std::size_t dim)
      : array_(ToDoubles(arms, "arms")) {
    const bool each = array_.ndim() == 3;
    const auto axis = [&](py::ssize_t i) { return static_cast<std::size_t>(array_.shape(i)); };
    if ((array_.ndim() != 2 && !each) || axis(array_.ndim() - 1) != dim ||
        (each && axis(0) != visits)) {
      throw py::value_error(fmt::format(
          "arms: has the shape {}, expected ({}, arms, {}), or (arms, {}) for all visits",
          std::string(py::str(array_.attr("shape"))), visits, dim, dim));
    }
    dim_ = dim;
    size_ = each ? axis(1) * dim : axis(0) * dim;
    stride_ = each ? size_ : 0;
  }

  ArmsView of(std::size_t visit) const {
    return {.features = Values(array_).subspan(visit * stride_, size_), .dim = dim_};
  }

 private:
  Doubles array_;
  std::size_t dim_ = 0;
  std::size_t size_ = 0;    // numbers of one visit
  std::size_t stride_ = 0;  // from one visit to the next
};

}  // namespace

Batch::Batch(std::size_t size) : decisions(std::exchange(Spare(), {})) { decisions.resize(size); }

Batch::~Batch() {
  if (decisions.empty() ||
      decisions.size() * decisions.front().decision.features.capacity() > kMostSpareNumbers) {
    return;
  }
  Spare() = std::move(decisions);
}

namespace {

Batch ChooseMany(PolicyHandle& policy, py::handle users, py::handle arms, py::handle events) {
  const std::vector<UserId> ids = ToUsers(users);
  const BatchArms offers(arms, ids.size(), policy.dim());
  Batch batch(ids.size());
  PolicyHandle::Events counted(policy, events.is_none() ? ids.size() : 0);
  if (events.is_none()) {
    std::uint64_t event = counted.first();
    for (KeyedDecision& made : batch.decisions) made.key = policy.KeyOf(event++);
  } else {
    const py::object numbers = ToList(events, "events", "a sequence of whole numbers");
    if (py::len(numbers) != ids.size()) {
      throw py::value_error(
          fmt::format("events: has {} entries, expected {}", py::len(numbers), ids.size()));
    }
    auto made = batch.decisions.begin();
    for (const py::handle number : numbers)
      (made++)->key = policy.KeyOf(ToNumber(number, "events"));
  }
  const py::gil_scoped_release release;
  policy.Read([&](const Policy& p) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      KeyedDecision& made = batch.decisions[i];
      p.Choose(ids[i], offers.of(i), made.key, made.decision);
    }
  });
  counted.Keep();
  return batch;
}

// Everything that can be wrong is found before anything is learned.
void CheckLearnable(const PolicyHandle& policy, const Batch& batch,
                    std::span<const double> rewards) {
  if (rewards.size() != batch.decisions.size()) {
    throw py::value_error(fmt::format("rewards: has {} entries, expected {}", rewards.size(),
                                      batch.decisions.size()));
  }
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    if (!(std::abs(rewards[i]) <= kLargestNumber)) {
      throw py::value_error(
          fmt::format("rewards[{}]: is {}, expected a number within ±1e15", i, rewards[i]));
    }
    const Decision& decision = batch.decisions[i].decision;
    if (decision.features.size() != policy.dim()) {
      throw py::value_error(fmt::format("decisions[{}]: has {} features, expected {}", i,
                                        decision.features.size(), policy.dim()));
    }
    if (!linalg::AllWithin(decision.features, kLargestNumber)) {
      throw py::value_error(
          fmt::format("decisions[{}]: has a feature that is no number within ±1e15", i));
    }
  }
}

Batch ToBatch(py::handle decisions) {
  Batch batch(0);
  for (const py::handle made : ToList(decisions, "batch", "a Batch or a sequence of Decisions")) {
    const std::string field = fmt::format("decisions[{}]", batch.decisions.size());
    batch.decisions.push_back(ToInstance<KeyedDecision>(made, field.c_str(), "a Decision"));
  }
  return batch;
}

py::array_t<bool> LearnMany(PolicyHandle& policy, const Batch& batch, py::handle rewards) {
  const Doubles array =
      ToDoubles(rewards, "rewards", 1, fmt::format("({},)", batch.decisions.size()));
  CheckLearnable(policy, batch, Values(array));
  py::array_t<bool> changed(array.size());
  bool* out = changed.mutable_data();
  const py::gil_scoped_release release;
  policy.Write([&](Policy& p) {
    for (std::size_t i = 0; i < batch.decisions.size(); ++i) {
      const KeyedDecision& made = batch.decisions[i];
      out[i] = p.Learn(made.decision, Values(array)[i], made.key).change_detected;
    }
  });
  return changed;
}

template <typename T, typename Get>
py::array_t<T> Column(const Batch& batch, const Get& get) {
  py::array_t<T> values(static_cast<py::ssize_t>(batch.decisions.size()));
  T* out = values.mutable_data();
  for (const KeyedDecision& made : batch.decisions) *out++ = static_cast<T>(get(made.decision));
  return values;
}

}  // namespace

void BindBatches(py::module_& module) {
  py::class_<Batch>(module, "Batch", "Decisions of one call, as arrays or one by one.")
      .def("__len__", [](const Batch& batch) { return batch.decisions.size(); })
      .def("__getitem__",
           [](const Batch& batch, py::ssize_t i) {
             const auto size = static_cast<py::ssize_t>(batch.decisions.size());
             if (i < -size || i >= size) throw py::index_error("no such decision");
             return batch.decisions[static_cast<std::size_t>(i < 0 ? i + size : i)];
           })
      .def_property_readonly(
          "arm",
          [](const Batch& b) {
            return Column<std::int64_t>(b, [](const Decision& d) { return d.arm; });
          },
          "rows of the chosen arms")
      .def_property_readonly(
          "mean",
          [](const Batch& b) {
            return Column<double>(b, [](const Decision& d) { return d.mean; });
          },
          "expected rewards")
      .def_property_readonly(
          "width",
          [](const Batch& b) {
            return Column<double>(b, [](const Decision& d) { return d.width; });
          },
          "standard deviations of these expectations")
      .def_property_readonly(
          "score",
          [](const Batch& b) {
            return Column<double>(b, [](const Decision& d) { return d.score; });
          },
          "what the arms were compared by")
      .def_property_readonly(
          "propensity",
          [](const Batch& b) {
            return Column<double>(b, [](const Decision& d) { return d.propensity; });
          },
          "probabilities of the choices; nan where there is no closed form");

  const auto policy = py::reinterpret_borrow<py::class_<PolicyHandle>>(module.attr("Policy"));
  auto bound = policy;
  bound
      .def("choose_batch", &ChooseMany, "users"_a, "arms"_a, "events"_a = py::none(),
           "Chooses for many visits at once, all in the present state.\n\n"
           "`arms` is (visits, arms, dim), or (arms, dim) for all visits. Returns a Batch.")
      .def(
          "learn_batch",
          [](PolicyHandle& handle, py::handle given, py::handle rewards) {
            if (py::isinstance<Batch>(given)) {
              return LearnMany(handle, given.cast<const Batch&>(), rewards);
            }
            return LearnMany(handle, ToBatch(given), rewards);
          },
          "batch"_a, "rewards"_a,
          "Learns the rewards of a Batch, or of a list of decisions, in order: all of them or, if\n"
          "one is wrong, none.\n\n"
          "Returns for each whether a change of the user was detected.");
}

}  // namespace codband::python
