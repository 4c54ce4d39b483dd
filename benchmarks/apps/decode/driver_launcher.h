// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_DRIVER_LAUNCHER_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_DRIVER_LAUNCHER_H_

#include <cuda.h>

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/driver_api.h"
#include "benchmarks/apps/decode/launcher.h"

namespace decode {

// Loads `image`, a cubin or a fatbin with the kernels of kernels.cu, into the
// current context and launches on `stream`, which must outlive the object. The
// image is read during the call only.
absl::StatusOr<std::unique_ptr<Launcher>> CreateDriverLauncher(
    const apps::DriverApi& api, CUstream stream, const void* image);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_DRIVER_LAUNCHER_H_
