#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/string_hash.h"
#include "codband/engine/engine.h"
#include "codband/engine/named_offer.h"
#include "codband/policy/policy.h"

namespace codband::engine {

// The arms on offer, with their features row after row. Borrows from the request and the catalogue.
struct Offer {
  std::vector<std::string_view> ids;
  std::vector<HashedText> hashed;  // those of the request
  std::vector<double> gathered;    // unless the catalogue's own features can be used
  std::vector<ItemId> items;       // the same
  // What the features were hashed from; nullptr: given as numbers, or every name has a column.
  std::vector<const std::vector<features::NamedFeature>*> named;
  ArmsView arms;
  NamedOffer by_name;  // where every name has a column
  bool whole_catalogue = false;
};

// The buffers of one ranking, kept for the next one.
struct RankWorkspace {
  struct Place {  // scores beside the arms: they are compared many times
    double score;
    std::uint32_t arm;
  };
  Offer offer;
  Ranking ranking;
  RankReply reply;
  std::vector<Place> order;
  std::vector<std::uint32_t> slots;  // of a hash table: 0 is empty, else index of a candidate + 1
  std::size_t most_arms = 0;         // that these buffers have been used for
};

// Workspaces that wait for their next ranking. There are as many as rankings ran at the same time
// at most, and each has memory for `kept_arms` arms at most (see Lease). Thread-safe.
class RankWorkspaces {
 public:
  // A workspace for one ranking; back to the pool when it goes out of scope.
  class Lease {
   public:
    explicit Lease(RankWorkspaces& pool) : pool_(pool), workspace_(pool.Take()) {}
    ~Lease() { pool_.Return(std::move(workspace_), kept_arms_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    RankWorkspace& operator*() const { return *workspace_; }
    // If more arms than this have been ranked in the workspace its memory is freed, not kept.
    void set_kept_arms(std::size_t kept_arms) { kept_arms_ = kept_arms; }

   private:
    RankWorkspaces& pool_;
    std::unique_ptr<RankWorkspace> workspace_;
    std::size_t kept_arms_ = 0;
  };

  // How many are kept, and for how many arms they have memory together.
  struct Size {
    std::size_t workspaces = 0;
    std::size_t arms = 0;
  };
  Size size() const {
    const std::lock_guard lock(mutex_);
    Size size{.workspaces = kept_.size()};
    for (const auto& workspace : kept_) size.arms += workspace->most_arms;
    return size;
  }

 private:
  std::unique_ptr<RankWorkspace> Take() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return std::make_unique<RankWorkspace>();
    std::unique_ptr<RankWorkspace> workspace = std::move(kept_.back());
    kept_.pop_back();
    return workspace;
  }
  void Return(std::unique_ptr<RankWorkspace> workspace, std::size_t kept_arms) {
    if (workspace->most_arms > kept_arms) return;
    workspace->offer.ids.clear();
    workspace->offer.hashed.clear();
    workspace->offer.named.clear();
    workspace->offer.gathered.clear();
    workspace->offer.items.clear();
    workspace->offer.by_name.Clear();
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(workspace));
  }

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<RankWorkspace>> kept_;
};

}  // namespace codband::engine
