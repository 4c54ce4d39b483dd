/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_TESTS_HOSTDEVICE_HOST_KERNEL_H_
#define HEDDLE_TESTS_HOSTDEVICE_HOST_KERNEL_H_

/* How a test or demo program gives the host device
 * (tests/hostdevice/libcuda.so.1) the bodies of its kernels.
 *
 * A kernel `name` of a loaded module runs as the host function
 * `heddle_host_<name>`, called once per block. The host device looks for it
 * with dlsym in the program, then in each library named in
 * HEDDLE_HOSTDEVICE_KERNELS (colon-separated paths), then among its own bodies
 * for heddle's own kernels (builtin_kernels.cc). `params[i]` points to the
 * i-th kernel parameter. The function does the work of all threads of its
 * block; writes go straight to device memory, which is ordinary memory of the
 * process.
 *
 * Blocks run as fibers. A block may be suspended in grid_dependency_wait and in
 * launch_dependents (what follows the trigger may run after its dependents),
 * never elsewhere.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HeddleHostBlock {
  uint32_t grid[3];        /* gridDim */
  uint32_t block[3];       /* blockDim */
  uint32_t block_index[3]; /* blockIdx */
  void* shared; /* dynamic shared memory, shared_bytes of it, filled with a
                   seeded pattern */
  size_t shared_bytes;

  /* griddepcontrol.wait and griddepcontrol.launch_dependents
   * (cudaGridDependencySynchronize, cudaTriggerProgrammaticLaunchCompletion) */
  void (*grid_dependency_wait)(const struct HeddleHostBlock* self);
  void (*launch_dependents)(const struct HeddleHostBlock* self);
  void* device_private;
} HeddleHostBlock;

typedef void (*HeddleHostKernelFn)(const HeddleHostBlock* block,
                                   void* const* params);

#define HEDDLE_HOST_KERNEL(name)                                             \
  extern "C" __attribute__((visibility("default"))) void heddle_host_##name( \
      const HeddleHostBlock* block, void* const* params)

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_TESTS_HOSTDEVICE_HOST_KERNEL_H_ */
