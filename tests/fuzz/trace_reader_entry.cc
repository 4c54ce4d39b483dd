// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/trace_reader_entry.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"

namespace heddle::trace {
namespace {

// Larger blobs cost a fuzzer its speed and reach nothing new.
constexpr uint64_t kMaxBlobBytes = 64 << 10;

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "the reader broke a promise: %s\n", what);
  std::abort();
}

// Copies every field of every table, so that each is read once.
template <typename Table>
void Touch(const Record& record) {
  if (const Table* table = record.As<Table>()) {
    const std::unique_ptr<typename Table::NativeTableType> copy(
        table->UnPack());
  }
}

void Read(absl::Span<const uint8_t> bytes) {
  const absl::StatusOr<std::unique_ptr<Reader>> opened =
      Reader::FromBytes(bytes, "fuzz");
  if (!opened.ok()) {
    Require(absl::IsInvalidArgument(opened.status()) ||
                absl::IsFailedPrecondition(opened.status()),
            "the status is one of the documented ones");
    return;
  }
  const Reader& reader = **opened;
  Require(reader.truncated() == !reader.truncation().empty(),
          "a truncated trace says why");
  uint64_t end = sizeof(FileHeader);
  uint64_t last = 0;
  uint64_t index = 0;
  for (const Record& record : reader.records()) {
    Require(record.index == index++, "records are numbered");
    // Records of one packed block share its offset.
    Require(record.offset >= end || record.offset == last,
            "records do not overlap");
    last = record.offset;
    end = last + RecordBytes(HeadLength(LoadHead(bytes.data() + last)));
    Require(end <= bytes.size(), "records lie in the file");
    Require(!RecordTypeName(record.type).empty(), "types have names");
#define HEDDLE_TOUCH(Table) Touch<fb::Table>(record);
    HEDDLE_RECORD_TABLES(HEDDLE_TOUCH)
#undef HEDDLE_TOUCH
    const auto* blob = record.As<fb::Blob>();
    if (blob == nullptr || blob->hash() == nullptr ||
        blob->size() > kMaxBlobBytes) {
      continue;
    }
    const Hash128 hash{blob->hash()->lo(), blob->hash()->hi()};
    const absl::StatusOr<std::vector<uint8_t>> content = reader.ReadBlob(hash);
    Require(!content.ok() || HashBytes(*content) == hash,
            "a blob matches its hash");
    Require(!content.ok() || reader.HasBlob(hash),
            "a blob that is read is there");
  }
}

// Makes the checksums right from the header to the first record that does not
// fit.
void FixChecksums(std::vector<uint8_t>& bytes) {
  if (bytes.size() < sizeof(FileHeader)) return;
  FileHeader header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.magic = kFileMagic;
  header.version = kFormatVersion;
  header.min_reader_version = kMinReaderVersion;
  header.checksum = HashBytes64(&header, offsetof(FileHeader, checksum));
  std::memcpy(bytes.data(), &header, sizeof(header));

  uint64_t at = sizeof(FileHeader);
  uint64_t footer = 0;
  while (bytes.size() - at >= sizeof(RecordHeader)) {
    RecordHeader record{};
    std::memcpy(&record, bytes.data() + at, sizeof(record));
    const uint64_t size = RecordBytes(HeadLength(record.head));
    if (record.head == 0 || size > bytes.size() - at) break;
    record.checksum =
        RecordChecksum(record.head, bytes.data() + at + sizeof(RecordHeader));
    std::memcpy(bytes.data() + at, &record, sizeof(record));
    if (HeadType(record.head) ==
        static_cast<uint16_t>(fb::RecordType::kFooter)) {
      footer = at;
    }
    at += size;
  }
  if (footer == 0 || bytes.size() < sizeof(FileHeader) + sizeof(FileTrailer)) {
    return;
  }
  FileTrailer trailer{};
  trailer.footer_offset = footer;
  trailer.file_size = bytes.size();
  trailer.magic = kTrailerMagic;
  trailer.checksum = HashBytes64(&trailer, offsetof(FileTrailer, checksum));
  std::memcpy(bytes.data() + bytes.size() - sizeof(trailer), &trailer,
              sizeof(trailer));
}

}  // namespace

void FuzzTraceReader(absl::Span<const uint8_t> bytes) {
  // Copies of just their size, so that AddressSanitizer sees what is read
  // beyond.
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  copy.shrink_to_fit();
  Read(copy);
  FixChecksums(copy);
  Read(copy);
}

}  // namespace heddle::trace
