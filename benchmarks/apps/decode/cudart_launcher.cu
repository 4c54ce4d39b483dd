// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/decode/cudart_launcher.h"

// The kernels, by the signatures that kernels.cu asserts.
#define DECODE_DECLARE_KERNEL(name, symbol) \
  extern "C" __global__ decode::name##Fn symbol;
DECODE_KERNELS(DECODE_DECLARE_KERNEL)
#undef DECODE_DECLARE_KERNEL

namespace decode {
namespace {

template <typename... P, size_t... I>
void LaunchUnpacked(void (*kernel)(P...), const LaunchShape& shape,
                    cudaStream_t stream, void** params,
                    std::index_sequence<I...>) {
  kernel<<<dim3(shape.grid_x, shape.grid_y), dim3(shape.block_x, shape.block_y),
           shape.shared_bytes, stream>>>(*static_cast<P*>(params[I])...);
}

template <typename... P>
void LaunchTyped(void (*kernel)(P...), const LaunchShape& shape,
                 cudaStream_t stream, void** params) {
  LaunchUnpacked(kernel, shape, stream, params,
                 std::index_sequence_for<P...>());
}

class CudartLauncher : public Launcher {
 public:
  explicit CudartLauncher(cudaStream_t stream) : stream_(stream) {}

  absl::Status LaunchRaw(Kernel kernel, const LaunchShape& shape,
                         void** params) override {
    const char* launched = nullptr;
    switch (kernel) {
#define DECODE_LAUNCH_CASE(name, symbol)         \
  case Kernel::k##name:                          \
    launched = #symbol;                          \
    LaunchTyped(symbol, shape, stream_, params); \
    break;
      DECODE_KERNELS(DECODE_LAUNCH_CASE)
#undef DECODE_LAUNCH_CASE
    }
    const cudaError_t result = cudaGetLastError();
    if (result == cudaSuccess) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        "launch of ", launched, ": ", cudaGetErrorName(result), " ",
        static_cast<int>(result), " (", cudaGetErrorString(result), ")"));
  }

 private:
  const cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Launcher> CreateCudartLauncher(void* stream) {
  return std::make_unique<CudartLauncher>(static_cast<cudaStream_t>(stream));
}

}  // namespace decode
