// SPDX-License-Identifier: Apache-2.0
// The bodies of kernels.cu.

#include <cstdint>

#include "tests/hostdevice/host_kernel.h"

namespace {

template <typename T>
T Get(void* const* params, int index) {
  return *static_cast<const T*>(params[index]);
}

void SumInto(const HeddleHostBlock* block, void* const* params) {
  const int* in = Get<const int*>(params, 1);
  int total = 0;
  for (int i = 0; i < Get<int>(params, 2); ++i) total += in[i];
  Get<int*>(params, 0)[block->block_index[0]] = total;
}

}  // namespace

HEDDLE_HOST_KERNEL(fill) {
  const uint32_t index = block->block_index[0];
  Get<int*>(params, 0)[index] = Get<int>(params, 1) + static_cast<int>(index);
}

HEDDLE_HOST_KERNEL(copy) {
  const uint32_t index = block->block_index[0];
  Get<int*>(params, 0)[index] = Get<const int*>(params, 1)[index];
}

HEDDLE_HOST_KERNEL(sum) { SumInto(block, params); }

HEDDLE_HOST_KERNEL(increment) { ++Get<int*>(params, 0)[block->block_index[0]]; }

HEDDLE_HOST_KERNEL(fill_trigger_first) {
  block->launch_dependents(block);
  heddle_host_fill(block, params);
}

HEDDLE_HOST_KERNEL(sum_wait) {
  block->grid_dependency_wait(block);
  SumInto(block, params);
}

HEDDLE_HOST_KERNEL(copy_trigger_wait) {
  block->launch_dependents(block);
  block->grid_dependency_wait(block);
  heddle_host_copy(block, params);
}

HEDDLE_HOST_KERNEL(idle_trigger) {
  (void)params;
  block->launch_dependents(block);
}

struct Mixed {
  char tag;
  double value;
  int list[3];
};
HEDDLE_HOST_KERNEL(mixed) {
  (void)block;
  const auto& m = *static_cast<const Mixed*>(params[2]);
  *Get<double*>(params, 0) = Get<char>(params, 1) + m.tag + m.value +
                             m.list[2] + Get<short>(params, 3);
}

HEDDLE_HOST_KERNEL(shared_bytes) {
  const auto* bytes = static_cast<const uint8_t*>(block->shared);
  uint32_t zero = block->shared_bytes == Get<uint32_t>(params, 1) ? 0 : 1000;
  for (size_t i = 0; i < block->shared_bytes; ++i) zero += bytes[i] == 0;
  *Get<uint32_t*>(params, 0) = zero;
}

HEDDLE_HOST_KERNEL(bounded) {
  (void)block;
  *Get<int*>(params, 0) = 1;
}
