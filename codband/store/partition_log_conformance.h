#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codband/store/partition_log.h"

namespace codband::store {

// What every PartitionLog must do. A backend is a class with
//   Backend(Partition partitions)            a new record
//   std::unique_ptr<PartitionLog> Connect()  another node's log of it
//   void Sleep(std::int64_t ms)
//   void WaitFor(const std::function<bool()>&)   until it is so, or far too long
template <typename Backend>
class PartitionLogConformance : public testing::Test {
 protected:
  static constexpr std::int64_t kLongMs = 60'000;
  static constexpr std::int64_t kShortMs = 60;

  template <typename T>
  T Await(const std::function<void(PartitionLog::Done<T>)>& call) {
    const auto answer = std::make_shared<Answer<T>>();
    call([answer](T value) {
      const std::lock_guard lock(answer->mutex);
      answer->value = std::move(value);
    });
    backend_.WaitFor([&] {
      const std::lock_guard lock(answer->mutex);
      return answer->value.has_value();
    });
    const std::lock_guard lock(answer->mutex);
    return answer->value ? std::move(*answer->value)
                         : T(Status(StatusCode::kCheckFailed, "there was no answer"));
  }

  Result<PartitionState> Acquire(PartitionLog& log, Partition partition, const std::string& node,
                                 std::int64_t lease_ms = kLongMs) {
    return Await<Result<PartitionState>>(
        [&](auto done) { log.Acquire(partition, node, lease_ms, done); });
  }
  StatusCode Append(PartitionLog& log, Claim claim, std::uint64_t sequence, std::string frame) {
    return Await<Status>([&](auto done) { log.Append(claim, sequence, std::move(frame), done); })
        .code();
  }
  StatusCode Release(PartitionLog& log, Claim claim) {
    return Await<Status>([&](auto done) { log.Release(claim, done); }).code();
  }
  StatusCode Truncate(PartitionLog& log, Claim claim, std::uint64_t below) {
    return Await<Status>([&](auto done) { log.Truncate(claim, below, done); }).code();
  }
  Result<std::vector<LogFrame>> Read(PartitionLog& log, Partition partition, std::uint64_t from,
                                     std::size_t most_bytes = 1 << 20) {
    return Await<Result<std::vector<LogFrame>>>(
        [&](auto done) { log.Read(partition, from, most_bytes, done); });
  }
  StatusCode PutBlob(PartitionLog& log, Claim claim, const BlobId& id, const std::string& bytes) {
    return Await<Status>([&](auto done) { log.PutBlob(claim, id, bytes, done); }).code();
  }
  // The bytes, or "(<code>)".
  std::string GetBlob(PartitionLog& log, Partition partition, const BlobId& id) {
    const auto bytes =
        Await<Result<std::string>>([&](auto done) { log.GetBlob(partition, id, done); });
    return bytes.ok() ? bytes.value()
                      : "(" + std::string(StatusCodeName(bytes.status().code())) + ")";
  }
  // 0 if there is none.
  std::uint64_t FindBlob(PartitionLog& log, Partition partition, const std::string& name) {
    const auto found =
        Await<Result<std::uint64_t>>([&](auto done) { log.FindBlob(partition, name, done); });
    EXPECT_TRUE(found.ok() || found.status().code() == StatusCode::kNotFound);
    return found.ok() ? found.value() : 0;
  }
  StatusCode KeepNode(PartitionLog& log, const NodeState& node, std::int64_t lease_ms = kLongMs) {
    return Await<Status>([&](auto done) { log.KeepNode(node, lease_ms, done); }).code();
  }

  Backend backend_{4};
  std::unique_ptr<PartitionLog> a_ = backend_.Connect();
  std::unique_ptr<PartitionLog> b_ = backend_.Connect();

