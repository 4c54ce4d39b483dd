// SPDX-License-Identifier: Apache-2.0

// What a reader makes of files that were cut, damaged, or never were traces.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"
#include "runtime/trace/packed.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/schema_samples.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes MakeTrace(const std::function<void(Writer&)>& fill) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  fill(*writer);
  EXPECT_TRUE(writer->Close().ok());
  return ReadFile(dir.File("t.htrace"));
}

void AppendBlock(Writer& writer, PackedBlock& block) {
  const flatbuffers::DetachedBuffer payload = block.Finish(/*level=*/3);
  ASSERT_TRUE(
      writer.Append(fb::RecordType::kPacked,
                    absl::MakeConstSpan(payload.data(), payload.size())));
}

// A few records of different sizes, one with padding behind its payload.
Bytes SmallTrace() {
  SchemaSamples samples;
  return MakeTrace([&](Writer& writer) {
    for (const char* table : {"Process", "Kernel", "Launch"}) {
      writer.Append(SchemaSamples::TypeOf(table), samples.Payload(table, 1));
    }
    writer.Append(static_cast<fb::RecordType>(77), Bytes{1, 2, 3, 4, 5});
    writer.AppendBlob(Bytes(500, 7));
    AppendNote(writer, 1, 10);
    PackedBlock block;
    block.Add(fb::RecordType::kAlloc, samples.Payload("Alloc", 1));
    block.Add(fb::RecordType::kAlloc, samples.Payload("Alloc", 1));
    AppendBlock(writer, block);
  });
}

Bytes LargeTrace() {
  SchemaSamples samples;
  const std::vector<std::string> tables = SchemaSamples::RecordTables();
  return MakeTrace([&](Writer& writer) {
    for (uint32_t i = 0; i < 1500; ++i) {
      const std::string& table = tables[i % tables.size()];
      writer.Append(SchemaSamples::TypeOf(table), samples.Payload(table, i));
    }
    writer.AppendBlob(RandomBytes(100'000, 1));
  });
}

// Where the record, or the block that holds it, ends in the file.
uint64_t EndInFile(const Bytes& bytes, const Record& record) {
  return record.offset +
         RecordBytes(HeadLength(LoadHead(bytes.data() + record.offset)));
}

std::unique_ptr<Reader> MustRead(const Bytes& bytes) {
  absl::StatusOr<std::unique_ptr<Reader>> reader =
      Reader::FromBytes(bytes, "original");
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

// Reads a damaged copy of `original`. It must give the first records of the
// original, unchanged, and say so if they are not all.
void ExpectPrefix(const Bytes& damaged, const Reader& original,
                  const std::string& how) {
  const absl::StatusOr<std::unique_ptr<Reader>> reader =
      Reader::FromBytes(damaged, "damaged");
  if (!reader.ok()) {
    ASSERT_EQ(reader.status().code(), absl::StatusCode::kInvalidArgument)
        << how;
    return;
  }
  ASSERT_EQ((*reader)->truncated(), !(*reader)->truncation().empty());
  ASSERT_EQ(ComparePrefix((*reader)->records(), (*reader)->truncated(),
                          original.records()),
            "")
      << how;
  ASSERT_EQ((*reader)->header().uuid, original.header().uuid) << how;
  ASSERT_EQ((*reader)->header().rank, original.header().rank) << how;
}

TEST(DamageTest, FileCutAtAnyByteGivesTheRecordsBeforeTheCut) {
  const Bytes bytes = SmallTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  ASSERT_FALSE(original->truncated());
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    // A copy of just that size, so that AddressSanitizer sees reads behind it.
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<int>(size));
    const absl::StatusOr<std::unique_ptr<Reader>> reader =
        Reader::FromBytes(cut, "cut");
    ASSERT_EQ(reader.ok(), size >= sizeof(FileHeader));
    if (!reader.ok()) continue;
    EXPECT_TRUE((*reader)->truncated());
    EXPECT_FALSE((*reader)->truncation().empty());
    size_t whole = 0;
    for (const Record& record : original->records()) {
      whole += EndInFile(bytes, record) <= size ? 1 : 0;
    }
    EXPECT_EQ((*reader)->records().size(), whole);
    ASSERT_EQ(ComparePrefix((*reader)->records(), true, original->records()),
              "");
  }
}

TEST(DamageTest, FileCutAndFilledWithZerosGivesTheRecordsBeforeTheCut) {
  const Bytes bytes = SmallTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<int>(size));
    cut.resize(bytes.size() + 1000);
    ExpectPrefix(cut, *original, "at " + std::to_string(size));
  }
}

