// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_GPU_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/driver_api.h"
#include "benchmarks/apps/common/gpu.h"

namespace apps {

// The primary context of device `ordinal`, made current on this thread.
absl::StatusOr<std::unique_ptr<Gpu>> CreateDriverGpu(const DriverApi& api,
                                                     int ordinal);

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_DRIVER_GPU_H_
