// SPDX-License-Identifier: Apache-2.0
// How much a consumer block denies, and why. Let each multiprocessor
// hold at most `cap` producer blocks when empty: cap = min over resources r of
// floor(R_r / x_r), with producer block needs x_r. Consumer blocks with needs
// y_r on it leave floor((R_r - sum y_r) / x_r) >= floor(R_r / x_r) -
// sum ceil(y_r / x_r), for each r, so at least cap - sum max_r ceil(y_r / x_r),
// and never less than 0. Each consumer block so denies at most
// d = min(cap, max_r ceil(y_r / x_r)) blocks wherever it is, and the sum over
// all consumer blocks is a bound for the device. Warps and registers belong to
// a quarter of the multiprocessor; a block's warps go round the quarters, so
// each is taken to need its share, rounded up, of every quarter.
//
// Shared memory is no such resource: it is configured per multiprocessor, for
// whoever comes first, and stays so until the multiprocessor is idle. If either
// side needs any, a consumer block denies the whole multiprocessor. If neither
// does, each block still takes the reserved part, and the configuration may be
// the smallest: that is the resource.
//
// Clusters and cooperative grids need several places at the same time; nothing
// is proved about them as producers. As consumers they are blocks like others.

#include "runtime/plan/placement.h"

#include <algorithm>
#include <array>

#include "runtime/plan/overlap.h"

namespace heddle::plan {
namespace {

// Shared memory is handed out in units of 128 bytes on sm_80 and later, of 256
// before (cuda_occupancy.h).
constexpr uint64_t kSharedUnit = 256;

// The most that there are per thread: assumed where a kernel's are not known.
constexpr uint64_t kMostRegisters = 255;

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t SharedOf(const BlockNeeds& needs, const DeviceLimits& limits) {
  return DivideUp(
             uint64_t{needs.shared_bytes} + limits.reserved_shared_per_block,
             kSharedUnit) *
         kSharedUnit;
}

// What a block takes of each resource but shared memory.
enum : uint8_t { kBlocks, kWarps, kRegisters, kReserved, kResources };
using Amounts = std::array<uint64_t, kResources>;

Amounts AmountsOf(const BlockNeeds& needs, const DeviceLimits& limits) {
  const uint64_t warps = DivideUp(needs.threads, limits.warp_threads);
  const uint64_t warps_of_quarter = DivideUp(warps, limits.quarters);
  const uint64_t registers =
      DivideUp((needs.registers != 0 ? needs.registers : kMostRegisters) *
                   limits.warp_threads,
               limits.register_unit) *
      limits.register_unit;
  return {1, warps_of_quarter, warps_of_quarter * registers,
          limits.reserved_shared_per_block};
}

Amounts AmountsOf(const DeviceLimits& limits) {
  return {limits.blocks_per_sm,
          limits.threads_per_sm / limits.warp_threads / limits.quarters,
          limits.registers_per_sm / limits.quarters,
          limits.least_shared_carveout};
}

}  // namespace

PlacementBound::PlacementBound(const BlockNeeds& producer,
                               const DeviceLimits& limits)
    : producer_(producer), limits_(limits) {
  if (limits.warp_threads == 0 || limits.quarters == 0 ||
      limits.register_unit == 0 || producer.blocks == 0 ||
      producer.threads == 0 || producer.cluster_blocks > 1 ||
      producer.cooperative) {
    return;
  }
  const Amounts all = AmountsOf(limits);
  const Amounts block = AmountsOf(producer, limits);
  uint64_t cap = kManyBlocks;
  for (int r = 0; r < kResources; ++r) {
    if (r == kReserved && producer.shared_bytes != 0) continue;
    if (block[r] != 0) cap = std::min(cap, all[r] / block[r]);
  }
  if (producer.shared_bytes != 0) {
    cap = std::min(cap, limits.shared_per_sm / SharedOf(producer, limits));
  }
  per_multiprocessor_ = cap;
  capacity_ = cap * limits.multiprocessors;
}

uint64_t PlacementBound::Denied(const BlockNeeds& consumer) const {
  if (capacity_ == 0) return 0;
  uint64_t per_block = 1;
  if (consumer.shared_bytes != 0 || producer_.shared_bytes != 0 ||
      consumer.threads == 0) {
    per_block = per_multiprocessor_;
  } else {
    const Amounts taken = AmountsOf(consumer, limits_);
    const Amounts block = AmountsOf(producer_, limits_);
    for (int r = 0; r < kResources; ++r) {
      // A resource of which the producer needs nothing cannot be denied to it.
      if (block[r] != 0) {
        per_block = std::max(per_block, DivideUp(taken[r], block[r]));
      }
    }
    per_block = std::min(per_block, per_multiprocessor_);
  }
  return std::min(consumer.blocks, kManyBlocks) * per_block;
}

bool FitTogether(const BlockNeeds& producer,
                 absl::Span<const BlockNeeds> consumers,
                 const DeviceLimits& limits) {
  const PlacementBound bound(producer, limits);
  uint64_t denied = 0;
  for (const BlockNeeds& consumer : consumers) {
    denied = SumOfDenied(denied, bound.Denied(consumer));
  }
  return bound.capacity() != 0 && consumers.size() < limits.resident_grids &&
         bound.Fits(denied);
}

}  // namespace heddle::plan
