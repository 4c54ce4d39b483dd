// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_CUDART_GPU_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_CUDART_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"

namespace apps {

// Device `ordinal` over the CUDA runtime API.
absl::StatusOr<std::unique_ptr<Gpu>> CreateCudartGpu(int ordinal);

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_CUDART_GPU_H_
