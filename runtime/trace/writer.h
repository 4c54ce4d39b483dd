// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_WRITER_H_
#define HEDDLE_RUNTIME_TRACE_WRITER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"

namespace heddle::trace {

struct WriterOptions {
  int rank = -1;
  // zstd level for blobs; 0 stores them as they are.
  int compression_level = 1;
  // The file grows by this much at a time. Disk space is reserved before it is
  // mapped, so that a full disk is an error that the writer sees and never a
  // SIGBUS in the program.
  uint64_t chunk_bytes = 16u << 20;
  // Recording stops (with a note) when the file would grow past this; 0 = no
  // limit.
  uint64_t max_bytes = 0;
  // For a trace that is made from another one: the header to take uuid,
  // process id, rank and start time from.
  std::optional<Header> source;
};

// Appends records to a trace.
//
// The file is mapped and written in place: a record costs one atomic addition
// and a copy, no system call and no lock, and what was written is in the page
// cache, so SIGKILL loses nothing that was complete. The length word is stored
// last, with release order. Growing the file and taking its page faults ahead
// of the position is the work of a thread of the writer's own, which starts
// with the first 256 KiB and ends with Close.
//
// Threads: Append and AppendBlob may be called from any thread at any time.
// Close once, by one thread; a concurrent Append is either in the file or
// dropped. Errors: the first failure (disk full, mapping refused, max_bytes)
// turns the writer off: ok() becomes false, later calls do nothing, and error()
// says why. What was written stays readable.
class Writer {
 public:
  static absl::StatusOr<std::unique_ptr<Writer>> Create(
      const std::string& path, const WriterOptions& options);
  virtual ~Writer() = default;

  // `payload` is a finished FlatBuffer of the table that belongs to `type`.
  // Returns false when the writer is off.
  virtual bool Append(fb::RecordType type,
                      absl::Span<const uint8_t> payload) = 0;

  // Says that this thread will append soon, so that the line which all threads
  // share is on its way meanwhile. Costs a nanosecond; a hint alone.
  virtual void PrepareAppend() = 0;

  // For payloads too large to be put together elsewhere first: reserves a
  // record of `size` payload bytes and returns where to write them (8-byte
  // aligned), or nullptr when the writer is off. Commit with the same pointer
  // makes it visible; nothing else may happen in between that could block. A
  // reserved record that is never committed ends what a reader of a torn file
  // sees, so keep the two close.
  virtual uint8_t* Reserve(uint32_t size) = 0;
  virtual void Commit(uint8_t* payload, fb::RecordType type, uint32_t size) = 0;

  // Writes `bytes` as a content-addressed blob unless this trace has it
  // already. Returns its hash.
  virtual Hash128 AppendBlob(absl::Span<const uint8_t> bytes) = 0;

  virtual bool ok() const = 0;
  virtual absl::Status error() const = 0;
  virtual uint64_t bytes_written() const = 0;
  virtual const std::string& path() const = 0;

  // Writes the footer and cuts the file to its size. Idempotent.
  virtual absl::Status Close() = 0;
  // In a forked child: forgets the file without touching it; every later call
  // does nothing. A child that does not call it cannot write to its parent's
  // trace either, but keeps the mapping.
  virtual void Abandon() = 0;

  // Finishes `builder` with `root` and appends it.
  template <typename Table>
  bool Append(flatbuffers::FlatBufferBuilder& builder,
              flatbuffers::Offset<Table> root) {
    builder.Finish(root);
    return Append(
        internal::RecordTypeOf<Table>::value,
        absl::MakeConstSpan(builder.GetBufferPointer(), builder.GetSize()));
  }
  // The same from FlatBuffers' object form, e.g. fb::AllocT. For records that
  // are not on a hot path.
  template <typename TableT>
  bool AppendObject(const TableT& object) {
    flatbuffers::FlatBufferBuilder builder(256);
    return Append(builder, TableT::TableType::Pack(builder, &object));
  }
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_WRITER_H_
