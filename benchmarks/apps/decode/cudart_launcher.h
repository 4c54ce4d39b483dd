// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_CUDART_LAUNCHER_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_CUDART_LAUNCHER_H_

#include <memory>

#include "benchmarks/apps/decode/launcher.h"

namespace decode {

// Launches the kernels of the program's own fatbin with <<<>>> on `stream`, a
// cudaStream_t, which must outlive the object.
std::unique_ptr<Launcher> CreateCudartLauncher(void* stream);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_CUDART_LAUNCHER_H_
