// SPDX-License-Identifier: Apache-2.0
//
// The bodies of observe_kernels.cu on the host device: some of them lie.

#include <cstdint>
#include <cstring>

#include "tests/hostdevice/host_kernel.h"

namespace {

template <typename T>
T Arg(void* const* params, int i) {
  return *static_cast<T*>(params[i]);
}

template <typename Body>
void Threads(const HeddleHostBlock* block, uint32_t n, Body body) {
  for (uint32_t t = 0; t < block->block[0]; ++t) {
    const uint32_t i = block->block_index[0] * block->block[0] + t;
    if (i < n) body(i);
  }
}

void Copy(const HeddleHostBlock* block, void* const* params, uint32_t add) {
  auto* out = Arg<uint32_t*>(params, 0);
  const auto* in = Arg<const uint32_t*>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2),
          [&](uint32_t i) { out[i] = in[i] + add; });
}

}  // namespace

HEDDLE_HOST_KERNEL(honest_copy) { Copy(block, params, 0); }

HEDDLE_HOST_KERNEL(masked_copy) {
  auto* out = Arg<uint8_t*>(params, 0);
  const auto* in = Arg<const uint8_t*>(params, 1);
  const auto* mask = Arg<const uint8_t*>(params, 2);
  Threads(block, Arg<uint32_t>(params, 3), [&](uint32_t i) {
    if (mask[i] != 0) out[i] = in[i];
  });
}

HEDDLE_HOST_KERNEL(add_in_place) {
  auto* x = Arg<uint32_t*>(params, 0);
  const auto value = Arg<uint32_t>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2), [&](uint32_t i) { x[i] += value; });
}

HEDDLE_HOST_KERNEL(spilling_copy) {
  Copy(block, params, 0);
  if (block->block_index[0] != 0) return;
  std::memset(Arg<void*>(params, 3), Arg<int>(params, 5),
              Arg<uint32_t>(params, 4));
}

HEDDLE_HOST_KERNEL(peeking_copy) {
  Copy(block, params, *Arg<const uint32_t*>(params, 3));
}

HEDDLE_HOST_KERNEL(unsteady) {
  static uint32_t now = 0;
  auto* out = Arg<uint32_t*>(params, 0);
  Threads(block, Arg<uint32_t>(params, 1), [&](uint32_t i) { out[i] = ++now; });
}

HEDDLE_HOST_KERNEL(scatter) {
  auto* const* list = Arg<uint32_t* const*>(params, 0);
  const auto* in = Arg<const uint32_t*>(params, 1);
  Threads(block, Arg<uint32_t>(params, 2),
          [&](uint32_t i) { *list[i] = in[i]; });
}
