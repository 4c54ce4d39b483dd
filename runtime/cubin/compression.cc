// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/compression.h"

#include <zstd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::cubin {
namespace {

absl::Status BadLz4(const char* what) {
  return absl::DataLossError(absl::StrCat("LZ4 block: ", what));
}

// Adds the extension bytes of a length whose 4-bit field was 15. False if the
// input ends first.
bool ReadLength(absl::Span<const uint8_t> input, size_t* at, uint64_t* length) {
  uint8_t byte;
  do {
    if (*at >= input.size()) return false;
    byte = input[(*at)++];
    *length += byte;
  } while (byte == 255);
  return true;
}

// Memory taken up front on a header's word; more only as content appears.
constexpr uint64_t kTrustedReserve = uint64_t{64} << 20;

}  // namespace

absl::StatusOr<std::vector<uint8_t>> DecompressLz4(
    absl::Span<const uint8_t> input, uint64_t size) {
  constexpr uint64_t kMinMatch = 4;
  std::vector<uint8_t> out;
  out.reserve(std::min(size, kTrustedReserve));
  size_t at = 0;
  while (at < input.size()) {
    const uint8_t token = input[at++];
    uint64_t literals = token >> 4;
    if (literals == 15 && !ReadLength(input, &at, &literals)) {
      return BadLz4("literal length runs past the end");
    }
    if (literals > input.size() - at || literals > size - out.size()) {
      return BadLz4("literals run past the end");
    }
    out.insert(out.end(), input.begin() + at, input.begin() + at + literals);
    at += literals;
    if (at == input.size()) break;  // the last sequence has no match

    if (input.size() - at < 2) return BadLz4("no room for a match offset");
    const size_t offset = input[at] | input[at + 1] << 8;
    at += 2;
    uint64_t match = token & 15;
    if (match == 15 && !ReadLength(input, &at, &match)) {
      return BadLz4("match length runs past the end");
    }
    match += kMinMatch;
    if (offset == 0 || offset > out.size()) return BadLz4("match offset");
    if (match > size - out.size()) return BadLz4("match runs past the end");
    // Byte by byte: a match may overlap what it produces.
    for (uint64_t i = 0; i < match; ++i)
      out.push_back(out[out.size() - offset]);
  }
  if (out.size() != size) {
    return BadLz4("content is shorter than stated");
  }
  return out;
}

absl::StatusOr<std::vector<uint8_t>> DecompressZstd(
    absl::Span<const uint8_t> input, uint64_t size) {
  const unsigned long long stated =
      ZSTD_getFrameContentSize(input.data(), input.size());
  if (stated != size) {
    return absl::DataLossError(
        absl::StrCat("zstd frame does not hold the ", size, " bytes stated"));
  }
  std::vector<uint8_t> out(size);
  const size_t got =
      ZSTD_decompress(out.data(), out.size(), input.data(), input.size());
  if (ZSTD_isError(got)) {
    return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(got)));
  }
  if (got != size) {
    return absl::DataLossError("zstd: content is shorter than stated");
  }
  return out;
}

}  // namespace heddle::cubin
