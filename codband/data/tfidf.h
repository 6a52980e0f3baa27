#pragma once

#include <cstddef>

#include "codband/data/sparse_matrix.h"

namespace codband::data {

struct TfIdfOptions {
  bool log_tf = false;            // 1 + ln(count) instead of the count
  std::size_t min_documents = 1;  // terms in fewer documents are dropped
};

// TF-IDF weights: a document is a row, a term a column, an entry (> 0) the count of the term in the
// document. The weight is tf · idf, with tf the count (or 1 + ln(count)) and the smoothed idf
//   ln((1 + documents) / (1 + documents with the term)) + 1,
// then every row is scaled to norm 1; a row without terms stays zero. Dropped terms keep an empty
// column.
SparseMatrix TfIdf(const SparseMatrix& counts, const TfIdfOptions& options = {});

}  // namespace codband::data
