// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_LAUNCHER_H_
#define HEDDLE_RUNTIME_REPLAY_LAUNCHER_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/device/driver.h"
#include "runtime/replay/bound_program.h"
#include "runtime/replay/operation.h"

namespace heddle::replay {

// Submits `operation` to `stream`. `early`: the kernel may start before the
// one before it in the stream has ended (programmatic stream serialization).
absl::Status Submit(const device::Driver& driver, const BoundProgram& program,
                    const Operation& operation, CUstream stream, bool early);

// The copy in the driver's form.
CUDA_MEMCPY3D ToMemcpy3D(const BoundProgram& program, const CopyWork& copy);

// Attributes of the launch that mean something outside the recorded process
// and hold a value: not events and order, which the operation's dependencies
// express, and no zero defaults that a graph node reads back.
std::vector<CUlaunchAttribute> KeptAttributes(const LaunchWork& launch);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_LAUNCHER_H_
