// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_SELECT_CUBIN_H_
#define HEDDLE_RUNTIME_CUBIN_SELECT_CUBIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::cubin {

// The machine code that a device of compute capability `major`.`minor` runs
// out of `image` (a cubin or a fatbin container), as the driver chooses, and
// decompressed.
// Unimplemented: only PTX fits, which the driver would compile itself (also
// when `image` is PTX text). NotFound: nothing fits. InvalidArgument or
// DataLoss: `image` is none of these, or damaged. Thread safe.
absl::StatusOr<std::vector<uint8_t>> SelectCubin(
    absl::Span<const uint8_t> image, int major, int minor);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_SELECT_CUBIN_H_
