// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_COMPRESSION_H_
#define HEDDLE_RUNTIME_CUBIN_COMPRESSION_H_

// The two compressions of fatbin entries. Both return DataLoss unless `input`
// decompresses to exactly `size` bytes.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::cubin {

// One LZ4 block (no frame), as in LZ4's block format description.
absl::StatusOr<std::vector<uint8_t>> DecompressLz4(
    absl::Span<const uint8_t> input, uint64_t size);

// One zstd frame.
absl::StatusOr<std::vector<uint8_t>> DecompressZstd(
    absl::Span<const uint8_t> input, uint64_t size);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_COMPRESSION_H_
