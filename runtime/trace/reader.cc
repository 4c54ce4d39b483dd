// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/blob_store.h"
#include "runtime/trace/file_header.h"
#include "runtime/trace/format.h"
#include "runtime/trace/mapped_input.h"
#include "runtime/trace/packed.h"
#include "runtime/trace/record_counter.h"
#include "runtime/trace/record_types.h"

namespace heddle::trace {
namespace {

template <typename T>
T Load(absl::Span<const uint8_t> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class ReaderImpl final : public Reader {
 public:
  ReaderImpl(std::string path, MappedInput input)
      : path_(std::move(path)),
        input_(std::move(input)),
        bytes_(input_.bytes()) {}

  // FlatBuffers reads its words where they lie: bytes that are not aligned
  // are copied to where they are.
  ReaderImpl(std::string name, absl::Span<const uint8_t> bytes)
      : path_(std::move(name)), bytes_(bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % kRecordAlignment == 0) {
      return;
    }
    aligned_.resize((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(aligned_.data(), bytes.data(), bytes.size());
    bytes_ = absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(aligned_.data()), bytes.size());
  }

  absl::Status Load() {
    absl::StatusOr<Header> header = ParseFileHeader(bytes_, path_);
    if (!header.ok()) return header.status();
    header_ = *header;
    Walk();
    blobs_.Finish();
    return absl::OkStatus();
  }

  const std::string& path() const override { return path_; }
  const Header& header() const override { return header_; }
  uint64_t file_size() const override { return bytes_.size(); }
  absl::Span<const Record> records() const override { return records_; }
  bool truncated() const override { return !truncation_.empty(); }
  const std::string& truncation() const override { return truncation_; }
  bool HasBlob(const Hash128& hash) const override { return blobs_.Has(hash); }
  absl::StatusOr<std::vector<uint8_t>> ReadBlob(
      const Hash128& hash) const override {
    return blobs_.Read(hash);
  }

 private:
  void Walk();
  void AddRecord(fb::RecordType type, uint64_t offset,
                 absl::Span<const uint8_t> payload);
  // Adds what is in a block of packed records, or returns what is wrong.
  std::string AddPacked(uint64_t offset, absl::Span<const uint8_t> payload);
  // What is wrong with the record at `offset`, or "".
  std::string CheckRecord(uint64_t offset, uint64_t head) const;
  // Whether what follows the last record closes the file as it should.
  std::string CheckFooter(uint64_t offset,
                          absl::Span<const uint8_t> payload) const;
  std::string DescribeEnd(uint64_t offset) const;
  // The number of records that a footer claims, if the file ends with one.
  std::optional<uint64_t> RecordsInFooter() const;
  void Truncate(uint64_t offset, absl::string_view why);

  const std::string path_;
  MappedInput input_;
  std::vector<uint64_t> aligned_;
  std::vector<std::unique_ptr<uint64_t[]>> unpacked_;
  absl::Span<const uint8_t> bytes_;
  Header header_;
  std::vector<Record> records_;
  RecordCounter counter_{sizeof(FileHeader)};
  BlobStore blobs_;
  std::string truncation_;
};

void ReaderImpl::Walk() {
  uint64_t offset = sizeof(FileHeader);
  while (true) {
    if (bytes_.size() - offset < sizeof(RecordHeader)) {
      return Truncate(offset, DescribeEnd(offset));
    }
    const uint64_t head = LoadHead(bytes_.data() + offset);
    if (head == 0) return Truncate(offset, DescribeEnd(offset));
    if (std::string error = CheckRecord(offset, head); !error.empty()) {
      return Truncate(offset, error);
    }
    const auto type = static_cast<fb::RecordType>(HeadType(head));
    const absl::Span<const uint8_t> payload =
        bytes_.subspan(offset + sizeof(RecordHeader), HeadLength(head));
    if (type == fb::RecordType::kFooter) {
      std::string error = CheckFooter(offset, payload);
      return error.empty() ? void() : Truncate(offset, error);
    }
    if (type == fb::RecordType::kPacked) {
      if (std::string error = AddPacked(offset, payload); !error.empty()) {
        return Truncate(offset, error);
      }
    } else if (type != fb::RecordType::kPad) {
      AddRecord(type, offset, payload);
    }
    // The footer counts what lies in the file: a block is one.
    if (type != fb::RecordType::kPad) counter_.Count(type, offset);
    offset += RecordBytes(HeadLength(head));
  }
}

void ReaderImpl::AddRecord(fb::RecordType type, uint64_t offset,
                           absl::Span<const uint8_t> payload) {
  records_.push_back(Record{type, records_.size(), offset, payload});
  if (const auto* blob = records_.back().As<fb::Blob>()) blobs_.Add(*blob);
}

std::string ReaderImpl::AddPacked(uint64_t offset,
                                  absl::Span<const uint8_t> payload) {
  UnpackedBlock block = Unpack(payload);
  if (!block.error.empty()) {
    return absl::StrCat("the block of records ", block.error);
  }
  for (const Record& record : block.records) {
    if (IsKnownRecordType(record.type) &&
        !VerifyPayload(record.type, record.payload)) {
      return absl::StrCat("the block of records has a record (",
                          RecordTypeName(record.type),
                          ") that is not a well-formed table");
    }
  }
  for (const Record& record : block.records) {
    AddRecord(record.type, offset, record.payload);
  }
  unpacked_.push_back(std::move(block.content));
  return "";
}

std::string ReaderImpl::CheckRecord(uint64_t offset, uint64_t head) const {
  const uint32_t length = HeadLength(head);
  const auto type = static_cast<fb::RecordType>(HeadType(head));
  const auto fault = [&](absl::string_view what) {
    return absl::StrCat("the record (", RecordTypeName(type), ", ", length,
                        " bytes) ", what);
  };
  if (length > kMaxPayloadBytes) return fault("is longer than records can be");
  if (RecordBytes(length) > bytes_.size() - offset) {
    return fault("runs past the end of the file");
  }
  const uint64_t checksum =
      trace::Load<uint64_t>(bytes_, offset + offsetof(RecordHeader, checksum));
  const absl::Span<const uint8_t> payload =
      bytes_.subspan(offset + sizeof(RecordHeader), length);
  if (RecordChecksum(head, payload.data()) != checksum) {
    return fault("does not match its checksum");
  }
  if (type == fb::RecordType::kNone || HeadFlags(head) != 0) {
    return fault("has a header that version 1 does not define");
  }
  const bool sound =
      type == fb::RecordType::kFooter
          ? VerifyFooter(payload)
          : !IsKnownRecordType(type) || VerifyPayload(type, payload);
  return sound ? "" : fault("is not a well-formed table");
}

std::string ReaderImpl::CheckFooter(uint64_t offset,
                                    absl::Span<const uint8_t> payload) const {
  const auto* footer = flatbuffers::GetRoot<fb::Footer>(payload.data());
  const std::vector<fb::KeyValueU64> counts = counter_.CountsByType();
  bool match = footer->records() == counter_.records() &&
               footer->counts() != nullptr && footer->index() != nullptr &&
               footer->counts()->size() == counts.size() &&
               std::equal(footer->index()->begin(), footer->index()->end(),
                          counter_.index().begin(), counter_.index().end());
  for (size_t i = 0; match && i < counts.size(); ++i) {
    const fb::KeyValueU64& claimed =
        *footer->counts()->Get(static_cast<flatbuffers::uoffset_t>(i));
    match = claimed.key() == counts[i].key() &&
            claimed.value() == counts[i].value();
  }
  if (!match) {
    return absl::StrCat("the footer does not match the ", counter_.records(),
                        " records before it");
  }
  const uint64_t end = offset + RecordBytes(payload.size());
  if (bytes_.size() - end < sizeof(FileTrailer)) {
    return "the file is cut within its trailer";
  }
  const auto trailer = trace::Load<FileTrailer>(bytes_, end);
  if (trailer.magic != kTrailerMagic || trailer.footer_offset != offset ||
      trailer.file_size != end + sizeof(FileTrailer) ||
      trailer.checksum !=
          HashBytes64(&trailer, offsetof(FileTrailer, checksum))) {
    return "the trailer is damaged";
  }
  if (trailer.file_size != bytes_.size()) {
    return absl::StrCat(bytes_.size() - trailer.file_size,
                        " bytes follow the trailer");
  }
  return "";
}

std::string ReaderImpl::DescribeEnd(uint64_t offset) const {
  if (input_.being_written()) {
    return "the file is still being written";
  }
  const absl::Span<const uint8_t> rest = bytes_.subspan(offset);
  if (std::all_of(rest.begin(), rest.end(),
                  [](uint8_t byte) { return byte == 0; })) {
    return "there is no footer: the program was killed, or the file was cut";
  }
  return "a record was not finished; what follows it cannot be reached";
}

std::optional<uint64_t> ReaderImpl::RecordsInFooter() const {
  if (bytes_.size() < sizeof(FileHeader) + sizeof(FileTrailer)) return {};
  const uint64_t at = bytes_.size() - sizeof(FileTrailer);
  const auto trailer = trace::Load<FileTrailer>(bytes_, at);
  if (trailer.magic != kTrailerMagic || trailer.file_size != bytes_.size() ||
      trailer.checksum !=
          HashBytes64(&trailer, offsetof(FileTrailer, checksum)) ||
      trailer.footer_offset % kRecordAlignment != 0 ||
      trailer.footer_offset > at ||
      at - trailer.footer_offset < sizeof(RecordHeader)) {
    return {};
  }
  const uint64_t head = LoadHead(bytes_.data() + trailer.footer_offset);
  if (HeadType(head) != static_cast<uint16_t>(fb::RecordType::kFooter) ||
      !CheckRecord(trailer.footer_offset, head).empty()) {
    return {};
  }
  return flatbuffers::GetRoot<fb::Footer>(
             bytes_.data() + trailer.footer_offset + sizeof(RecordHeader))
      ->records();
}

void ReaderImpl::Truncate(uint64_t offset, absl::string_view why) {
  truncation_ = absl::StrCat("at offset ", offset, ": ", why);
  if (const std::optional<uint64_t> records = RecordsInFooter();
      records.has_value() && *records > counter_.records()) {
    absl::StrAppend(&truncation_, "; ", *records - counter_.records(), " of ",
                    *records, " records of the file cannot be read");
  }
}

absl::StatusOr<std::unique_ptr<Reader>> Loaded(
    std::unique_ptr<ReaderImpl> reader) {
  if (absl::Status status = reader->Load(); !status.ok()) return status;
  return reader;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  absl::StatusOr<MappedInput> input = MappedInput::Open(path);
  if (!input.ok()) return input.status();
  return Loaded(std::make_unique<ReaderImpl>(path, *std::move(input)));
}

absl::StatusOr<std::unique_ptr<Reader>> Reader::FromBytes(
    absl::Span<const uint8_t> bytes, std::string name) {
  return Loaded(std::make_unique<ReaderImpl>(std::move(name), bytes));
}

}  // namespace heddle::trace
