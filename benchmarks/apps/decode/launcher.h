// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_LAUNCHER_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_LAUNCHER_H_

// Launches of the decoder's kernels: cuLaunchKernel (driver_launcher.cc) or
// <<<>>> (cudart_launcher.cu).

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "benchmarks/apps/decode/kernel_types.h"

namespace decode {

struct LaunchShape {
  uint32_t grid_x = 1;
  uint32_t grid_y = 1;
  uint32_t block_x = 1;
  uint32_t block_y = 1;
  uint32_t shared_bytes = 0;  // dynamic shared memory a block
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  // `params[i]` points to the i-th parameter. Prefer Launch below.
  virtual absl::Status LaunchRaw(Kernel kernel, const LaunchShape& shape,
                                 void** params) = 0;

  // Launches with arguments that are checked against the kernel's signature.
  template <typename... P>
  absl::Status Launch(TypedKernel<void(P...)> kernel, const LaunchShape& shape,
                      std::type_identity_t<P>... args) {
    void* params[] = {static_cast<void*>(&args)...};
    return LaunchRaw(kernel.id, shape, params);
  }
};

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_LAUNCHER_H_