TEST(DamageTest, AnyFlippedBitIsFound) {
  const Bytes bytes = SmallTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = bytes;
      flipped[at] ^= static_cast<uint8_t>(1 << bit);
      const std::string how =
          "bit " + std::to_string(bit) + " of byte " + std::to_string(at);
      ExpectPrefix(flipped, *original, how);
      const absl::StatusOr<std::unique_ptr<Reader>> reader =
          Reader::FromBytes(flipped, "flipped");
      ASSERT_TRUE(!reader.ok() || (*reader)->truncated()) << how;
    }
  }
}

TEST(DamageTest, AnyByteReplacedIsFoundInALargerTrace) {
  const Bytes bytes = LargeTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  std::mt19937 random(1);
  Bytes damaged = bytes;
  for (int i = 0; i < 500; ++i) {
    const size_t at = random() % bytes.size();
    damaged[at] ^= static_cast<uint8_t>(1 + random() % 255);
    ExpectPrefix(damaged, *original, "byte " + std::to_string(at));
    EXPECT_NE(MustRead(damaged)->truncation(), "") << at;
    damaged[at] = bytes[at];
  }
}

TEST(DamageTest, LostAndMovedPagesAreFound) {
  const Bytes bytes = LargeTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Bytes damaged = bytes;
    const size_t size = 1 + random() % 8192;
    const size_t from = sizeof(FileHeader) +
                        random() % (bytes.size() - size - sizeof(FileHeader));
    const size_t to = sizeof(FileHeader) +
                      random() % (bytes.size() - size - sizeof(FileHeader));
    if (i % 2 == 0) {
      std::memset(damaged.data() + to, 0, size);
    } else {
      std::memcpy(damaged.data() + to, bytes.data() + from, size);
    }
    ExpectPrefix(damaged, *original, "round " + std::to_string(i));
  }
}

TEST(DamageTest, DamageInTheMiddleSaysHowManyRecordsAreLost) {
  const Bytes bytes = SmallTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  Bytes damaged = bytes;
  damaged[original->records()[2].offset + 30] ^= 1;
  const std::unique_ptr<Reader> reader = MustRead(damaged);
  EXPECT_EQ(reader->records().size(), 2u);
  EXPECT_NE(reader->truncation().find("launch"), std::string::npos);
  EXPECT_NE(reader->truncation().find("checksum"), std::string::npos);
  EXPECT_NE(reader->truncation().find("6 of 8 records"), std::string::npos)
      << reader->truncation();
  EXPECT_NE(
      reader->truncation().find(std::to_string(original->records()[2].offset)),
      std::string::npos);
}

TEST(DamageTest, BytesBehindTheTrailerAreReported) {
  Bytes bytes = SmallTrace();
  const size_t size = MustRead(bytes)->records().size();
  bytes.push_back(0);
  const std::unique_ptr<Reader> reader = MustRead(bytes);
  EXPECT_TRUE(reader->truncated());
  EXPECT_EQ(reader->records().size(), size);
}

// Puts a record header with the right checksum before `payload`.
void AddRecord(Bytes& bytes, uint32_t type, uint32_t flags, Bytes payload) {
  RecordHeader header{};
  header.head =
      MakeHead(static_cast<uint32_t>(payload.size()),
               static_cast<uint16_t>(type), static_cast<uint16_t>(flags));
  payload.resize(RoundUp(payload.size(), kRecordAlignment));
  header.checksum = RecordChecksum(header.head, payload.data());
  const auto* raw = reinterpret_cast<const uint8_t*>(&header);
  bytes.insert(bytes.end(), raw, raw + sizeof(header));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
}

