#pragma once

#include <cstddef>

#include "codband/data/sparse_matrix.h"

namespace codband::data {

struct TfIdfOptions {
  bool log_tf = false;            // 1 + ln(count) instead of the count
  std::size_t min_documents = 1;  // terms that fewer documents have are left out
};

// Weighs terms: a document is a row, a term a column, an entry how often the term is in the
// document
// (> 0). The weight is tf · idf, with tf the count (or 1 + ln(count)) and the smoothed idf
//   ln((1 + documents) / (1 + documents with the term)) + 1,
// then every row is scaled to norm 1; a row without terms stays zero. Terms that are left out keep
// their column, empty.
SparseMatrix TfIdf(const SparseMatrix& counts, const TfIdfOptions& options = {});

}  // namespace codband::data
