// SPDX-License-Identifier: Apache-2.0
// The kernel's body on the host device.
#include "tests/hostdevice/host_kernel.h"

HEDDLE_HOST_KERNEL(launch_cost_ten) {
  (void)block;
  (void)params;
}
