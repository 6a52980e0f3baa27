#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <utility>

#include "codband/server/http/worker.h"

namespace codband::server {

// Runs `work` on the pool and completes the call with its result.
template <typename T, typename Work>
void RunOn(boost::asio::thread_pool& pool, Pending<T>& call, Work work) {
  boost::asio::post(pool, [&call, work = std::move(work)] {
    try {
      call.Finish(work());
    } catch (...) {
      call.Fail(std::current_exception());
    }
  });
}

}  // namespace codband::server
