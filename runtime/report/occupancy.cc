// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "runtime/report/report.h"

namespace heddle::report {
namespace {

// Allocation units of sm_70 to sm_120 (CUDA occupancy calculator).
constexpr int kRegistersPerWarpUnit = 256;
constexpr int kWarpUnit = 4;
constexpr int kSharedUnit = 128;

int RoundUp(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

int EstimatedOccupancy(const DeviceProperties& device,
                       const Activity& activity) {
  const uint64_t threads =
      uint64_t{activity.block[0]} * activity.block[1] * activity.block[2];
  const uint64_t blocks =
      uint64_t{activity.grid[0]} * activity.grid[1] * activity.grid[2];
  if (activity.kind != ActivityKind::kKernel || threads == 0 || blocks == 0 ||
      threads > 4096 || device.multiprocessors <= 0 ||
      device.max_threads_per_multiprocessor <= 0 || activity.registers == 0 ||
      device.registers_per_multiprocessor <= 0) {
    return -1;
  }
  const int warps =
      RoundUp(static_cast<int>(threads), device.warp_size) / device.warp_size;
  const int max_warps =
      device.max_threads_per_multiprocessor / device.warp_size;
  int resident = max_warps / std::max(1, warps);
  if (device.max_blocks_per_multiprocessor > 0) {
    resident = std::min(resident, device.max_blocks_per_multiprocessor);
  }
  const int registers_per_warp =
      RoundUp(static_cast<int>(activity.registers) * device.warp_size,
              kRegistersPerWarpUnit);
  const int warps_by_registers = device.registers_per_multiprocessor /
                                 registers_per_warp / kWarpUnit * kWarpUnit;
  resident = std::min(resident, warps_by_registers / std::max(1, warps));
  if (device.shared_per_multiprocessor > 0) {
    const int shared = RoundUp(
        static_cast<int>(activity.static_shared + activity.dynamic_shared) +
            device.shared_per_block_reserved,
        kSharedUnit);
    if (shared > 0) {
      resident = std::min(resident, device.shared_per_multiprocessor / shared);
    }
  }
  const double per_multiprocessor =
      static_cast<double>(blocks) / static_cast<double>(device.multiprocessors);
  const double active =
      std::min(static_cast<double>(resident), per_multiprocessor) * warps /
      max_warps;
  return static_cast<int>(std::lround(std::clamp(active, 0.0, 1.0) * 100));
}

}  // namespace heddle::report
