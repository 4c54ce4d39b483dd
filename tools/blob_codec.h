// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_BLOB_CODEC_H_
#define HEDDLE_TOOLS_BLOB_CODEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"

namespace heddle::tools {

// The uncompressed bytes of one piece of a blob. DataLoss if they cannot be
// had.
absl::StatusOr<std::vector<uint8_t>> PieceBytes(const fb::Blob& piece);

// The same piece compressed at zstd's `level`, 0 = not at all; its payload,
// finished.
flatbuffers::DetachedBuffer EncodePiece(const fb::Blob& piece,
                                        const std::vector<uint8_t>& bytes,
                                        int level);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_BLOB_CODEC_H_
