// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_PROGRAM_ACCESS_H_
#define HEDDLE_RUNTIME_REPLAY_PROGRAM_ACCESS_H_

// Which bytes each operation of a step touches: what copies and fills declare,
// and what the machine code of the kernels shows. Needs no device.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/access/access_set.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

struct StepAccess {
  // By index in Program::step.operations. Addresses are the recorded ones; host
  // buffers of copies are not memory that kernels share, and not in the sets.
  std::vector<access::AccessSet> operations;
  // Launches whose kernel and parameters had been analysed before.
  uint64_t reused = 0;
  // What a reader must know ("3 images are not in the trace"), one line each.
  std::vector<std::string> notes;
};

// Never fails because of a kernel: what cannot be analysed is unknown, with the
// reason in its set. What was analysed is kept in `cache_folder` (see
// cubin::CacheFolder::DefaultPath), unless it is empty or cannot be used.
absl::StatusOr<StepAccess> FindAccesses(const trace::Reader& reader,
                                        const Program& program,
                                        const std::string& cache_folder = "");

// The bytes of a copy's end in device memory, or of a fill.
access::ExtentSet BytesOf(const CopyEnd& end, const CopyWork& copy);
access::ExtentSet BytesOf(const FillWork& fill);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_PROGRAM_ACCESS_H_
