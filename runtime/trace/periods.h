// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_PERIODS_H_
#define HEDDLE_RUNTIME_TRACE_PERIODS_H_

// Repetitions in a sequence of tokens.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace heddle::trace {

// A maximal repetition, or run: tokens[i] == tokens[i + period] for all i from
// begin up to end - period; at least two periods long; cannot be extended to
// either side; `period` is the smallest one of that stretch.
struct Repetition {
  uint64_t begin = 0;
  uint64_t end = 0;  // one past the last token
  uint64_t period = 0;
  friend bool operator==(const Repetition&, const Repetition&) = default;
};

// Equality of parts of one sequence in constant time, longest common prefixes
// and suffixes in logarithmic time, by polynomial hashes modulo 2^61 - 1. A
// false positive needs a hash collision, about 1 in 10^18 for a pair.
class SequenceHash {
 public:
  // Keeps a view of `tokens`.
  explicit SequenceHash(absl::Span<const uint32_t> tokens);

  bool Equal(uint64_t a, uint64_t b, uint64_t length) const {
    return Hash(a, length) == Hash(b, length);
  }
  // Length of the longest common prefix of the parts that begin at a and b.
  uint64_t CommonPrefix(uint64_t a, uint64_t b) const;
  // Length of the longest common suffix of the parts that end before a and b.
  uint64_t CommonSuffix(uint64_t a, uint64_t b) const;

 private:
  uint64_t Hash(uint64_t begin, uint64_t length) const;

  absl::Span<const uint32_t> tokens_;
  std::vector<uint64_t> prefix_;  // hash of the first i tokens
  std::vector<uint64_t> power_;
};

// All runs of `tokens`, ordered by begin, then period. There are fewer than
// tokens.size() of them (the runs theorem of Bannai et al., "The runs theorem",
// SIAM J. Comput. 2017, whose proof is also the algorithm: the root of a run is
// a longest Lyndon word for the order of tokens or for its reverse).
// O(n log n) time, O(n) memory.
std::vector<Repetition> FindRepetitions(absl::Span<const uint32_t> tokens,
                                        const SequenceHash& hash);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_PERIODS_H_