 private:
  template <typename T>
  struct Answer {
    std::mutex mutex;
    std::optional<T> value;
  };
};
TYPED_TEST_SUITE_P(PartitionLogConformance);

TYPED_TEST_P(PartitionLogConformance, ALeaseKeepsOthersOutUntilItIsOver) {
  const auto first = this->Acquire(*this->a_, 1, "a");
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first.value().epoch, 1);
  EXPECT_EQ(first.value().owner, "a");
  EXPECT_EQ(first.value().last_sequence, 0);
  EXPECT_GT(first.value().lease_left_ms, 0);
  EXPECT_LE(first.value().lease_left_ms, this->kLongMs);
  const auto early = this->Acquire(*this->b_, 1, "b");
  EXPECT_EQ(early.status().code(), StatusCode::kConflict);
  EXPECT_NE(early.status().message().find("'a'"), std::string::npos) << early.status().message();
  // A lease lasts from its last renewal on.
  const auto over = this->template Await<Result<std::vector<Claim>>>(
      [&](auto done) { this->a_->Renew({first.value().claim()}, this->kShortMs, done); });
  EXPECT_TRUE(over.value().empty());
  this->backend_.Sleep(2 * this->kShortMs);
  const auto second = this->Acquire(*this->b_, 1, "b");
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_GT(second.value().epoch, first.value().epoch);
}

TYPED_TEST_P(PartitionLogConformance, FramesAreNumberedWithoutGaps) {
  const Claim claim = this->Acquire(*this->a_, 2, "a").value().claim();
  EXPECT_EQ(this->Append(*this->a_, claim, 2, "x"), StatusCode::kInvalidArgument);
  const std::string odd("a\0\xff\n\\", 5);
  EXPECT_EQ(this->Append(*this->a_, claim, 1, odd), StatusCode::kOk);
  EXPECT_EQ(this->Append(*this->a_, claim, 1, "again"), StatusCode::kInvalidArgument);
  EXPECT_EQ(this->Append(*this->a_, claim, 3, "gap"), StatusCode::kInvalidArgument);
  EXPECT_EQ(this->Append(*this->a_, claim, 2, ""), StatusCode::kOk);
  const std::vector<LogFrame> expected{{1, claim.epoch, odd}, {2, claim.epoch, ""}};
  EXPECT_EQ(this->Read(*this->b_, 2, 1).value(), expected);
  EXPECT_TRUE(this->Read(*this->b_, 2, 3).value().empty());
  EXPECT_TRUE(this->Read(*this->b_, 3, 1).value().empty());  // another partition
}

TYPED_TEST_P(PartitionLogConformance, ReadingComesInPages) {
  const Claim claim = this->Acquire(*this->a_, 0, "a").value().claim();
  const std::string large(300'000, 'z');
  for (std::uint64_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(this->Append(*this->a_, claim, i, large + std::to_string(i)), StatusCode::kOk);
  }
  std::uint64_t next = 1;
  int pages = 0;
  while (true) {
    const auto page = this->Read(*this->b_, 0, next, 400'000).value();
    if (page.empty()) break;
    EXPECT_LE(page.size(), 2U);
    for (const LogFrame& frame : page) {
      EXPECT_EQ(frame.sequence, next);
      EXPECT_EQ(frame.bytes, large + std::to_string(next));
      ++next;
    }
    ++pages;
  }
  EXPECT_EQ(next, 6U);
  EXPECT_GE(pages, 3);
}

TYPED_TEST_P(PartitionLogConformance, ATakeoverFencesTheOwnerBefore) {
  const Claim old = this->Acquire(*this->a_, 0, "a", this->kShortMs).value().claim();
  ASSERT_EQ(this->Append(*this->a_, old, 1, "one"), StatusCode::kOk);
  this->backend_.Sleep(2 * this->kShortMs);
  // A lease that is over does not end the claim: only a takeover does.
  ASSERT_EQ(this->Append(*this->a_, old, 2, "two"), StatusCode::kOk);
  const auto taken = this->Acquire(*this->b_, 0, "b");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken.value().last_sequence, 2);
  EXPECT_EQ(this->Append(*this->a_, old, 3, "late"), StatusCode::kGone);
  EXPECT_EQ(this->Truncate(*this->a_, old, 2), StatusCode::kGone);
  EXPECT_EQ(this->PutBlob(*this->a_, old, {"checkpoint", 2, 0}, "x"), StatusCode::kGone);
  EXPECT_EQ(this->Release(*this->a_, old), StatusCode::kGone);
  const auto over = this->template Await<Result<std::vector<Claim>>>(
      [&](auto done) { this->a_->Renew({old}, this->kLongMs, done); });
  EXPECT_EQ(over.value(), std::vector{old});
  ASSERT_EQ(this->Append(*this->b_, taken.value().claim(), 3, "three"), StatusCode::kOk);
  const auto frames = this->Read(*this->a_, 0, 1).value();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[2], (LogFrame{3, taken.value().epoch, "three"}));
}

