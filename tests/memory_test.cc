// Memory for each user: counts the heap in use while a population grows.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "codband/policy/paged_users.h"
#include "codband/policy/test_support.h"

namespace {

// Including the overhead of the allocator. One thread only.
std::size_t heap_in_use = 0;

std::size_t SizeOf(void* memory) { return malloc_usable_size(memory) + sizeof(std::size_t); }

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  heap_in_use += SizeOf(memory);
  return memory;
}

void* AllocateAligned(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return Counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}

void Free(void* memory) {
  if (memory != nullptr) heap_in_use -= SizeOf(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Counted(std::malloc(size)); }
void* operator new[](std::size_t size) { return Counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t a) { return AllocateAligned(size, a); }
void* operator new[](std::size_t size, std::align_val_t a) { return AllocateAligned(size, a); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace codband {
namespace {

constexpr std::size_t kDim = 25;

// Users with three periods or more: some forgotten, one remembered, one that goes on.
class Population {
 public:
  Population() : policy_(MakeOrDie("codband", {.dim = kDim})), tastes_(2) {
    RandomStream random({1, 0}, 600);
    for (auto& taste : tastes_) {
      taste.resize(kDim);
      random.FillNormal(taste);
    }
  }

  void GrowTo(UserId users) {
    for (; users_ < users; ++users_) {
      for (std::size_t period = 0; period < 3; ++period) Live(tastes_[(users_ + period) % 2]);
      ASSERT_GE(decision_.period, 2U) << "user " << users_;
    }
  }

  const Policy& policy() const { return *policy_; }
  const PagedUsers& users() { return *policy_->paged_users(); }

 private:
  // A change can be found from observation 26 of a period on; the first of a new taste is left out.
  void Live(std::span<const double> taste) {
    for (int i = 0; i < 40; ++i, ++event_) {
      RandomStream random({1, event_}, 601);
      std::vector<double> arm(kDim);
      random.FillNormal(arm);
      policy_->Choose(users_, {arm, kDim}, {1, event_}, decision_);
      policy_->Learn(decision_, linalg::Dot(arm, taste) + 0.1 * random.Normal(), {1, event_});
    }
  }

  std::unique_ptr<Policy> policy_;
  std::vector<std::vector<double>> tastes_;
  Decision decision_;
  UserId users_ = 0;
  std::uint64_t event_ = 0;
};

// What limits the users in memory must be true.
TEST(MemoryTest, RecordsSayWhatTheyTake) {
  constexpr UserId kUsers = 100;
  Population population;
  population.GrowTo(kUsers);
  const std::size_t before = heap_in_use;
  const std::size_t said_before = population.users().bytes_in_memory();
  population.GrowTo(3 * kUsers);
  const auto heap = static_cast<double>(heap_in_use - before);
  const auto said = static_cast<double>(population.users().bytes_in_memory() - said_before);
  EXPECT_GT(said, 0.9 * heap);
  EXPECT_LT(said, 1.1 * heap);
}

TEST(MemoryTest, UserOfTheDefaultPolicyCostsAtMostSixKibibytes) {
  constexpr UserId kUsers = 150;
  Population population;
  population.GrowTo(kUsers);
  const std::size_t models = population.policy().model_count();
  const std::size_t before = heap_in_use;
  population.GrowTo(2 * kUsers);
  // The memory of the models does not depend on the number of users.
  ASSERT_EQ(population.policy().model_count(), models);
  const std::size_t bytes = (heap_in_use - before) / kUsers;
  RecordProperty("bytes_per_user", static_cast<int>(bytes));
  EXPECT_LE(bytes, 6144U);
  EXPECT_GT(bytes, 3000U);  // the sums of the current period alone
}

}  // namespace
}  // namespace codband
