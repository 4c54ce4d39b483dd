// SPDX-License-Identifier: Apache-2.0
//
// What the patcher may put before a kernel, one kernel for each. Only the
// instructions that nvcc makes of the asm statements are taken, in their order
// and with their scheduling (runtime/cubin/stubs.cc). The code may run a second
// time in a block, where a kernel branches to its own first instruction: of
// both instructions the PTX ISA says that repeating them has no effect.

extern "C" __global__ void heddle_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" __global__ void heddle_trigger_wait() {
  asm volatile(
      "griddepcontrol.launch_dependents;\n\t"
      "griddepcontrol.wait;" ::
          : "memory");
}

extern "C" __global__ void heddle_wait_trigger() {
  asm volatile(
      "griddepcontrol.wait;\n\t"
      "griddepcontrol.launch_dependents;" ::
          : "memory");
}
