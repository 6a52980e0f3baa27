#pragma once

#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/cluster/replica.h"
#include "codband/store/store.h"

namespace codband::cluster {

// What one group commit writes, as the bytes of a frame: every change of the batch, in its order.
std::string EncodeFrame(const store::StoreBatch& batch);
// kCorruption on bytes that EncodeFrame cannot have written; no input can crash it.
Result<store::StoreBatch> DecodeFrame(std::string_view bytes);

// A store that follows a partition's log has its position in a record of kMeta, which is written
// with the changes of the frame: both or neither.
void PutPosition(const Position& position, store::StoreBatch& batch);
// Writes a frame and its position, without a sync; returns what was written.
Result<store::StoreBatch> ApplyFrame(const store::LogFrame& frame, store::Store& store);
// 0 if there is none.
Result<Position> GetPosition(const store::Store& store);

}  // namespace codband::cluster
