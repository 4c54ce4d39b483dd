// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_FILL_H_
#define HEDDLE_RUNTIME_REPLAY_FILL_H_

// Bytes for memory of which a trace knows only what it looks like, and small
// changes to bytes that it knows.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "heddle/trace.h"

namespace heddle::replay {

// Seeded, normally distributed values of one scalar type. The bytes depend on
// the seed and their position alone, so a range may be filled in pieces and in
// any order. Values are never zero, NaN or infinite (integers may be zero);
// statistics that make no sense (NaN, beyond the type) are replaced by those
// of a freshly initialized weight: mean 0, deviation 0.02.
//
// Integers are kept within two deviations of the mean and not below zero when
// the mean is not: they may be indices. Bytes of unknown type never form a
// NaN of a wider type.
class SeededFill {
 public:
  SeededFill(fb::ScalarType type, double mean, double stddev, uint64_t seed);

  // Bytes [offset, offset + out.size()) of the range; offset in multiples of
  // kAlignment.
  static constexpr uint64_t kAlignment = 32;
  void Write(uint64_t offset, absl::Span<uint8_t> out) const;

 private:
  // One of 65536 quantiles for every 16 bits of a hash; element_bytes_ each.
  std::vector<uint8_t> table_;
  size_t element_bytes_;
  uint64_t seed_;
};

// Changes what looks like floating-point data in `bytes`, the content at
// `address`, so that a second run has another input; returns how many bytes
// changed.
//
// Looked at in blocks of 256 bytes, each by itself. A block is changed if it
// is all binary32, or all bfloat16 or binary16, of a magnitude that numbers in
// programs have (2^-30 to 2^30; binary16: 2^-12 to 2^14; at least half of them
// not zero), and if no 8-byte word of it lies in [pointer_begin, pointer_end).
// Then low mantissa bits of about every second value are flipped: a relative
// change of at most 2^-7, and never a new zero, infinity or NaN. 32- and 64-bit
// integers, indices, flags, masks and pointers do not look like that and stay;
// arrays of 16-bit integers between 3072 and 30719, and text, may.
uint64_t Perturb(absl::Span<uint8_t> bytes, uint64_t address, uint64_t seed,
                 uint64_t pointer_begin, uint64_t pointer_end);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_FILL_H_
