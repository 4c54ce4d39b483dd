// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_PLACEMENT_H_
#define HEDDLE_RUNTIME_PLAN_PLACEMENT_H_

#include <algorithm>
#include <cstdint>

#include "runtime/plan/overlap.h"

namespace heddle::plan {

// Beyond any device: figures end here, so that products of two stay within 64
// bits.
inline constexpr uint64_t kManyBlocks = uint64_t{1} << 31;

// What one producer grid needs, and how much of a device one consumer block
// may deny it, wherever that block is. Everything in blocks of the producer.
class PlacementBound {
 public:
  PlacementBound(const BlockNeeds& producer, const DeviceLimits& limits);

  // Of the empty device. 0 if nothing can be proved about such a producer.
  uint64_t capacity() const { return capacity_; }
  // By all blocks of `consumer` together, below 2^62.
  uint64_t Denied(const BlockNeeds& consumer) const;
  // Whether the producer fits beside consumers that deny so much.
  bool Fits(uint64_t denied) const {
    return denied <= capacity_ && capacity_ - denied >= producer_.blocks;
  }

 private:
  BlockNeeds producer_;
  DeviceLimits limits_;
  uint64_t per_multiprocessor_ = 0;
  uint64_t capacity_ = 0;
};

// Adds what two grids deny without wrapping round.
inline uint64_t SumOfDenied(uint64_t a, uint64_t b) {
  return std::min(a + b, kManyBlocks * kManyBlocks);
}

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_PLACEMENT_H_
