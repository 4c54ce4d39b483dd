// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_BLOB_STORE_H_
#define HEDDLE_RUNTIME_TRACE_BLOB_STORE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"

namespace heddle::trace {

// The Blob records of a trace, by hash. Nothing that they say is believed:
// sizes are checked against each other and against the compressed data before
// memory is asked for.
class BlobStore {
 public:
  // `piece` must outlive this.
  void Add(const fb::Blob& piece);
  // After the last Add.
  void Finish();

  bool Has(const Hash128& hash) const;
  absl::StatusOr<std::vector<uint8_t>> Read(const Hash128& hash) const;

 private:
  struct Entry {
    std::vector<const fb::Blob*> pieces;  // by offset, once finished
    bool complete = false;
  };
  absl::flat_hash_map<Hash128, Entry> blobs_;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_BLOB_STORE_H_
