// SPDX-License-Identifier: Apache-2.0
//
// inception: the network on cuDNN, all else over the CUDA driver API.

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/driver_api.h"
#include "benchmarks/apps/common/driver_gpu.h"
#include "benchmarks/apps/inception/run.h"

namespace {

absl::StatusOr<std::unique_ptr<apps::Gpu>> CreateGpu(
    const inception::Options& options) {
  absl::StatusOr<apps::DriverApi> api = apps::DriverApi::Load(options.load);
  if (!api.ok()) return api.status();
  return apps::CreateDriverGpu(*api, options.device);
}

}  // namespace

int main(int argc, char** argv) {
  return inception::Main(argc, argv, CreateGpu);
}
