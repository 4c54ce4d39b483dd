// SPDX-License-Identifier: Apache-2.0

// Inlined, so that a checksum is no call through a shared library and the
// recorder does not pull libxxhash into the program.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"

namespace heddle::trace {

std::string Hash128::ToHex() const {
  return absl::StrFormat("%016x%016x", hi, lo);
}

Hash128 HashBytes(absl::Span<const uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Hash128{hash.low64, hash.high64};
}

uint64_t HashBytes64(const void* bytes, size_t size) {
  return XXH3_64bits(bytes, size);
}

uint64_t RecordChecksum(uint64_t head, const uint8_t* payload) {
  const uint64_t size = RoundUp(HeadLength(head), kRecordAlignment);
  return XXH3_64bits_withSeed(payload, size, head);
}

}  // namespace heddle::trace