TYPED_TEST_P(PartitionLogConformance, TruncatedFramesSayThatTheyAre) {
  const Claim claim = this->Acquire(*this->a_, 0, "a").value().claim();
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(this->Append(*this->a_, claim, i, "f"), StatusCode::kOk);
  }
  EXPECT_EQ(this->Truncate(*this->a_, claim, 3), StatusCode::kOk);
  EXPECT_EQ(this->Truncate(*this->a_, claim, 2), StatusCode::kOk);  // nothing comes back
  EXPECT_EQ(this->Read(*this->b_, 0, 2).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(this->Read(*this->b_, 0, 3).value().size(), 2U);
  EXPECT_EQ(this->Truncate(*this->a_, claim, 5), StatusCode::kOk);
  EXPECT_TRUE(this->Read(*this->b_, 0, 5).value().empty());
  EXPECT_EQ(this->Append(*this->a_, claim, 5, "g"), StatusCode::kOk);
  EXPECT_EQ(this->Read(*this->b_, 0, 5).value().size(), 1U);
}

TYPED_TEST_P(PartitionLogConformance, RenewedLeasesGoOnAndReleasedOnesAreFree) {
  const Claim claim = this->Acquire(*this->a_, 0, "a", this->kShortMs).value().claim();
  const Claim other = this->Acquire(*this->a_, 3, "a", this->kShortMs).value().claim();
  const auto over = this->template Await<Result<std::vector<Claim>>>([&](auto done) {
    this->a_->Renew({claim, other}, this->kLongMs, done);
  });
  EXPECT_TRUE(over.value().empty());
  this->backend_.Sleep(2 * this->kShortMs);
  EXPECT_EQ(this->Acquire(*this->b_, 0, "b").status().code(), StatusCode::kConflict);
  EXPECT_EQ(this->Release(*this->a_, claim), StatusCode::kOk);
  EXPECT_EQ(this->Append(*this->a_, claim, 1, "late"), StatusCode::kGone);
  EXPECT_TRUE(this->Acquire(*this->b_, 0, "b").ok());
  const auto map = this->template Await<Result<std::vector<PartitionState>>>(
      [&](auto done) { this->a_->ListPartitions(done); });
  ASSERT_TRUE(map.ok()) << map.status().ToString();
  ASSERT_EQ(map.value().size(), 4U);
  std::string owners;
  for (Partition i = 0; i < 4; ++i) {
    EXPECT_EQ(map.value()[i].partition, i);
    owners += map.value()[i].owner.empty() ? "-" : map.value()[i].owner;
  }
  EXPECT_EQ(owners, "b--a");
}

TYPED_TEST_P(PartitionLogConformance, OneOfTwoGetsAPartition) {
  int taken = 0;
  int answers = 0;
  std::mutex mutex;
  const auto count = [&](const Result<PartitionState>& state) {
    const std::lock_guard lock(mutex);
    ++answers;
    if (state.ok()) ++taken;
  };
  for (Partition i = 0; i < 4; ++i) {
    this->a_->Acquire(i, "a", this->kLongMs, count);
    this->b_->Acquire(i, "b", this->kLongMs, count);
  }
  this->backend_.WaitFor([&] {
    const std::lock_guard lock(mutex);
    return answers == 8;
  });
  const std::lock_guard lock(mutex);
  EXPECT_EQ(answers, 8);
  EXPECT_EQ(taken, 4);
}

