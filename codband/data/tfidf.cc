#include "codband/data/tfidf.h"

#include <cmath>
#include <vector>

namespace codband::data {

SparseMatrix TfIdf(const SparseMatrix& counts, const TfIdfOptions& options) {
  std::vector<std::size_t> documents(counts.cols);
  for (const std::uint32_t term : counts.column) ++documents[term];
  std::vector<double> idf(counts.cols);
  for (std::size_t term = 0; term < counts.cols; ++term) {
    idf[term] = std::log((1 + static_cast<double>(counts.rows())) /
                         (1 + static_cast<double>(documents[term]))) +
                1;
  }
  SparseMatrix weights;
  weights.cols = counts.cols;
  for (std::size_t row = 0; row < counts.rows(); ++row) {
    const std::size_t begin = weights.value.size();
    double squares = 0;
    for (std::size_t e = counts.row_begin[row]; e < counts.row_begin[row + 1]; ++e) {
      const std::uint32_t term = counts.column[e];
      if (documents[term] < options.min_documents) continue;
      const double tf = options.log_tf ? 1 + std::log(counts.value[e]) : counts.value[e];
      weights.column.push_back(term);
      weights.value.push_back(tf * idf[term]);
      squares += weights.value.back() * weights.value.back();
    }
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (std::size_t e = begin; e < weights.value.size(); ++e) weights.value[e] *= scale;
    weights.row_begin.push_back(weights.value.size());
  }
  return weights;
}

}  // namespace codband::data
