// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/multiprocessor.h"

#include <algorithm>
#include <initializer_list>

namespace heddle::hostdevice {
namespace {

constexpr uint64_t kWarpThreads = 32;
// Registers are handed out per warp, in this unit.
constexpr uint64_t kRegisterUnit = 256;

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The shared-memory configurations of sm_90 (CUDA C++ Programming Guide).
uint64_t SmallestConfiguration(uint64_t bytes) {
  for (const uint64_t kib : {8, 16, 32, 64, 100, 132, 164, 196}) {
    if (bytes <= kib << 10) return kib << 10;
  }
  return kSharedPerMultiprocessor;
}

}  // namespace

BlockCost CostOfBlock(const cubin::Kernel& kernel, uint64_t threads,
                      uint64_t dynamic_shared_bytes) {
  const uint64_t in_warps = RoundUp(threads, kWarpThreads);
  BlockCost cost;
  cost.threads = static_cast<uint32_t>(in_warps);
  cost.registers =
      in_warps / kWarpThreads *
      RoundUp(uint64_t{kernel.registers} * kWarpThreads, kRegisterUnit);
  cost.shared = uint64_t{kernel.static_shared_bytes} + dynamic_shared_bytes +
                kReservedSharedPerBlock;
  return cost;
}

uint64_t Multiprocessor::Room(const BlockCost& block) const {
  const uint64_t configured =
      blocks_ == 0 ? kSharedPerMultiprocessor : configured_;
  uint64_t room = (kThreadsPerMultiprocessor - threads_) /
                  std::max<uint64_t>(block.threads, 1);
  room = std::min(room,
                  (configured - shared_) / std::max<uint64_t>(block.shared, 1));
  if (block.registers == 0) return room;
  return std::min(room,
                  (kRegistersPerMultiprocessor - registers_) / block.registers);
}

void Multiprocessor::Take(const BlockCost& block, bool frugal) {
  if (blocks_ == 0) {
    configured_ = frugal ? SmallestConfiguration(block.shared)
                         : uint64_t{kSharedPerMultiprocessor};
  }
  ++blocks_;
  threads_ += block.threads;
  registers_ += block.registers;
  shared_ += block.shared;
}

void Multiprocessor::Release(const BlockCost& block) {
  --blocks_;
  threads_ -= block.threads;
  registers_ -= block.registers;
  shared_ -= block.shared;
}

}  // namespace heddle::hostdevice
