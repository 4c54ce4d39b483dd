// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_CONTENT_LOADER_H_
#define HEDDLE_RUNTIME_REPLAY_CONTENT_LOADER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/replay/memory_image.h"
#include "runtime/replay/modules.h"
#include "runtime/replay/program.h"
#include "runtime/replay/transfer.h"

namespace heddle::replay {

struct LoadOptions {
  // Of the values of described ranges.
  uint64_t seed = 1;
  // Changes floating-point data of exact ranges, see Perturb.
  bool perturb = false;
};

struct LoadedBytes {
  uint64_t exact = 0;
  uint64_t described = 0;  // filled with seeded values
  uint64_t zero = 0;
  uint64_t perturbed = 0;
};

// Puts the program's initial content into the image; memory without content
// becomes zero. Errors: DataLoss or NotFound (bytes that the trace should hold
// and does not), FailedPrecondition (memory that holds the address of a module
// variable, which is another one in this process).
absl::StatusOr<LoadedBytes> LoadContent(
    const trace::Reader& reader, const Program& program,
    const std::vector<MovedVariable>& variables, const LoadOptions& options,
    Transfer& transfer, MemoryImage& image);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_CONTENT_LOADER_H_
