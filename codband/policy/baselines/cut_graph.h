#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"

namespace codband {

// Bit sets, as words.
inline constexpr std::size_t kWordBits = 64;

inline constexpr std::size_t WordsFor(std::size_t bits) {
  return (bits + kWordBits - 1) / kWordBits;
}
inline constexpr std::uint64_t Bit(std::size_t i) { return std::uint64_t{1} << (i % kWordBits); }

template <typename Visit>
void ForEachBit(std::uint64_t word, std::size_t k, const Visit& visit) {
  for (; word != 0; word &= word - 1) {
    visit(k * kWordBits + static_cast<std::size_t>(std::countr_zero(word)));
  }
}

// A complete graph from which edges are cut. Only the cuts are stored, as a bit set for each vertex
// that ends with its last cut: a new vertex costs nothing. Connected and Flood use scratch memory
// of the graph: they need exclusive access, as all functions that are not const.
class CutGraph {
 public:
  std::size_t size() const { return cuts_.size(); }
  std::size_t degree(std::size_t v) const { return size() - 1 - cut_count_[v]; }

  void AddVertex() {
    cuts_.emplace_back();
    cut_count_.push_back(0);
  }

  // Precondition: a and b are neighbours.
  void Cut(std::size_t a, std::size_t b) {
    SetCut(a, b);
    SetCut(b, a);
  }

  // The first neighbour at or after `from`, wrapping around. Precondition: v has a neighbour.
  std::size_t NextNeighbour(std::size_t v, std::size_t from) const {
    if (from >= size()) from = 0;
    std::size_t k = from / kWordBits;
    std::uint64_t word = Neighbours(v, k) & ~(Bit(from) - 1);
    while (word == 0) {
      k = k + 1 == WordsFor(size()) ? 0 : k + 1;
      word = Neighbours(v, k);
    }
    return k * kWordBits + static_cast<std::size_t>(std::countr_zero(word));
  }

  // Whether there is a path from a to b: a bidirectional search. If not, side() is the component of
  // the vertex whose search ended first. Precondition: a and b are not neighbours.
  bool Connected(std::size_t a, std::size_t b) {
    const std::size_t words = WordsFor(size());
    for (std::size_t k = 0; k < words; ++k) {
      if ((Neighbours(a, k) & Neighbours(b, k)) != 0) return true;
    }
    searches_[0].Start(a, words);
    searches_[1].Start(b, words);
    for (std::size_t turn = 0;; turn = 1 - turn) {
      Search& search = searches_[turn];
      if (search.pending.empty()) {
        side_ = turn;
        return false;
      }
      if (Expand(search, &searches_[1 - turn])) return true;
    }
  }

  // Precondition: Connected has just returned false, or Flood was called.
  std::span<const std::uint64_t> side() const { return searches_[side_].seen; }

  // Makes side() the component of v.
  void Flood(std::size_t v) {
    side_ = 0;
    searches_[0].Start(v, WordsFor(size()));
    while (!searches_[0].pending.empty()) Expand(searches_[0], nullptr);
  }

  // Precondition: v has no neighbours. Later vertices move down by one.
  void Erase(std::size_t v) {
    const auto at = static_cast<std::ptrdiff_t>(v);
    cuts_.erase(cuts_.begin() + at);
    cut_count_.erase(cut_count_.begin() + at);
    for (std::size_t u = 0; u < size(); ++u) {
      --cut_count_[u];
      EraseBit(cuts_[u], v);
    }
  }

  // The lower triangle, row by row.
  void Save(ByteWriter& out) const {
    for (std::size_t v = 0; v < size(); ++v) {
      for (std::size_t k = 0; k < WordsFor(v); ++k) out.U64(CutWord(v, k) & BelowMask(v, k));
    }
  }

  // Precondition: a graph of that many vertices, without cuts.
  void Load(ByteReader& in) {
    for (std::size_t v = 0; v < size(); ++v) {
      for (std::size_t k = 0; k < WordsFor(v) && in.ok(); ++k) {
        const std::uint64_t word = in.U64("cut edges");
        if ((word & ~BelowMask(v, k)) != 0) {
          in.Fail("cut edges", fmt::format("of vertex {} go beyond it", v));
          return;
        }
        ForEachBit(word, k, [&](std::size_t u) { Cut(v, u); });
      }
    }
  }

 private:
  // A graph search: the vertices reached, and those of them not expanded yet.
  struct Search {
    std::vector<std::uint64_t> seen;
    std::vector<std::size_t> pending;

    void Start(std::size_t v, std::size_t words) {
      seen.assign(words, 0);
      seen[v / kWordBits] |= Bit(v);
      pending.assign(1, v);
    }
  };

  // Expands one pending vertex; true if the other search has reached one of its neighbours.
  bool Expand(Search& search, const Search* other) const {
    const std::size_t v = search.pending.back();
    search.pending.pop_back();
    for (std::size_t k = 0; k < search.seen.size(); ++k) {
      const std::uint64_t fresh = Neighbours(v, k) & ~search.seen[k];
      if (other != nullptr && (fresh & other->seen[k]) != 0) return true;
      search.seen[k] |= fresh;
      ForEachBit(fresh, k, [&](std::size_t u) { search.pending.push_back(u); });
    }
    return false;
  }

  std::uint64_t CutWord(std::size_t v, std::size_t k) const {
    return k < cuts_[v].size() ? cuts_[v][k] : 0;
  }

  // The bits of word k that stand for vertices below v.
  static std::uint64_t BelowMask(std::size_t v, std::size_t k) {
    if (v >= (k + 1) * kWordBits) return ~std::uint64_t{0};
    return v <= k * kWordBits ? 0 : Bit(v) - 1;
  }

  std::uint64_t Neighbours(std::size_t v, std::size_t k) const {
    const std::uint64_t others = k == v / kWordBits ? ~Bit(v) : ~std::uint64_t{0};
    return BelowMask(size(), k) & others & ~CutWord(v, k);
  }

  void SetCut(std::size_t a, std::size_t b) {
    if (cuts_[a].size() <= b / kWordBits) cuts_[a].resize(b / kWordBits + 1);
    cuts_[a][b / kWordBits] |= Bit(b);
    ++cut_count_[a];
  }

  static void EraseBit(std::vector<std::uint64_t>& row, std::size_t v) {
    for (std::size_t k = v / kWordBits; k < row.size(); ++k) {
      const std::uint64_t keep = k == v / kWordBits ? Bit(v) - 1 : 0;
      const std::uint64_t carry = k + 1 < row.size() ? row[k + 1] << (kWordBits - 1) : 0;
      row[k] = (row[k] & keep) | (((row[k] >> 1) | carry) & ~keep);
    }
  }

  std::vector<std::vector<std::uint64_t>> cuts_;
  std::vector<std::size_t> cut_count_;
  std::array<Search, 2> searches_;
  std::size_t side_ = 0;
};

}  // namespace codband
