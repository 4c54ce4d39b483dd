// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/packed.h"

#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<std::pair<fb::RecordType, Bytes>> SomeRecords(uint32_t count) {
  std::mt19937 random(11);
  std::vector<std::pair<fb::RecordType, Bytes>> records;
  for (uint32_t i = 0; i < count; ++i) {
    Bytes payload(random() % 50);
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random() % 4);
    records.emplace_back(
        i % 3 == 0 ? fb::RecordType::kLaunch : fb::RecordType::kNote, payload);
  }
  return records;
}

flatbuffers::DetachedBuffer Pack(
    const std::vector<std::pair<fb::RecordType, Bytes>>& records) {
  PackedBlock block;
  for (const auto& [type, payload] : records) block.Add(type, payload);
  return block.Finish(3);
}

absl::Span<const uint8_t> SpanOf(const flatbuffers::DetachedBuffer& buffer) {
  return absl::MakeConstSpan(buffer.data(), buffer.size());
}

TEST(Packed, ABlockGivesBackItsRecordsAligned) {
  for (const uint32_t count : {1u, 2u, 1000u}) {
    const auto records = SomeRecords(count);
    const auto packed = Pack(records);
    const UnpackedBlock block = Unpack(SpanOf(packed));
    ASSERT_EQ(block.error, "");
    ASSERT_EQ(block.records.size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(block.records[i].type, records[i].first);
      EXPECT_EQ(Bytes(block.records[i].payload.begin(),
                      block.records[i].payload.end()),
                records[i].second);
      EXPECT_EQ(
          reinterpret_cast<uintptr_t>(block.records[i].payload.data()) % 8, 0u);
    }
  }
}

TEST(Packed, ABlockIsEmptyAfterItWasFinished) {
  PackedBlock block;
  EXPECT_TRUE(block.empty());
  block.Add(fb::RecordType::kNote, Bytes(5));
  EXPECT_FALSE(block.empty());
  block.Finish(1);
  EXPECT_TRUE(block.empty());
  EXPECT_EQ(block.bytes(), 0u);
}

TEST(Packed, DamageIsAnErrorAndNeverACrash) {
  const auto packed = Pack(SomeRecords(40));
  const Bytes good(packed.data(), packed.data() + packed.size());
  // Words, since FlatBuffers are read in place.
  std::vector<uint64_t> aligned((good.size() + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(aligned.data());
  const auto unpack = [&](size_t size) {
    return Unpack(absl::MakeConstSpan(bytes, size));
  };
  for (size_t size = 0; size < good.size(); ++size) {
    std::copy(good.begin(), good.end(), bytes);
    EXPECT_NE(unpack(size).error, "") << size;
  }
  std::mt19937 random(12);
  for (size_t at = 0; at < good.size(); ++at) {
    std::copy(good.begin(), good.end(), bytes);
    bytes[at] ^= static_cast<uint8_t>(1 + random() % 255);
    unpack(good.size());  // may be harmless, must not crash
  }
}

Bytes PackedTable(uint32_t records, uint64_t size, fb::Codec codec,
                  const Bytes& data) {
  flatbuffers::FlatBufferBuilder builder;
  const auto vector = builder.CreateVector(data);
  builder.Finish(fb::CreatePacked(builder, records, size, codec, vector));
  return Bytes(builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
}

TEST(Packed, ClaimsThatTheDataDoesNotKeepAreErrors) {
  const Bytes head = {0, 0, 0, 0, 91, 0, 0, 0};  // an empty note
  EXPECT_EQ(Unpack(PackedTable(1, 8, fb::Codec::kRaw, head)).error, "");
  EXPECT_NE(Unpack(PackedTable(2, 8, fb::Codec::kRaw, head)).error, "");
  EXPECT_NE(Unpack(PackedTable(0, 8, fb::Codec::kRaw, head)).error, "");
  EXPECT_NE(Unpack(PackedTable(1, 16, fb::Codec::kRaw, head)).error, "");
  EXPECT_NE(Unpack(PackedTable(1, 8, fb::Codec::kZstd, head)).error, "");
  EXPECT_NE(Unpack(PackedTable(1, 8, static_cast<fb::Codec>(9), head)).error,
            "");
  EXPECT_NE(
      Unpack(PackedTable(1, uint64_t{1} << 60, fb::Codec::kRaw, head)).error,
      "");
  // Of a type that cannot be inside, with flags, longer than the block.
  for (const Bytes& bad :
       {Bytes{0, 0, 0, 0, 7, 0, 0, 0}, Bytes{0, 0, 0, 0, 6, 0, 0, 0},
        Bytes{0, 0, 0, 0, 1, 0, 0, 0}, Bytes{0, 0, 0, 0, 0, 0, 0, 0},
        Bytes{0, 0, 0, 0, 91, 0, 1, 0}, Bytes{1, 0, 0, 0, 91, 0, 0, 0}}) {
    EXPECT_NE(Unpack(PackedTable(1, 8, fb::Codec::kRaw, bad)).error, "");
  }
}

class PackedFile : public testing::Test {
 protected:
  ~PackedFile() override { unlink(path_.c_str()); }

  // A note, a block of `blocked`, a note.
  std::unique_ptr<Reader> WriteAndRead(
      const flatbuffers::DetachedBuffer& blocked) {
    auto writer = Writer::Create(path_, {});
    EXPECT_TRUE(writer.ok());
    fb::NoteT note;
    note.text = "first";
    (*writer)->AppendObject(note);
    (*writer)->Append(fb::RecordType::kPacked, SpanOf(blocked));
    note.text = "last";
    (*writer)->AppendObject(note);
    EXPECT_TRUE((*writer)->Close().ok());
    auto reader = Reader::Open(path_);
    EXPECT_TRUE(reader.ok());
    return *std::move(reader);
  }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/packed-", getpid(), ".htrace");
};

TEST_F(PackedFile, ItsRecordsAreNumberedWithTheOthers) {
  PackedBlock block;
  for (const char* text : {"second", "third"}) {
    fb::NoteT note;
    note.text = text;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::Note::Pack(builder, &note));
    block.Add(
        fb::RecordType::kNote,
        absl::MakeConstSpan(builder.GetBufferPointer(), builder.GetSize()));
  }
  const auto reader = WriteAndRead(block.Finish(1));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  std::string texts;
  for (const Record& record : reader->records()) {
    EXPECT_EQ(&reader->records()[record.index], &record);
    if (const auto* note = record.As<fb::Note>()) {
      texts += note->text()->str() + " ";
    }
  }
  EXPECT_EQ(texts, "first second third last ");
}

TEST_F(PackedFile, ARecordThatIsNoTableEndsWhatCanBeRead) {
  PackedBlock block;
  block.Add(fb::RecordType::kNote, Bytes(24, 0xff));
  const auto reader = WriteAndRead(block.Finish(1));
  EXPECT_TRUE(reader->truncated());
  EXPECT_NE(reader->truncation().find("not a well-formed table"),
            std::string::npos)
      << reader->truncation();
  EXPECT_EQ(reader->records().size(), 1u);
}

}  // namespace
}  // namespace heddle::trace
