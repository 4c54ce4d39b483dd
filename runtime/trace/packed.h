// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_PACKED_H_
#define HEDDLE_RUNTIME_TRACE_PACKED_H_

// Records that are packed into one record of type kPacked (table Packed).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"

namespace heddle::trace {

// The most that a block may hold, uncompressed.
inline constexpr uint64_t kMaxPackedBytes = 64u << 20;

// Gathers records and compresses them together.
class PackedBlock {
 public:
  // The record's index and offset do not matter.
  void Add(fb::RecordType type, absl::Span<const uint8_t> payload);

  bool empty() const { return records_ == 0; }
  uint64_t bytes() const { return content_.size(); }

  // The payload of a kPacked record, finished; then the block is empty again.
  // `level` is zstd's.
  flatbuffers::DetachedBuffer Finish(int level);

 private:
  uint32_t records_ = 0;
  std::vector<uint8_t> content_;
};

// What is in the payload of a kPacked record.
struct UnpackedBlock {
  // Type and payload of each; index and offset are left to the caller.
  std::vector<Record> records;
  // What the payloads point into.
  std::unique_ptr<uint64_t[]> content;
  // What is wrong with the block, as the end of "it ..."; then the rest is
  // empty. Payloads are not verified.
  std::string error;
};
UnpackedBlock Unpack(absl::Span<const uint8_t> payload);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_PACKED_H_
