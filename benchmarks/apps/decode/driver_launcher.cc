// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/driver_launcher.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/apps/common/status_macros.h"

namespace decode {
namespace {

constexpr std::array kKernelNames = {
#define DECODE_KERNEL_NAME(name, symbol) #symbol,
    DECODE_KERNELS(DECODE_KERNEL_NAME)
#undef DECODE_KERNEL_NAME
};

class DriverLauncher : public Launcher {
 public:
  DriverLauncher(const apps::DriverApi& api, CUstream stream)
      : api_(api), stream_(stream) {}
  DriverLauncher(const DriverLauncher&) = delete;
  DriverLauncher& operator=(const DriverLauncher&) = delete;

  ~DriverLauncher() override {
    if (module_ == nullptr) return;
    // No kernel may be running when its code goes.
    api_.StreamSynchronize(stream_);
    api_.ModuleUnload(module_);
  }

  absl::Status Initialize(const void* image) {
    APPS_RETURN_IF_ERROR(
        api_.Check(api_.ModuleLoadData(&module_, image), "cuModuleLoadData"));
    for (size_t i = 0; i < kKernelNames.size(); ++i) {
      APPS_RETURN_IF_ERROR(api_.Check(
          api_.ModuleGetFunction(&functions_[i], module_, kKernelNames[i]),
          absl::StrCat("cuModuleGetFunction of ", kKernelNames[i])));
    }
    return absl::OkStatus();
  }

  absl::Status LaunchRaw(Kernel kernel, const LaunchShape& shape,
                         void** params) override {
    const auto index = static_cast<size_t>(kernel);
    const CUresult result = api_.LaunchKernel(
        functions_[index], shape.grid_x, shape.grid_y, 1, shape.block_x,
        shape.block_y, 1, shape.shared_bytes, stream_, params, nullptr);
    if (result == CUDA_SUCCESS) return absl::OkStatus();
    return api_.Check(
        result, absl::StrFormat("cuLaunchKernel of %s, grid %ux%u, block %ux%u",
                                kKernelNames[index], shape.grid_x, shape.grid_y,
                                shape.block_x, shape.block_y));
  }

 private:
  const apps::DriverApi api_;
  CUstream const stream_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, kKernelNames.size()> functions_ = {};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Launcher>> CreateDriverLauncher(
    const apps::DriverApi& api, CUstream stream, const void* image) {
  auto launcher = std::make_unique<DriverLauncher>(api, stream);
  APPS_RETURN_IF_ERROR(launcher->Initialize(image));
  return std::unique_ptr<Launcher>(std::move(launcher));
}

}  // namespace decode
