// SPDX-License-Identifier: Apache-2.0
// The bodies of kernels.cu and stateful.cu.

#include "tests/unit/live/host_kernels.h"

#include "tests/hostdevice/host_kernel.h"

namespace {

template <typename T>
T Get(void* const* params, int index) {
  return *static_cast<const T*>(params[index]);
}

}  // namespace

HEDDLE_HOST_KERNEL(fold) {
  const unsigned* const in[] = {Get<const unsigned*>(params, 1),
                                Get<const unsigned*>(params, 2),
                                Get<const unsigned*>(params, 3)};
  const unsigned index = block->block_index[0];
  unsigned& out = Get<unsigned*>(params, 0)[index];
  out = heddle::live::Fold(out, in, Get<unsigned>(params, 4),
                           Get<unsigned>(params, 5), index);
}

HEDDLE_HOST_KERNEL(count_up) {
  if (block->block_index[0] == 0) ++*Get<unsigned*>(params, 0);
}

HEDDLE_HOST_KERNEL(follow) {
  if (block->block_index[0] != 0) return;
  ++*Get<unsigned* const*>(params, 0)[Get<unsigned>(params, 1)];
}

HEDDLE_HOST_KERNEL(wander) {
  if (block->block_index[0] != 0) return;
  // Another element each time: as far from repeatable as can be.
  const unsigned at = heddle::live::g_wander_runs++ % Get<unsigned>(params, 1);
  ++Get<unsigned*>(params, 0)[at * Get<unsigned>(params, 2)];
}

HEDDLE_HOST_KERNEL(bump) {
  if (block->block_index[0] != 0) return;
  const heddle::live::Stateful& state = heddle::live::g_stateful;
  auto* out = Get<unsigned*>(params, 0);
  const auto* in = Get<const unsigned*>(params, 1);
  unsigned hash = ++*state.calls;
  for (unsigned i = 0; i < Get<unsigned>(params, 2); ++i) {
    hash = hash * 16777619u ^ in[i];
  }
  state.history[*state.calls % 37] += hash;
  out[0] = *state.calls;
  out[1] = state.history[*state.calls % 37];
}

HEDDLE_HOST_KERNEL(pass_on) {
  const unsigned index = block->block_index[0];
  if (index >= Get<unsigned>(params, 2)) return;
  Get<unsigned*>(params, 0)[index] = Get<const unsigned*>(params, 1)[index] + 1;
}

HEDDLE_HOST_KERNEL(flicker) {
  if (block->block_index[0] != 0) return;
  const unsigned run = heddle::live::g_flicker_runs++;
  *Get<unsigned*>(params, 0) =
      (run * 2654435761u >> 16) % Get<unsigned>(params, 1) == 0 ? 1 : 0;
}
