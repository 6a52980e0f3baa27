#include "codband/engine/left_right.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace codband::engine {
namespace {

// Every number is the same, unless a change is half made.
using Numbers = std::array<std::uint64_t, 64>;

TEST(LeftRightTest, ReadersNeverSeeAHalfMadeChange) {
  constexpr int kReaders = 4;
  constexpr std::uint64_t kLooks = 400;  // that all readers together take at least
  LeftRight<Numbers> numbers({}, {});
  std::atomic<bool> finished = false;
  std::atomic<std::uint64_t> looks = 0;
  std::atomic<std::uint64_t> changes = 0;
  std::atomic<std::uint64_t> torn = 0;
  std::atomic<std::uint64_t> backwards = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      // At least one look after the last change.
      for (bool again = true; again;) {
        again = !finished;
        numbers.Read([&](const Numbers& seen) {
          for (const std::uint64_t number : seen) torn += number != seen.front();
          backwards += seen.front() < last;
          last = seen.front();
        });
        ++looks;
        std::this_thread::yield();  // the writer has to have its turn too
      }
      EXPECT_EQ(last, changes);
    });
  }
  while (changes < 300 || looks < kLooks) {
    numbers.Write([](Numbers& copy) {
      for (std::uint64_t& number : copy) ++number;
    });
    ++changes;
    if (changes % 16 == 0) std::this_thread::yield();
  }
  finished = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_EQ(backwards, 0U);
}

TEST(LeftRightTest, ShowsAChangeBeforeItIsMadeTwice) {
  LeftRight<int> number(1, 1);
  int made = 0;
  number.Write(
      [&](int& copy) {
        ++made;
        copy = 7;
      },
      [&] {
        EXPECT_EQ(made, 1);
        EXPECT_EQ(number.Read([](int seen) { return seen; }), 7);
      });
  EXPECT_EQ(made, 2);
  EXPECT_EQ(number.Read([](int seen) { return seen; }), 7);
}

TEST(LeftRightTest, BothCopiesKeepEveryChange) {
  LeftRight<std::vector<int>> list({}, {});
  for (int i = 0; i < 5; ++i) {
    list.Write([&](std::vector<int>& copy) { copy.push_back(i); });
    // Each change swaps the copies, so that both are seen in turn.
    list.Read([&](const std::vector<int>& seen) {
      ASSERT_EQ(seen.size(), static_cast<std::size_t>(i) + 1);
      for (int j = 0; j <= i; ++j) EXPECT_EQ(seen[static_cast<std::size_t>(j)], j);
    });
  }
}

// A reader who stays holds up the writer's second change, not the first, and no other reader.
TEST(LeftRightTest, AReaderWhoStaysKeepsItsCopy) {
  LeftRight<Numbers> numbers({}, {});
  std::atomic<bool> shown = false;
  std::thread writer;
  numbers.Read([&](const Numbers& seen) {
    writer = std::thread([&] {
      numbers.Write(
          [](Numbers& copy) {
            for (std::uint64_t& number : copy) ++number;
          },
          [&] { shown = true; });
    });
    while (!shown) std::this_thread::yield();
    EXPECT_EQ(numbers.Read([](const Numbers& fresh) { return fresh.front(); }), 1U);
    for (const std::uint64_t number : seen) EXPECT_EQ(number, 0U);
  });
  writer.join();
}

}  // namespace
}  // namespace codband::engine
