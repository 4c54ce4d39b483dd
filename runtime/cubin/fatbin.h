// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_FATBIN_H_
#define HEDDLE_RUNTIME_CUBIN_FATBIN_H_

// One fatbin container: a 16-byte header, then entries, each a header and a
// payload (PTX, a cubin, or intermediate code), compressed or not. A program's
// .nv_fatbin section holds many containers behind one another; each is an image
// of its own.
//
// The layout is not documented by its vendor; the fields named here were
// checked against what `fatbinary` of CUDA 12.x and 13.0 writes and
// `cuobjdump` prints.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::cubin {

inline constexpr uint32_t kFatbinMagic = 0xba55ed50;
inline constexpr uint64_t kFatbinHeaderSize = 16;

enum class FatbinEntryKind : uint16_t {
  kPtx = 1,
  kElf = 2,
  // Others occur (8: intermediate code for link-time optimization); they are
  // listed with their number.
};

enum class FatbinCompression : uint8_t { kNone, kLz4, kZstd };

struct FatbinEntry {
  FatbinEntryKind kind{};
  // Compute capability x 10: 90 for sm_90 and for compute_90.
  uint32_t arch = 0;
  // Written for exactly this chip (sm_90a), or for its family (sm_100f).
  bool arch_specific = false;
  bool family_specific = false;
  FatbinCompression compression = FatbinCompression::kNone;
  // Header and payload, as they stand in the container.
  absl::Span<const uint8_t> bytes;
  // The stored payload without padding: compressed bytes if compressed.
  absl::Span<const uint8_t> payload;
  // Size after decompression. PTX may have padding of zeros at the end.
  uint64_t uncompressed_size = 0;
};

// Whole size of the container whose header is at the start of `bytes`. Looks at
// no more than the header. InvalidArgument if it is none.
absl::StatusOr<uint64_t> FatbinSize(absl::Span<const uint8_t> bytes);

// The entries of the container at the start of `fatbin`, in order. Bytes behind
// the container are ignored. InvalidArgument if it is damaged.
absl::StatusOr<std::vector<FatbinEntry>> FatbinEntries(
    absl::Span<const uint8_t> fatbin);

// The entry's content, decompressed. DataLoss if it does not decompress to the
// size it states.
absl::StatusOr<std::vector<uint8_t>> FatbinEntryContent(
    const FatbinEntry& entry);

// Whether a device of compute capability major.minor can run `entry`: a cubin
// of the same major and no later minor (of exactly this chip or its family if
// it says so), or PTX of no later capability.
bool FatbinEntryFits(const FatbinEntry& entry, int major, int minor);

// A container with only what such a device could use: the cubins that fit, or,
// if there are none, the PTX that fits. Entries are copied as they are, still
// compressed. NotFound if nothing fits.
absl::StatusOr<std::vector<uint8_t>> FilterFatbin(
    absl::Span<const uint8_t> fatbin, int major, int minor);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_FATBIN_H_
