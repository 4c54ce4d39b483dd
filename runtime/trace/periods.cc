// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/periods.h"

#include <algorithm>
#include <tuple>

namespace heddle::trace {
namespace {

constexpr uint64_t kModulus = (uint64_t{1} << 61) - 1;
constexpr uint64_t kBase = 0x1357'9bdf'0246'8ace % kModulus;

uint64_t Multiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  uint64_t sum = static_cast<uint64_t>(product & kModulus) +
                 static_cast<uint64_t>(product >> 61);
  return sum >= kModulus ? sum - kModulus : sum;
}

uint64_t Add(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum >= kModulus ? sum - kModulus : sum;
}

// Most comparisons end within this many tokens: look before hashing.
constexpr uint64_t kDirect = 8;

// The largest length in [low, high] for which `equal` holds, given that it
// holds for `low` and is monotone. Steps up first, because most are short.
template <typename Equal>
uint64_t LargestEqual(uint64_t low, uint64_t high, const Equal& equal) {
  uint64_t step = 2 * kDirect;
  while (low + step <= high && equal(low + step)) {
    low += step;
    step *= 2;
  }
  high = std::min(high, low + step - 1);
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (equal(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Length of the longest Lyndon word that starts at each position, for the
// usual order of tokens or its reverse. A word is extended by its right
// neighbour for as long as it is smaller than that one.
std::vector<uint64_t> LongestLyndonWords(absl::Span<const uint32_t> tokens,
                                         const SequenceHash& hash,
                                         bool reverse) {
  const uint64_t n = tokens.size();
  std::vector<uint64_t> length(n, 1);
  for (uint64_t i = n; i-- > 0;) {
    while (i + length[i] < n) {
      const uint64_t j = i + length[i];
      const uint64_t common = hash.CommonPrefix(i, j);
      if (common >= length[j]) break;  // the right one is a prefix, or equal
      if (common >= length[i]) {       // the left one is a proper prefix
        length[i] += length[j];
        continue;
      }
      const bool less = tokens[i + common] < tokens[j + common];
      if (less == reverse) break;
      length[i] += length[j];
    }
  }
  return length;
}

}  // namespace

SequenceHash::SequenceHash(absl::Span<const uint32_t> tokens)
    : tokens_(tokens), prefix_(tokens.size() + 1), power_(tokens.size() + 1) {
  power_[0] = 1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    // + 1 so that no token is zero, which would make lengths ambiguous.
    prefix_[i + 1] = Add(Multiply(prefix_[i], kBase), uint64_t{tokens[i]} + 1);
    power_[i + 1] = Multiply(power_[i], kBase);
  }
}

uint64_t SequenceHash::Hash(uint64_t begin, uint64_t length) const {
  const uint64_t drop = Multiply(prefix_[begin], power_[length]);
  return Add(prefix_[begin + length], kModulus - drop);
}

uint64_t SequenceHash::CommonPrefix(uint64_t a, uint64_t b) const {
  const uint64_t limit = tokens_.size() - std::max(a, b);
  uint64_t common = 0;
  while (common < std::min(limit, kDirect) &&
         tokens_[a + common] == tokens_[b + common]) {
    ++common;
  }
  if (common < kDirect) return common;
  return LargestEqual(common, limit,
                      [&](uint64_t length) { return Equal(a, b, length); });
}

uint64_t SequenceHash::CommonSuffix(uint64_t a, uint64_t b) const {
  const uint64_t limit = std::min(a, b);
  uint64_t common = 0;
  while (common < std::min(limit, kDirect) &&
         tokens_[a - common - 1] == tokens_[b - common - 1]) {
    ++common;
  }
  if (common < kDirect) return common;
  return LargestEqual(common, limit, [&](uint64_t length) {
    return Equal(a - length, b - length, length);
  });
}

std::vector<Repetition> FindRepetitions(absl::Span<const uint32_t> tokens,
                                        const SequenceHash& hash) {
  std::vector<Repetition> found;
  for (const bool reverse : {false, true}) {
    const std::vector<uint64_t> words =
        LongestLyndonWords(tokens, hash, reverse);
    for (uint64_t i = 0; i < tokens.size(); ++i) {
      const uint64_t period = words[i];
      const uint64_t j = i + period;
      if (j >= tokens.size()) continue;
      const uint64_t begin = i - hash.CommonSuffix(i, j);
      const uint64_t end = j + hash.CommonPrefix(i, j);
      if (end - begin >= 2 * period) found.push_back({begin, end, period});
    }
  }
  const auto key = [](const Repetition& r) {
    return std::tuple(r.begin, r.period, r.end);
  };
  std::sort(found.begin(), found.end(),
            [&](const Repetition& a, const Repetition& b) {
              return key(a) < key(b);
            });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace heddle::trace
