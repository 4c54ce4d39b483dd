// SPDX-License-Identifier: Apache-2.0
// The bodies of kernels.cu.

#include "tests/hostdevice/host_kernel.h"
#include "tests/unit/plan/mix.h"

namespace {

template <typename T>
T Get(void* const* params, int index) {
  return *static_cast<const T*>(params[index]);
}

}  // namespace

HEDDLE_HOST_KERNEL(mix) {
  const unsigned* const in[] = {Get<const unsigned*>(params, 1),
                                Get<const unsigned*>(params, 2),
                                Get<const unsigned*>(params, 3)};
  Get<unsigned*>(params, 0)[block->block_index[0]] =
      heddle::plan::Mix(in, Get<unsigned>(params, 4), Get<unsigned>(params, 5),
                        block->block_index[0]);
}

HEDDLE_HOST_KERNEL(mix_own) {
  block->launch_dependents(block);
  block->grid_dependency_wait(block);
  heddle_host_mix(block, params);
}
