#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "codband/base/status.h"
#include "codband/store/store.h"

namespace codband::engine {

// Puts the stores of all partitions of a loop together into that of one server: the opposite of
// StoreSplitter. What each has learned of its own users is added up (SharedPool::Join), by the
// prior and the names of models of the newest pool that any has imported. Those without an id
// become one user. The catalogue and the columns are those of the partition that has followed the
// loop's farthest.
//
// Waits for rewards are counted by each partition's own clock: they are moved to the one that is
// ahead, and none becomes shorter.
//
// `open` opens the store of a partition, which has learned all (LearnAll) and does not change; of
// each of them several times. `whole` is empty. kInvalidArgument: they cannot be put together.
using OpenPartition = std::function<Result<std::unique_ptr<store::Store>>(std::uint32_t partition)>;
Status JoinStores(std::uint32_t partitions, const OpenPartition& open, store::Store& whole);

}  // namespace codband::engine