TYPED_TEST_P(PartitionLogConformance, TheNewestCompleteVersionOfABlobIsFound) {
  const Claim claim = this->Acquire(*this->a_, 1, "a").value().claim();
  EXPECT_EQ(this->FindBlob(*this->b_, 1, "checkpoint"), 0U);
  const std::string large(1 << 20, '\0');
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"checkpoint", 7, 1}, large), StatusCode::kOk);
  EXPECT_EQ(this->FindBlob(*this->b_, 1, "checkpoint"), 0U);
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"checkpoint", 7, 0}, "one part"), StatusCode::kOk);
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"checkpoint", 9, 1}, "half"), StatusCode::kOk);
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"other", 11, 0}, "x"), StatusCode::kOk);
  EXPECT_EQ(this->FindBlob(*this->b_, 1, "checkpoint"), 7U);
  EXPECT_EQ(this->FindBlob(*this->b_, 2, "checkpoint"), 0U);
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"checkpoint", 7, 1}), large);
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"checkpoint", 7, 2}), "(kNotFound)");
  const auto listed = this->template Await<Result<std::vector<BlobPart>>>(
      [&](auto done) { this->b_->ListBlobs(1, done); });
  const std::vector<BlobPart> all{{.id = {"checkpoint", 7, 0}, .bytes = 8},
                                  {.id = {"checkpoint", 7, 1}, .bytes = large.size()},
                                  {.id = {"checkpoint", 9, 1}, .bytes = 4},
                                  {.id = {"other", 11, 0}, .bytes = 1}};
  EXPECT_EQ(listed.value(), all);
  // A part may be put again.
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"checkpoint", 9, 1}, "whole"), StatusCode::kOk);
  EXPECT_EQ(this->PutBlob(*this->a_, claim, {"checkpoint", 9, 0}, "one part"), StatusCode::kOk);
  EXPECT_EQ(this->FindBlob(*this->b_, 1, "checkpoint"), 9U);
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"checkpoint", 9, 1}), "whole");
  const Status deleted = this->template Await<Status>(
      [&](auto done) { this->a_->DeleteBlobs(claim, "checkpoint", 9, done); });
  EXPECT_TRUE(deleted.ok());
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"checkpoint", 7, 0}), "(kNotFound)");
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"checkpoint", 9, 0}), "one part");
  EXPECT_EQ(this->GetBlob(*this->b_, 1, {"other", 11, 0}), "x");
}

TYPED_TEST_P(PartitionLogConformance, ANameBelongsToOneLivingNode) {
  const NodeState first{.name = "n", .url = "http://one", .instance = "1"};
  const NodeState second{.name = "n", .url = "http://two", .instance = "2"};
  EXPECT_EQ(this->KeepNode(*this->a_, first), StatusCode::kOk);
  EXPECT_EQ(this->KeepNode(*this->b_, second), StatusCode::kConflict);
  EXPECT_EQ(this->KeepNode(*this->a_, first, this->kShortMs), StatusCode::kOk);
  this->backend_.Sleep(2 * this->kShortMs);
  EXPECT_EQ(this->KeepNode(*this->b_, second), StatusCode::kOk);
  EXPECT_EQ(this->KeepNode(*this->a_, first), StatusCode::kConflict);
  const auto list = [&] {
    return this
        ->template Await<Result<std::vector<NodeState>>>(
            [&](auto done) { this->a_->ListNodes(done); })
        .value();
  };
  ASSERT_EQ(list().size(), 1U);
  EXPECT_EQ(list()[0].url, "http://two");
  EXPECT_GT(list()[0].lease_left_ms, 0);
  const auto remove = [&](const std::string& instance) {
    return this
        ->template Await<Status>([&](auto done) { this->a_->RemoveNode("n", instance, done); })
        .ok();
  };
  EXPECT_TRUE(remove("1"));  // it is not that one any more
  EXPECT_EQ(list().size(), 1U);
  EXPECT_TRUE(remove("2"));
  EXPECT_TRUE(list().empty());
}

TYPED_TEST_P(PartitionLogConformance, OneOfTwoAppendsAFrameThatAllShare) {
  const auto append = [&](PartitionLog& log, std::uint64_t sequence, const std::string& frame) {
    return this->template Await<Status>([&](auto done) { log.AppendShared(sequence, frame, done); })
        .code();
  };
  const auto read = [&](PartitionLog& log, std::uint64_t from, std::size_t most_bytes) {
    std::string text;
    const auto frames = this->template Await<Result<std::vector<LogFrame>>>(
        [&](auto done) { log.ReadShared(from, most_bytes, done); });
    EXPECT_TRUE(frames.ok()) << frames.status().ToString();
    if (!frames.ok()) return text;
    for (const LogFrame& frame : frames.value()) {
      text += std::to_string(frame.sequence) + frame.bytes + " ";
    }
    return text;
  };
  EXPECT_EQ(read(*this->a_, 1, 100), "");
  EXPECT_EQ(append(*this->a_, 2, "early"), StatusCode::kConflict);
  EXPECT_EQ(append(*this->a_, 1, "one"), StatusCode::kOk);
  EXPECT_EQ(append(*this->b_, 1, "other"), StatusCode::kConflict);
  EXPECT_EQ(append(*this->b_, 2, "two"), StatusCode::kOk);
  EXPECT_EQ(append(*this->a_, 3, "three"), StatusCode::kOk);
  EXPECT_EQ(read(*this->b_, 1, 100), "1one 2two 3three ");
  EXPECT_EQ(read(*this->b_, 2, 1), "2two ");
  EXPECT_EQ(read(*this->b_, 4, 100), "");
}

