// SPDX-License-Identifier: Apache-2.0
//
// The bodies of replay_kernels.cu on the host device.

#include <cstdint>

#include "tests/hostdevice/host_kernel.h"

namespace {

template <typename T>
T Arg(void* const* params, int i) {
  return *static_cast<T*>(params[i]);
}

// Calls `body(i)` for the threads of the block with i < n.
template <typename Body>
void Threads(const HeddleHostBlock* block, uint32_t n, Body body) {
  for (uint32_t t = 0; t < block->block[0]; ++t) {
    const uint32_t i = block->block_index[0] * block->block[0] + t;
    if (i < n) body(i);
  }
}

}  // namespace

HEDDLE_HOST_KERNEL(test_scale) {
  auto* x = Arg<float*>(params, 0);
  const auto factor = Arg<float>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2), [&](uint32_t i) { x[i] *= factor; });
}

HEDDLE_HOST_KERNEL(test_add) {
  auto* out = Arg<float*>(params, 0);
  const auto* a = Arg<const float*>(params, 1);
  const auto* b = Arg<const float*>(params, 2);
  Threads(block, Arg<uint32_t>(params, 3),
          [&](uint32_t i) { out[i] = a[i] + b[i]; });
}

HEDDLE_HOST_KERNEL(test_gather) {
  auto* out = Arg<float*>(params, 0);
  auto* const* list = Arg<float* const*>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2),
          [&](uint32_t i) { out[i] = *list[i]; });
}

HEDDLE_HOST_KERNEL(test_from_table) {
  auto* out = Arg<float*>(params, 0);
  const auto* from = Arg<const float*>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2),
          [&](uint32_t i) { out[i] = from[i]; });
}

HEDDLE_HOST_KERNEL(test_clock) {
  static uint32_t now = 0;
  auto* out = Arg<uint32_t*>(params, 0);
  Threads(block, Arg<uint32_t>(params, 1), [&](uint32_t i) { out[i] = ++now; });
}
