// SPDX-License-Identifier: Apache-2.0
//
// inception_cudart: the network on cuDNN and a statically linked CUDA runtime.

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/cudart_gpu.h"
#include "benchmarks/apps/inception/run.h"

namespace {

absl::StatusOr<std::unique_ptr<apps::Gpu>> CreateGpu(
    const inception::Options& options) {
  return apps::CreateCudartGpu(options.device);
}

}  // namespace

int main(int argc, char** argv) {
  return inception::Main(argc, argv, CreateGpu);
}
