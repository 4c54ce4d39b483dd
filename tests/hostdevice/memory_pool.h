// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_MEMORY_POOL_H_
#define HEDDLE_TESTS_HOSTDEVICE_MEMORY_POOL_H_

#include <cstdint>
#include <map>

#include "tests/hostdevice/device.h"

namespace heddle::hostdevice {

// What a CUmemoryPool points to. Its memory comes from the device's heap; the
// pool only counts. Freed memory goes back at once, whatever the release
// threshold: reuse is then as early as any pool could make it.
struct MemoryPool {
  bool is_default = false;
  CUmemPoolProps props{};
  uint64_t release_threshold = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  std::map<int, int> reuse_attributes;
};

MemoryPool* DefaultPool();

// Frees an allocation if it is still the one with this id; 0: whichever is
// there.
void FreeNow(CUdeviceptr address, uint64_t id);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_MEMORY_POOL_H_
