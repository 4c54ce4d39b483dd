// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_RUN_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_RUN_H_

// The program, apart from how CUDA is reached: shared by inception and
// inception_cudart.

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/inception/options.h"

namespace inception {

using GpuFactory =
    std::function<absl::StatusOr<std::unique_ptr<apps::Gpu>>(const Options&)>;

// What main does. Returns an apps::ExitCode.
int Main(int argc, char** argv, const GpuFactory& create_gpu);

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_RUN_H_