Bytes OnlyHeader() {
  Bytes bytes = SmallTrace();
  bytes.resize(sizeof(FileHeader));
  return bytes;
}

TEST(DamageTest, PayloadThatIsNoTableEndsTheTraceThoughItsChecksumMatches) {
  for (const Bytes& payload :
       {Bytes{}, Bytes{1, 2, 3}, Bytes(64, 0xff), Bytes(8, 0)}) {
    for (const std::string& table : SchemaSamples::RecordTables()) {
      Bytes bytes = OnlyHeader();
      AddRecord(bytes, static_cast<uint32_t>(SchemaSamples::TypeOf(table)), 0,
                payload);
      const std::unique_ptr<Reader> reader = MustRead(bytes);
      EXPECT_EQ(reader->records().size(), 0u) << table;
      EXPECT_NE(reader->truncation().find("not a well-formed table"),
                std::string::npos)
          << table << ": " << reader->truncation();
    }
  }
}

// The payload of a block that claims `records` records of `size` bytes.
Bytes PackedPayload(uint32_t records, uint64_t size, const Bytes& data) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(
      fb::CreatePackedDirect(builder, records, size, fb::Codec::kRaw, &data));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

TEST(DamageTest, BlockThatDoesNotHoldWhatItClaimsEndsTheTrace) {
  SchemaSamples samples;
  const auto content = [](uint64_t head, Bytes payload) {
    Bytes bytes(8);
    std::memcpy(bytes.data(), &head, 8);
    payload.resize(RoundUp(payload.size(), kRecordAlignment));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  };
  const auto read = [](const Bytes& payload) {
    Bytes bytes = OnlyHeader();
    AddRecord(bytes, static_cast<uint32_t>(fb::RecordType::kPacked), 0,
              payload);
    return MustRead(bytes)->records().size();
  };
  const auto head = [](uint32_t length, fb::RecordType type) {
    return MakeHead(length, static_cast<uint16_t>(type), 0);
  };
  const Bytes note = samples.Payload("Note", 1);
  const auto length = static_cast<uint32_t>(note.size());
  const Bytes good = content(head(length, fb::RecordType::kNote), note);
  ASSERT_EQ(read(PackedPayload(1, good.size(), good)), 1u);

  const std::vector<Bytes> bad = {
      {},
      {1, 2, 3},
      PackedPayload(0, good.size(), good),
      PackedPayload(2, good.size(), good),
      PackedPayload(1, good.size() + 8, good),
      PackedPayload(1, good.size() - 8, good),
      PackedPayload(1, ~uint64_t{7}, good),
      PackedPayload(0, 0, {}),
      // A record that is longer than the block, no table, or no record.
      PackedPayload(1, good.size(),
                    content(head(length + 9, fb::RecordType::kNote), note)),
      PackedPayload(1, good.size(),
                    content(head(~0u, fb::RecordType::kNote), note)),
      PackedPayload(1, good.size(),
                    content(head(length, fb::RecordType::kNote),
                            Bytes(note.size(), 0xff))),
      PackedPayload(1, good.size(),
                    content(head(length, fb::RecordType::kNone), note)),
      PackedPayload(1, good.size(),
                    content(head(length, fb::RecordType::kFooter), note)),
      PackedPayload(1, good.size(),
                    content(head(length, fb::RecordType::kPacked), note)),
  };
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_EQ(read(bad[i]), 0u) << i;
}

TEST(DamageTest, FlagsThatThisVersionDoesNotKnowEndTheTrace) {
  SchemaSamples samples;
  Bytes bytes = OnlyHeader();
  AddRecord(bytes, static_cast<uint32_t>(fb::RecordType::kNote), 1,
            samples.Payload("Note", 1));
  EXPECT_EQ(MustRead(bytes)->records().size(), 0u);
  EXPECT_TRUE(MustRead(bytes)->truncated());
}

