// SPDX-License-Identifier: Apache-2.0
//
// decode: the decoder against the CUDA driver API.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/driver_api.h"
#include "benchmarks/apps/common/driver_gpu.h"
#include "benchmarks/apps/decode/driver_launcher.h"
#include "benchmarks/apps/decode/run.h"

// Device code of kernels.cu, put into the program by kernel_image.S.
extern "C" const unsigned char decode_image_fatbin[];
extern "C" const unsigned char decode_image_cubin[];

namespace {

absl::StatusOr<apps::DriverApi> LoadDriver(const std::string& route) {
  if (route == "direct") return apps::DriverApi::Linked();
  return apps::DriverApi::Load(route == "dlsym"
                                   ? apps::LoadRoute::kDlsym
                                   : apps::LoadRoute::kProcAddress);
}

absl::StatusOr<decode::Device> CreateDevice(const decode::Options& options) {
  absl::StatusOr<apps::DriverApi> api = LoadDriver(options.load);
  if (!api.ok()) return api.status();
  absl::StatusOr<std::unique_ptr<apps::Gpu>> gpu =
      apps::CreateDriverGpu(*api, options.device);
  if (!gpu.ok()) return gpu.status();
  absl::StatusOr<std::unique_ptr<decode::Launcher>> launcher =
      decode::CreateDriverLauncher(
          *api, static_cast<CUstream>((*gpu)->native_stream()),
          options.image == "cubin" ? decode_image_cubin : decode_image_fatbin);
  if (!launcher.ok()) return launcher.status();
  return decode::Device{*std::move(gpu), *std::move(launcher)};
}

}  // namespace

int main(int argc, char** argv) {
  return decode::Main(argc, argv, CreateDevice);
}
