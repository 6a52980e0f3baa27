#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/linalg/linear_prior.h"
#include "codband/policy/codband/column_scales.h"
#include "codband/policy/codband/hyper_evidence.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/item_sums.h"
#include "codband/policy/model_aliases.h"

namespace codband {

// Sums that add up over partitions.
struct PoolSums {
  std::vector<ModelSums> models;  // in the order of ids
  std::vector<ItemSums> items;    // the same
  HyperEvidence evidence = {};

  void Save(ByteWriter& out) const;
  // `dim`: of the models, intercept included.
  void Load(ByteReader& in, std::size_t dim);
};

// What a partition of codband publishes (shared_pool.h).
struct PoolRegister {
  std::uint32_t partition = 0;
  std::uint64_t version = 0;
  linalg::LinearPrior prior = {};
  std::string groups = {};  // of columns, see ColumnGroups::Save
  std::vector<ColumnScales::Proposal> columns = {};
  double concentration = 1;
  std::uint64_t erasures = 0;  // how many users were forgotten
  ModelId nobody = kNoModel;   // the model of those without an id, which is theirs alone
  PoolSums sums = {};

  std::string Encode() const;
  static Result<PoolRegister> Decode(std::string_view bytes);
};

// A pool as one partition imports it.
struct PoolImport {
  std::uint32_t partition = 0;
  std::uint64_t version = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> vector = {};  // versions of the registers
  std::uint64_t erasures = 0;                                        // in all registers
  linalg::LinearPrior prior = {};
  std::string groups = {};
  std::vector<ColumnScales::Proposal> columns = {};  // as agreed
  ModelAliases aliases = {};
  PoolSums others = {};  // without this partition's

  std::string Encode() const;
  static Result<PoolImport> Decode(std::string_view bytes);
  // Of the models in it, intercept included; 0 if the bytes cannot be read. Faster than Decode.
  static std::size_t DimOf(std::string_view bytes);

 private:
  // Up to the prior.
  static PoolImport LoadHead(ByteReader& in);
};

}  // namespace codband
