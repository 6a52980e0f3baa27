#include "codband/store/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace codband::store {
namespace {

TEST(GateTest, WhoIsInMayEnterAgainWhileAnotherWaitsToBeAlone) {
  const Gate gate;
  std::atomic<bool> waiting = false, alone = false;
  std::thread other;
  {
    const Gate::Shared first(gate);
    other = std::thread([&] {
      waiting = true;
      const Gate::Alone turn(gate);
      alone = true;
    });
    while (!waiting || !gate.IsAwaited()) std::this_thread::yield();
    const Gate::Shared second(gate);
    EXPECT_TRUE(gate.IsInside());
    EXPECT_FALSE(alone);
  }
  other.join();
  EXPECT_TRUE(alone);
  EXPECT_FALSE(gate.IsInside());
}

TEST(GateTest, GatesDoNotKnowEachOther) {
  const Gate a, b;
  const Gate::Shared in_a(a);
  EXPECT_TRUE(a.IsInside());
  EXPECT_FALSE(b.IsInside());
  const Gate::Shared in_b(b);
  EXPECT_TRUE(a.IsInside());
  EXPECT_TRUE(b.IsInside());
  std::thread([&] { EXPECT_FALSE(a.IsInside()); }).join();
}

TEST(GateTest, WhoIsAloneIsAlone) {
  const Gate gate;
  int plain = 0;  // ThreadSanitizer sees whether it is guarded
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        if (t == 0) {
          const Gate::Alone alone(gate);
          ++plain;
          ++plain;
        } else {
          const Gate::Shared shared(gate);
          EXPECT_EQ(plain % 2, 0);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(plain, 1000);
}

}  // namespace
}  // namespace codband::store
