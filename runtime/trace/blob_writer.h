// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_BLOB_WRITER_H_
#define HEDDLE_RUNTIME_TRACE_BLOB_WRITER_H_

#include <cstdint>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {

// Cuts content into Blob records, once per content.
//
// Threads: Append may be called from several at once. Hashing and compressing
// hold no lock. While one thread writes a blob, another that brings the same
// bytes returns at once, so pieces may come after the first record that names
// their hash.
class BlobWriter {
 public:
  // zstd's level; 0 = store everything as it is.
  explicit BlobWriter(int compression_level) : level_(compression_level) {}

  Hash128 Append(Writer& writer, absl::Span<const uint8_t> bytes);

 private:
  const int level_;
  std::mutex mutex_;
  absl::flat_hash_set<Hash128> known_;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_BLOB_WRITER_H_