TEST(DamageTest, FooterThatCountsOtherRecordsIsReported) {
  // A record taken out, the rest as it was: all checksums match.
  const Bytes bytes = SmallTrace();
  const std::unique_ptr<Reader> original = MustRead(bytes);
  const Record& record = original->records()[1];
  Bytes shorter = bytes;
  shorter.erase(
      shorter.begin() + static_cast<int>(record.offset),
      shorter.begin() +
          static_cast<int>(record.offset + RecordBytes(record.payload.size())));
  const std::unique_ptr<Reader> reader = MustRead(shorter);
  EXPECT_EQ(reader->records().size(), original->records().size() - 1);
  EXPECT_TRUE(reader->truncated());
  EXPECT_NE(reader->truncation().find("footer"), std::string::npos);
}

Bytes WithVersions(uint32_t version, uint32_t min_reader_version) {
  Bytes bytes = SmallTrace();
  FileHeader header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = version;
  header.min_reader_version = min_reader_version;
  header.checksum = HashBytes64(&header, offsetof(FileHeader, checksum));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST(VersionTest, TraceThatNeedsANewerReaderIsRefusedWithBothVersions) {
  const absl::Status status =
      Reader::FromBytes(WithVersions(kFormatVersion + 8, kFormatVersion + 5),
                        "new")
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find(std::to_string(kFormatVersion + 5)),
            absl::string_view::npos);
  EXPECT_NE(status.message().find("this is version " +
                                  std::to_string(kFormatVersion)),
            absl::string_view::npos);
}

TEST(VersionTest, NewerTraceThatThisReaderMayReadIsRead) {
  const std::unique_ptr<Reader> reader =
      MustRead(WithVersions(kFormatVersion + 8, kFormatVersion));
  EXPECT_EQ(reader->header().version, kFormatVersion + 8);
  EXPECT_FALSE(reader->truncated());
}

TEST(ForeignFileTest, ErrorSaysWhatTheFileIs) {
  const auto error = [](absl::string_view text) {
    const Bytes bytes(text.begin(), text.end());
    const absl::Status status = Reader::FromBytes(bytes, "file").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_NE(error("").find("empty"), std::string::npos);
  EXPECT_NE(error("\x7f"
                  "ELF\x02\x01\x01")
                .find("ELF"),
            std::string::npos);
  EXPECT_NE(error("\x28\xb5\x2f\xfd....").find("zstd"), std::string::npos);
  EXPECT_NE(error("\x1f\x8b\x08").find("gzip"), std::string::npos);
  EXPECT_NE(error("{\"traceEvents\": []}").find("JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("JSON"), std::string::npos);
  EXPECT_NE(error("#!/bin/sh\n").find("script"), std::string::npos);
  EXPECT_NE(error("SQLite format 3").find("SQLite"), std::string::npos);
  EXPECT_NE(error("hello, world\n").find("text"), std::string::npos);
  EXPECT_NE(error(std::string(100, '\0')).find("zeros"), std::string::npos);
  EXPECT_NE(error("\x89HTR\n\x1a\n").find("text mode"), std::string::npos);
  EXPECT_NE(error("\x09HTR\r\n\x1a\n").find("text mode"), std::string::npos);
  EXPECT_NE(error("\x01").find("not a heddle trace"), std::string::npos);
  EXPECT_NE(error("\x89HTR\r\n\x1a\n").find("cut within its header"),
            std::string::npos);
}

TEST(ForeignFileTest, PathsThatCannotBeReadAreErrors) {
  const TempDir dir;
  const absl::Status missing = Reader::Open(dir.File("none.htrace")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("none.htrace"), absl::string_view::npos);
  EXPECT_EQ(Reader::Open(dir.File(".")).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reader::Open("/dev/null").status().code(),
            absl::StatusCode::kInvalidArgument);
  WriteFile(dir.File("empty"), {});
  EXPECT_EQ(Reader::Open(dir.File("empty")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace heddle::trace
