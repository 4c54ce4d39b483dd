// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_BLOCK_H_
#define HEDDLE_TESTS_SASS_MACHINE_BLOCK_H_

// What the warps of a block share. Internal to the machine.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sass_machine/machine.h"

namespace heddle::sass_machine {

class Warp;

// Upper halves of generic addresses that lead to shared and local memory. No
// buffer of a test may lie there.
inline constexpr uint32_t kSharedWindow = 0x7ff1;
inline constexpr uint32_t kLocalWindow = 0x7ff2;
// What the system takes of shared memory before the kernel's (sm_90).
inline constexpr uint32_t kSharedReserved = 1024;

// Bytes of local memory of a thread; its stack begins at their end.
inline uint32_t LocalSize(const cubin::Kernel& kernel) {
  return (kernel.local_bytes + 1024 + 15) / 16 * 16;
}

struct Block {
  const KernelCode* kernel = nullptr;
  uint32_t arch = 0;
  const Launch* launch = nullptr;
  const std::vector<uint8_t>* bank0 = nullptr;
  Memory* memory = nullptr;
  AccessLog* log = nullptr;
  std::array<uint32_t, 3> index{};
  std::vector<uint8_t> shared;
  uint32_t live_threads = 0;

  // Lets go the threads at barriers that are complete; whether there were any.
  bool ReleaseBarriers(const std::vector<std::unique_ptr<Warp>>& warps);
};

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_BLOCK_H_
