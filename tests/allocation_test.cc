// Hot paths allocate nothing: counts calls of operator new while a policy chooses and learns.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "codband/policy/test_support.h"
#include "tests/policy_specs.h"

namespace {

std::atomic<long> allocations = 0;

void* Allocate(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void* AllocateAligned(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void* operator new(std::size_t size, std::align_val_t a) { return AllocateAligned(size, a); }
void* operator new[](std::size_t size, std::align_val_t a) { return AllocateAligned(size, a); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace codband {
namespace {

class AllocationTest : public testing::TestWithParam<std::string> {};

TEST_P(AllocationTest, ASettledPopulationIsServedWithoutAllocating) {
  // Every 50 observations it refits two windows, and refills them after each of its false alarms.
  if (GetParam() == "adts") GTEST_SKIP() << "allocates in its periodic test";
  constexpr int kVisits = 6000;
  TestWorld world(1);
  const auto policy = MakeOrDie(GetParam(), world.context());
  std::vector<std::vector<double>> arms;
  for (int i = 0; i < kVisits; ++i) {
    world.set_step(static_cast<std::uint64_t>(i));
    arms.push_back(world.Arms());
  }
  world.set_step(0);  // no user changes
  Decision decision;
  long before = 0;
  for (std::uint64_t i = 0; i < kVisits; ++i) {
    if (i == kVisits / 2) before = allocations;
    policy->Choose(i % TestWorld::kUsers, {arms[i], TestWorld::kDim}, {1, i}, decision);
    policy->Learn(decision, world.Reward(decision), {1, i});
  }
  EXPECT_EQ(allocations - before, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, AllocationTest, testing::ValuesIn(RegisteredSpecs()),
                         NameOfSpec);

}  // namespace
}  // namespace codband
