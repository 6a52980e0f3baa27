// How the committer gives out columns: to names of requests and of items.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/check.h"
#include "codband/engine/committer.h"

namespace codband::engine {

void Committer::AddColumns(RankCommand& command, CommitGroup& group) {
  if (clerk_ == nullptr) return;
  clerk_->Note(command.context_columns, command.user, group.batch);
  if (command.columns == nullptr) return;
  const std::size_t first = clerk_->size();
  const bool asks = static_cast<bool>(options_.share_catalogue);
  ColumnClerk::Additions additions =
      asks ? clerk_->Ask(*command.columns, command.user, group.batch)
           : clerk_->Admit(*command.columns, command.user, group.batch);
  auto pending = PendingDecision::Decode(command.pending);
  CODBAND_CHECK(pending.ok());  // encoded a moment ago
  pending.value().decision.features = clerk_->FeaturesOf(*command.columns);
  command.pending = pending.value().Encode();
  if (additions.empty()) return;
  if (asks) return AskLoop(std::move(additions), group);
  command.done = LogColumns(first, std::move(additions), std::move(command.done), group);
}

// Nobody waits for it: what gets lost is asked for again by later requests.
void Committer::AskLoop(ColumnClerk::Additions columns, CommitGroup& group) const {
  group.after.push_back([this, columns = std::move(columns)](const Status& status) mutable {
    if (!status.ok()) return;
    CatalogueChange change;
    change.columns = std::move(columns);
    options_.share_catalogue(std::move(change), [](const Status&) {});
  });
}

Engine::Done<Status> Committer::LogColumns(std::size_t first, ColumnClerk::Additions additions,
                                           Engine::Done<Status> done, CommitGroup& group) const {
  using features::ColumnSpace;
  struct Both {
    std::atomic<int> left{2};
    Status status;
    Engine::Done<Status> done;

    void Arrive() {
      if (left.fetch_sub(1) == 1) done(status);
    }
  };
  const bool shares = std::ranges::any_of(additions, [](const ColumnSpace::Addition& each) {
    return each.kind == ColumnSpace::Kind::kShared;
  });
  const auto both = std::make_shared<Both>();
  both->done = std::move(done);
  // The request is done even if learning waits.
  group.Log({.kind = LogRecord::Kind::kColumns,
             .time_ms = group.wall_ms,
             .first_column = first,
             .additions = std::move(additions)},
            [both](const Status&) { both->Arrive(); });
  if (shares) {
    group.after.push_back([this](const Status& status) {
      if (!status.ok() || !options_.log) return;
      options_.log({.level = LogLevel::kWarning,
                    .cause = "columns",
                    .message = fmt::format(
                        "features.max_columns ({}) is used up, or what it leaves to requests and "
                        "crossings: from now on what is new shares {} columns by a hash, which "
                        "blurs it; GET /v1/features tells what shares",
                        options_.columns.columns, options_.columns.shared())});
    });
  }
  return [both](const Status& status) {
    both->status = status;
    both->Arrive();
  };
}

void Committer::Process(PutItemsCommand& command, CommitGroup& group) {
  for (const auto& item : command.items) {
    group.batch.Put(store::Table::kItems, item->id, EncodeItem(*item));
  }
  std::vector<features::Cells> cells;
  if (clerk_ != nullptr) {
    const std::size_t first = clerk_->size();
    ColumnClerk::Additions additions;
    if (options_.share_catalogue) {
      clerk_->Place(command.items, cells);
    } else {
      additions = clerk_->Admit(command.items, cells);
    }
    if (!additions.empty()) {
      command.done = LogColumns(first, std::move(additions), std::move(command.done), group);
    }
  }
  for (const auto& item : command.items) group.put_items.insert(item->id);
  group.after.push_back([this, items = std::move(command.items), cells = std::move(cells),
                         done = std::move(command.done)](const Status& status) {
    if (status.ok()) catalogue_.Write([&](Catalogue& catalogue) { catalogue.Put(items, cells); });
    done(status);
  });
}

}  // namespace codband::engine
