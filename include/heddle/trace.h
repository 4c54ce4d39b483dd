// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TRACE_H_
#define HEDDLE_TRACE_H_

// Reading heddle traces (.htrace). The format is described in traces/FORMAT.md,
// the payloads in runtime/trace/trace.fbs.
//
//   absl::StatusOr<std::unique_ptr<heddle::trace::Reader>> reader =
//   heddle::trace::Reader::Open("llama.htrace"); for (const
//   heddle::trace::Record& record : (*reader)->records()) {
//     if (const auto* launch = record.As<heddle::fb::Launch>()) { ... }
//   }
//
// Threads: a Reader is immutable after Open; all const methods may be called
// from several threads at once. Ownership: records and everything they point to
// live as long as the Reader.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/trace_generated.h"

namespace heddle::trace {

// Version of the format that this library writes, and the oldest reader that
// understands it. See the version table in traces/FORMAT.md.
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kMinReaderVersion = 1;

struct Hash128 {
  uint64_t lo = 0;
  uint64_t hi = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Hash128& hash) {
    return H::combine(std::move(state), hash.lo, hash.hi);
  }
  std::string ToHex() const;  // 32 digits, high half first
};

// XXH3-128 of `bytes`.
Hash128 HashBytes(absl::Span<const uint8_t> bytes);

struct Header {
  uint32_t version = 0;
  uint32_t min_reader_version = 0;
  std::array<uint8_t, 16> uuid{};
  uint32_t pid = 0;
  int32_t rank = -1;
  uint64_t start_unix_ns = 0;
};

namespace internal {
template <typename Table>
struct RecordTypeOf;
}  // namespace internal

// One verified record: its payload is a well-formed FlatBuffer of the table
// that belongs to its type.
struct Record {
  fb::RecordType type = fb::RecordType::kNone;
  uint64_t index = 0;   // position among all records, from 0; what `heddle dump
                        // --calls` counts
  uint64_t offset = 0;  // of the record's header in the file, or of the packed
                        // block that holds it; bytes
  absl::Span<const uint8_t> payload;

  // The payload as `Table`, or nullptr if this record is of another type.
  template <typename Table>
  const Table* As() const {
    if (type != internal::RecordTypeOf<Table>::value) return nullptr;
    return flatbuffers::GetRoot<Table>(payload.data());
  }
};

// Name of a record type as `dump` prints it, e.g. "launch"; "type-77" for one
// that this version does not know.
std::string RecordTypeName(fb::RecordType type);

class Reader {
 public:
  // Maps and checks the whole file. Errors: NotFound; InvalidArgument (not a
  // trace, damaged header); FailedPrecondition (needs a newer reader; the
  // message names both versions). A torn or damaged tail is no error: records()
  // ends before it and truncated() says so.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path);
  // The same over bytes that the caller keeps alive.
  static absl::StatusOr<std::unique_ptr<Reader>> FromBytes(
      absl::Span<const uint8_t> bytes, std::string name);

  virtual ~Reader() = default;

  virtual const std::string& path() const = 0;
  virtual const Header& header() const = 0;
  virtual uint64_t file_size() const = 0;

  // Every record but padding, in file order.
  virtual absl::Span<const Record> records() const = 0;

  // True when the file does not end with a footer that matches its records: the
  // program was killed, or the file was cut or damaged.
  virtual bool truncated() const = 0;
  // Why, in words, with the file offset; empty when not truncated.
  virtual const std::string& truncation() const = 0;

  // Whether all pieces of the blob are here.
  virtual bool HasBlob(const Hash128& hash) const = 0;
  // The uncompressed bytes. NotFound if the trace does not hold them, DataLoss
  // if they do not match their hash.
  virtual absl::StatusOr<std::vector<uint8_t>> ReadBlob(
      const Hash128& hash) const = 0;
};

namespace internal {
#define HEDDLE_RECORD_TABLES(X)                                               \
  X(Process)                                                                  \
  X(Device) X(Context) X(End) X(Blob) X(Image) X(Module) X(ModuleUnload)      \
      X(Kernel) X(KernelAttribute) X(Global) X(Alloc) X(Free) X(Launch)       \
          X(Memcpy) X(Memset) X(HostFunc) X(MemOp) X(Stream) X(Event) X(Sync) \
              X(Capture) X(Graph) X(GraphExec) X(GraphLaunch) X(TensorMap)    \
                  X(Range) X(Step) X(Snapshot) X(MemoryRange) X(Unsupported)  \
                      X(Note)
#define HEDDLE_RECORD_TYPE_OF(Table)                                  \
  template <>                                                         \
  struct RecordTypeOf<fb::Table> {                                    \
    static constexpr fb::RecordType value = fb::RecordType::k##Table; \
  };
HEDDLE_RECORD_TABLES(HEDDLE_RECORD_TYPE_OF)
#undef HEDDLE_RECORD_TYPE_OF
}  // namespace internal

}  // namespace heddle::trace

#endif  // HEDDLE_TRACE_H_
