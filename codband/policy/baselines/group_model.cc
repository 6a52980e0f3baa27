#include "codband/policy/baselines/group_model.h"

#include <algorithm>

#include "codband/linalg/packed.h"

namespace codband {
namespace {

double Trace(const linalg::SufficientStats& stats) {
  double trace = 0;
  for (std::size_t j = 0; j < stats.dim(); ++j)
    trace += stats.S()[linalg::PackedColumn(stats.dim(), j)];
  return trace;
}

}  // namespace

void GroupModel::Add(const GroupModel& other) {
  posterior_.Add(other.posterior_.stats());
  peak_ = std::max(peak_, other.peak_);
}

bool GroupModel::Remove(const linalg::SufficientStats& part) {
  constexpr double kLeast = 1e-6;  // leaves ten digits
  const double before = Trace(posterior_.stats());
  const double peak = std::max(peak_, before);
  if (before - Trace(part) < kLeast * peak) return false;
  posterior_.Remove(part);
  peak_ = peak;
  return true;
}

void GroupModel::Reset(const linalg::GaussianPosterior& posterior) {
  posterior_ = posterior;
  peak_ = 0;
}

void GroupModel::Reset(const linalg::SufficientStats& sum) {
  posterior_.Clear();
  posterior_.Add(sum);
  peak_ = 0;
}

std::size_t GroupModel::SavedBytes(std::size_t dim) {
  return linalg::GaussianPosterior::SavedBytes(dim) + sizeof(double);
}

void GroupModel::Save(ByteWriter& out) const {
  posterior_.Save(out);
  out.Double(peak_);
}

void GroupModel::Load(ByteReader& in) {
  posterior_.Load(in);
  peak_ = in.Double("largest trace");
}

}  // namespace codband
