#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codband/policy/registry.h"
#include "codband/sim/environment.h"

namespace codband::python {

// Policies and environments that are written in Python, for the runners. They take the GIL for
// every call, so that runs of several threads take turns. What a method raises is thrown as it is,
// with its traceback.

// Draws of one event for a policy: a function of (seed, event), whatever else is played.
class ScriptedRandom {
 public:
  explicit ScriptedRandom(EventKey key) : key_(key), stream_(key, kPurpose) {}

  EventKey key() const { return key_; }
  RandomStream& stream() { return stream_; }

 private:
  static constexpr std::uint64_t kPurpose = 3000;  // far from those of policies and of replay
  EventKey key_;
  RandomStream stream_;
};

// A policy around an object with choose(user, arms, rng) and learn(user, features, reward).
// Precondition: the GIL is held.
std::unique_ptr<Policy> MakeScriptedPolicy(std::string name, std::size_t dim,
                                           pybind11::object self);

// An environment around an object with users, rounds, dim, visit(slot) and, if it has them, noise,
// start_round(round) and model_of(user). Precondition: the GIL is held.
std::unique_ptr<sim::Environment> MakeScriptedEnvironment(pybind11::object self);

// The registry, and what is made by callables: a factory is called with the number of features
// where a policy is asked for by its name. Precondition: the GIL is held; calls take it themselves.
PolicyFactory ScriptedFactory(const std::map<std::string, pybind11::object>& factories);

}  // namespace codband::python