TYPED_TEST_P(PartitionLogConformance, WhatAnOperatorWantsIsThereUntilItIsTakenBack) {
  const auto want = [&](Partition partition, const std::string& node) {
    return this->template Await<Status>([&](auto done) { this->a_->Want(partition, node, done); })
        .code();
  };
  const auto drain = [&](const std::string& node, bool draining) {
    return this
        ->template Await<Status>([&](auto done) { this->a_->SetDraining(node, draining, done); })
        .code();
  };
  const auto partitions = [&] {
    return this
        ->template Await<Result<std::vector<PartitionState>>>(
            [&](auto done) { this->b_->ListPartitions(done); })
        .value();
  };
  const auto node = [&] {
    return this
        ->template Await<Result<std::vector<NodeState>>>(
            [&](auto done) { this->b_->ListNodes(done); })
        .value()
        .at(0);
  };
  EXPECT_EQ(want(3, "n"), StatusCode::kOk);
  EXPECT_EQ(want(4, "n"), StatusCode::kNotFound);
  EXPECT_TRUE(this->Acquire(*this->a_, 3, "m").ok());
  EXPECT_EQ(partitions()[3].wanted, "n");
  EXPECT_EQ(partitions()[2].wanted, "");
  EXPECT_EQ(want(3, ""), StatusCode::kOk);
  EXPECT_EQ(partitions()[3].wanted, "");
  EXPECT_EQ(drain("n", true), StatusCode::kNotFound);
  const NodeState first{.name = "n", .url = "http://one", .instance = "1", .version = "0.9"};
  EXPECT_EQ(this->KeepNode(*this->a_, first, this->kShortMs), StatusCode::kOk);
  EXPECT_EQ(node().version, "0.9");
  EXPECT_FALSE(node().draining);
  EXPECT_EQ(drain("n", true), StatusCode::kOk);
  EXPECT_EQ(this->KeepNode(*this->a_, first, this->kShortMs), StatusCode::kOk);
  EXPECT_TRUE(node().draining);
  this->backend_.Sleep(2 * this->kShortMs);
  const NodeState second{.name = "n", .url = "http://one", .instance = "2", .version = "1.0"};
  EXPECT_EQ(this->KeepNode(*this->a_, second), StatusCode::kOk);
  EXPECT_FALSE(node().draining);
  EXPECT_EQ(node().version, "1.0");
}

TYPED_TEST_P(PartitionLogConformance, WatchTellsOfANewOwner) {
  std::atomic<int> told{0};
  this->b_->Watch([&] { ++told; });
  // The record is told of the watch some time after the call.
  for (Partition i = 0; i < 4 && told == 0; ++i) {
    ASSERT_TRUE(this->Acquire(*this->a_, i, "a").ok());
    this->backend_.Sleep(500);
  }
  EXPECT_GT(told, 0);
  this->b_.reset();  // nobody is told after that
}

REGISTER_TYPED_TEST_SUITE_P(PartitionLogConformance, ALeaseKeepsOthersOutUntilItIsOver,
                            FramesAreNumberedWithoutGaps, ReadingComesInPages,
                            ATakeoverFencesTheOwnerBefore, TruncatedFramesSayThatTheyAre,
                            RenewedLeasesGoOnAndReleasedOnesAreFree, OneOfTwoGetsAPartition,
                            TheNewestCompleteVersionOfABlobIsFound, ANameBelongsToOneLivingNode,
                            OneOfTwoAppendsAFrameThatAllShare,
                            WhatAnOperatorWantsIsThereUntilItIsTakenBack, WatchTellsOfANewOwner);

}  // namespace codband::store
