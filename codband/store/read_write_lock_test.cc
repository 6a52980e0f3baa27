#include "codband/store/read_write_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace codband::store {

class ReadWriteLockPeer {
 public:
  static void AwaitWriter(const ReadWriteLock& lock) {
    while (!lock.writer_waits_) std::this_thread::yield();
  }
};

namespace {

TEST(ReadWriteLockTest, ACallbackReadsAgainWhileAWriterWaits) {
  const ReadWriteLock lock;
  std::atomic<bool> written = false;
  std::thread writer;
  {
    const ReadWriteLock::CallbackGuard scan(lock);
    writer = std::thread([&] {
      const ReadWriteLock::WriteGuard guard(lock);
      written = true;
    });
    ReadWriteLockPeer::AwaitWriter(lock);
    {
      const ReadWriteLock::ReadGuard get(lock);
      EXPECT_FALSE(written);
    }
    {
      const ReadWriteLock::CallbackGuard inner_scan(lock);
      const ReadWriteLock::ReadGuard get(lock);
      EXPECT_FALSE(written);
    }
    EXPECT_TRUE(lock.IsInCallback()) << "the outer scan goes on";
    EXPECT_FALSE(written);
  }
  writer.join();
  EXPECT_TRUE(written);
  EXPECT_FALSE(lock.IsInCallback());
}

TEST(ReadWriteLockTest, NewReadersQueueBehindAWriterThatWaits) {
  const ReadWriteLock lock;
  std::atomic<bool> written = false;
  std::atomic<bool> reader_comes = false;
  std::vector<std::thread> threads;
  {
    const ReadWriteLock::ReadGuard first(lock);
    threads.emplace_back([&] {
      const ReadWriteLock::WriteGuard guard(lock);
      written = true;
    });
    ReadWriteLockPeer::AwaitWriter(lock);
    threads.emplace_back([&] {
      reader_comes = true;
      const ReadWriteLock::ReadGuard second(lock);
      EXPECT_TRUE(written);
    });
    while (!reader_comes) std::this_thread::yield();
    // Time in which a reader that does not queue would enter before the writer.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ReadWriteLockTest, ACallbackIsOfOneThreadAndOneLock) {
  const ReadWriteLock a, b;
  EXPECT_FALSE(a.IsInCallback());
  const ReadWriteLock::CallbackGuard in_a(a);
  EXPECT_TRUE(a.IsInCallback());
  EXPECT_FALSE(b.IsInCallback());
  const ReadWriteLock::CallbackGuard in_b(b);
  EXPECT_TRUE(a.IsInCallback());
  EXPECT_TRUE(b.IsInCallback());
  std::thread([&] { EXPECT_FALSE(a.IsInCallback()); }).join();
}

TEST(ReadWriteLockTest, AWriterIsAlone) {
  const ReadWriteLock lock;
  int plain = 0;  // ThreadSanitizer sees whether it is guarded
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        if (t == 0) {
          const ReadWriteLock::WriteGuard guard(lock);
          ++plain;
          ++plain;
        } else if (t == 1) {
          const ReadWriteLock::CallbackGuard guard(lock);
          const ReadWriteLock::ReadGuard again(lock);
          EXPECT_EQ(plain % 2, 0);
        } else {
          const ReadWriteLock::ReadGuard guard(lock);
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
