#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/features/column_space.h"
#include "codband/features/crossings.h"

namespace codband::eval {

// A candidate of a logged decision, with its features as the log names them.
struct NamedCandidate {
  std::string name;
  std::vector<features::NamedFeature> features;
};

// How the named features of a log become columns. All of the log is known, so that columns go to
// what is most frequent:
//   - features that are all called f0, f1, … in the namespace Features are columns as they are;
//   - if the number of columns is given, names are hashed into as many, and contexts are left out;
//   - else every name has a column, of the context too, and so has every crossing of the two, as
//   far
//     as ColumnLimits allow; the rest share.
class LogColumns {
 public:
  using Visit = std::function<void(std::span<const NamedCandidate> candidates,
                                   std::span<const features::NamedFeature> context)>;
  // `visit_log` calls what it is given for every decision of the log, in the same order each time.
  // `between` is called again and again, and may end it by throwing.
  LogColumns(
      const std::function<void(const Visit&)>& visit_log, std::optional<std::size_t> dim,
      const std::function<void()>& between = [] {});

  std::size_t dim() const { return dim_; }
  std::string Text() const;  // "24 by name, 12 of them crossings"

  // The features of the candidates of one decision, row after row.
  std::vector<double> Rows(std::span<const NamedCandidate> candidates,
                           std::span<const features::NamedFeature> context);

 private:
  enum class Style { kPlain, kHashed, kByName };
  bool FindPlain(const std::function<void(const Visit&)>& visit_log,
                 std::optional<std::size_t> dim);
  void FindNames(const std::function<void(const Visit&)>& visit_log);
  void FindCrossings(const std::function<void(const Visit&)>& visit_log,
                     const std::function<void()>& between);

  Style style_ = Style::kPlain;
  std::size_t dim_ = 0;
  features::ColumnLimits limits_;
  features::ColumnSpace space_;
  features::CrossedContext crossed_;
};

}  // namespace codband::eval
