// SPDX-License-Identifier: Apache-2.0
#include "tools/align.h"

#include <algorithm>

namespace heddle::tools {
namespace {

// Differences up to which a stretch is aligned exactly; its square times four
// is the memory in bytes. With the budget used up, fewer.
constexpr int64_t kMaxEdits = 4096;
constexpr int64_t kFewEdits = 256;
constexpr int64_t kBudget = 400'000'000;  // steps

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

// The furthest points of Myers's algorithm for 0, 1, 2, ... edits: points_[d]
// has x for the diagonals k = x - y of -d, -d + 2, ..., d.
class Paths {
 public:
  Paths(absl::Span<const uint64_t> a, absl::Span<const uint64_t> b)
      : a_(a),
        b_(b),
        n_(static_cast<int64_t>(a.size())),
        m_(static_cast<int64_t>(b.size())) {}

  // Goes on until both ends are reached or `max_edits` are used. Returns where
  // it got: {x, y}, with the pairs on the way appended to `pairs`, which are
  // relative to the spans.
  std::pair<int64_t, int64_t> Run(int64_t max_edits, Pairs* pairs) {
    for (int64_t d = 0;; ++d) {
      points_.emplace_back(d + 1);
      for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = Start(d, k);
        int64_t y = x - k;
        while (x < n_ && y < m_ && a_[x] == b_[y]) {
          ++x;
          ++y;
        }
        points_[d][Index(d, k)] = static_cast<uint32_t>(x);
        if (x >= n_ && y >= m_) return Trace(d, k, pairs);
      }
      if (d == max_edits) return Trace(d, Furthest(d), pairs);
    }
  }

 private:
  static size_t Index(int64_t d, int64_t k) {
    return static_cast<size_t>((k + d) / 2);
  }
  int64_t Point(int64_t d, int64_t k) const { return points_[d][Index(d, k)]; }

  // Where d edits get on diagonal k before they follow equal tokens: one down
  // (a token of b) from diagonal k + 1 or one right from k - 1. Points may lie
  // beyond the end of a sequence; nothing follows from there.
  bool Down(int64_t d, int64_t k) const {
    return k == -d || (k != d && Point(d - 1, k - 1) < Point(d - 1, k + 1));
  }
  int64_t Start(int64_t d, int64_t k) const {
    if (d == 0) return 0;
    return Down(d, k) ? Point(d - 1, k + 1) : Point(d - 1, k - 1) + 1;
  }

  bool Inside(int64_t x, int64_t k) const {
    return x <= n_ && x - k <= m_ && x - k >= 0;
  }

  int64_t Furthest(int64_t d) const {
    int64_t best = 0;
    int64_t best_sum = -1;
    for (int64_t k = -d; k <= d; k += 2) {
      const int64_t x = Point(d, k);
      if (Inside(x, k) && 2 * x - k > best_sum) {
        best_sum = 2 * x - k;
        best = k;
      }
    }
    return best;
  }

  std::pair<int64_t, int64_t> Trace(int64_t d, int64_t k, Pairs* pairs) const {
    const std::pair<int64_t, int64_t> end(Point(d, k), Point(d, k) - k);
    const size_t first = pairs->size();
    for (;; --d) {
      const int64_t start = Start(d, k);
      for (int64_t x = Point(d, k); x > start; --x) {
        pairs->emplace_back(x - 1, x - 1 - k);
      }
      if (d == 0) break;
      k += Down(d, k) ? 1 : -1;
    }
    std::reverse(pairs->begin() + static_cast<int64_t>(first), pairs->end());
    return end;
  }

  const absl::Span<const uint64_t> a_;
  const absl::Span<const uint64_t> b_;
  const int64_t n_;
  const int64_t m_;
  std::vector<std::vector<uint32_t>> points_;
};

}  // namespace

Pairs Align(absl::Span<const uint64_t> a, absl::Span<const uint64_t> b) {
  Pairs pairs;
  // What is equal at the end needs no search.
  uint64_t tail = 0;
  while (tail < std::min(a.size(), b.size()) &&
         a[a.size() - tail - 1] == b[b.size() - tail - 1]) {
    ++tail;
  }
  const uint64_t a_end = a.size() - tail;
  const uint64_t b_end = b.size() - tail;
  uint64_t x = 0;
  uint64_t y = 0;
  int64_t budget = kBudget;
  while (x < a_end && y < b_end) {
    const size_t first = pairs.size();
    Paths paths(a.subspan(x, a_end - x), b.subspan(y, b_end - y));
    const int64_t edits = budget > 0 ? kMaxEdits : kFewEdits;
    const auto [dx, dy] = paths.Run(edits, &pairs);
    for (size_t i = first; i < pairs.size(); ++i) {
      pairs[i].first += x;
      pairs[i].second += y;
    }
    x += static_cast<uint64_t>(dx);
    y += static_cast<uint64_t>(dy);
    budget -= edits * edits / 2;
  }
  for (uint64_t i = 0; i < tail; ++i) pairs.emplace_back(a_end + i, b_end + i);
  return pairs;
}

}  // namespace heddle::tools
