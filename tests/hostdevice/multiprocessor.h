// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_MULTIPROCESSOR_H_
#define HEDDLE_TESTS_HOSTDEVICE_MULTIPROCESSOR_H_

// What blocks take of a multiprocessor, and who fits beside whom. That makes
// residency real: a grid whose waiting blocks leave no room for those that they
// wait for is a deadlock here as it is on a real device.

#include <cstdint>

#include "runtime/cubin/elf.h"

namespace heddle::hostdevice {

// Of each multiprocessor, those of sm_90; the number of blocks is a setting.
inline constexpr uint32_t kThreadsPerMultiprocessor = 2048;
inline constexpr uint32_t kRegistersPerMultiprocessor = 65536;
inline constexpr uint32_t kSharedPerMultiprocessor = 233472;
inline constexpr uint32_t kReservedSharedPerBlock = 1024;

// What one block takes.
struct BlockCost {
  uint32_t threads = 0;    // in whole warps
  uint64_t registers = 0;  // of all its threads
  uint64_t shared = 0;     // bytes, with the reserved ones
};

BlockCost CostOfBlock(const cubin::Kernel& kernel, uint64_t threads,
                      uint64_t dynamic_shared_bytes);

class Multiprocessor {
 public:
  // How many more such blocks have room, not counting how many blocks there
  // may be at all.
  uint64_t Room(const BlockCost& block) const;

  // Shared memory is configured for the first block of an idle multiprocessor
  // and stays so until it is idle again. `frugal`: no more than needed, else
  // the most there is; a driver may do either.
  void Take(const BlockCost& block, bool frugal);
  void Release(const BlockCost& block);

 private:
  uint32_t blocks_ = 0;
  uint64_t threads_ = 0;
  uint64_t registers_ = 0;
  uint64_t shared_ = 0;
  uint64_t configured_ = kSharedPerMultiprocessor;
};

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_MULTIPROCESSOR_H_
