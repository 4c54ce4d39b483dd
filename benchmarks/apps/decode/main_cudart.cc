// SPDX-License-Identifier: Apache-2.0
//
// decode_cudart: the decoder against a statically linked CUDA runtime.

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/apps/common/cudart_gpu.h"
#include "benchmarks/apps/decode/cudart_launcher.h"
#include "benchmarks/apps/decode/run.h"

namespace {

absl::StatusOr<decode::Device> CreateDevice(const decode::Options& options) {
  if (options.load != "direct" || options.image != "fatbin") {
    return absl::InvalidArgumentError(
        "--load and --image are for decode: here the CUDA runtime finds the "
        "driver and loads the device code");
  }
  absl::StatusOr<std::unique_ptr<apps::Gpu>> gpu =
      apps::CreateCudartGpu(options.device);
  if (!gpu.ok()) return gpu.status();
  void* const stream = (*gpu)->native_stream();
  return decode::Device{*std::move(gpu), decode::CreateCudartLauncher(stream)};
}

}  // namespace

int main(int argc, char** argv) {
  return decode::Main(argc, argv, CreateDevice);
}
