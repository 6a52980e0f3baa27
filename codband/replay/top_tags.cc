#include "codband/replay/top_tags.h"

#include <algorithm>
#include <numeric>

#include "codband/base/check.h"

namespace codband::replay {

std::vector<WeightedTag> TagsOfBestItems(const RecordedStream& stream, const ItemTags& tags,
                                         std::span<const double> theta, std::size_t item_count,
                                         std::size_t tag_count) {
  CODBAND_CHECK(theta.size() == stream.dim);
  std::vector<double> scores(stream.item_count());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double* const row = stream.features.data() + i * stream.dim;
    scores[i] = std::inner_product(theta.begin(), theta.end(), row, 0.0);
  }
  std::vector<std::size_t> best(scores.size());
  std::iota(best.begin(), best.end(), std::size_t{0});
  std::ranges::stable_sort(best,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  best.resize(std::min(best.size(), item_count));

  std::vector<double> weights(tags.names.size());
  for (const std::size_t item : best) {
    double sum = 0;
    for (const ItemTags::Count& tag : tags.of_item[item]) sum += tag.count;
    for (const ItemTags::Count& tag : tags.of_item[item]) weights[tag.tag] += tag.count / sum;
  }
  std::vector<WeightedTag> heaviest;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) heaviest.push_back({.tag = tags.names[i], .weight = weights[i]});
  }
  std::ranges::sort(heaviest, [](const WeightedTag& a, const WeightedTag& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.tag < b.tag;
  });
  heaviest.resize(std::min(heaviest.size(), tag_count));
  return heaviest;
}

}  // namespace codband::replay
