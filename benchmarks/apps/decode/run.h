// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_RUN_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_RUN_H_

// The program, apart from how CUDA is reached: shared by decode and
// decode_cudart.

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/decode/launcher.h"
#include "benchmarks/apps/decode/options.h"

namespace decode {

// How the program reaches the device. The launcher goes first at the end.
struct Device {
  std::unique_ptr<apps::Gpu> gpu;
  std::unique_ptr<Launcher> launcher;
};

using DeviceFactory = std::function<absl::StatusOr<Device>(const Options&)>;

// What main does. Returns an apps::ExitCode.
int Main(int argc, char** argv, const DeviceFactory& create_device);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_RUN_H_
