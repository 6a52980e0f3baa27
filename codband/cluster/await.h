#pragma once

#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "codband/store/partition_log.h"

namespace codband::cluster {

// Calls a function of a log and blocks until it is answered:
//   Await<Status>([&](auto done) { log.PutBlob(claim, id, bytes, std::move(done)); })
template <typename T, typename Call>
T Await(const Call& call) {
  const auto answer = std::make_shared<std::promise<T>>();
  auto future = answer->get_future();
  call(store::PartitionLog::Done<T>([answer](T value) { answer->set_value(std::move(value)); }));
  return future.get();
}

}  // namespace codband::cluster
