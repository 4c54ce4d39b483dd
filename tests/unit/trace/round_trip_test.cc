// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/schema_samples.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

// Appends `payload` by way of the object form of its table.
template <typename Table>
void AppendAsObject(Writer& writer, const std::vector<uint8_t>& payload) {
  const std::unique_ptr<typename Table::NativeTableType> object(
      flatbuffers::GetRoot<Table>(payload.data())->UnPack());
  EXPECT_TRUE(writer.AppendObject(*object));
}

void AppendAsObject(Writer& writer, const std::string& table,
                    const std::vector<uint8_t>& payload) {
#define HEDDLE_APPEND(Table) \
  if (table == #Table) return AppendAsObject<fb::Table>(writer, payload);
  HEDDLE_RECORD_TABLES(HEDDLE_APPEND)
#undef HEDDLE_APPEND
  FAIL() << table;
}

bool IsAs(const Record& record, const std::string& table) {
  std::set<std::string> names;
#define HEDDLE_AS(Table) \
  if (record.As<fb::Table>() != nullptr) names.insert(#Table);
  HEDDLE_RECORD_TABLES(HEDDLE_AS)
#undef HEDDLE_AS
  return names == std::set<std::string>{table};
}

TEST(RoundTripTest, EveryFieldOfEveryTableComesBack) {
  const TempDir dir;
  SchemaSamples samples;
  const std::vector<std::string> tables = SchemaSamples::RecordTables();
  std::vector<std::string> expected;
  {
    const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
    for (const std::string& table : tables) {
      for (const uint32_t seed : {1u, 2u, 3u}) {
        const std::vector<uint8_t> payload = samples.Payload(table, seed);
        expected.push_back(samples.Text(table, payload));
        ASSERT_TRUE(writer->Append(SchemaSamples::TypeOf(table), payload));
        expected.push_back(expected.back());
        AppendAsObject(*writer, table, payload);
      }
    }
    ASSERT_TRUE(writer->Close().ok());
  }
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  // The writer adds the End record.
  ASSERT_EQ(reader->records().size(), expected.size() + 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Record& record = reader->records()[i];
    const std::string& table = tables[i / 6];
    EXPECT_EQ(record.index, i);
    EXPECT_EQ(record.type, SchemaSamples::TypeOf(table));
    EXPECT_TRUE(IsAs(record, table)) << table;
    EXPECT_EQ(samples.Text(table, record.payload), expected[i]) << table;
  }
}

TEST(RoundTripTest, SamplesOfOtherSeedsDiffer) {
  // Else the test above could not fail.
  SchemaSamples samples;
  for (const std::string& table : SchemaSamples::RecordTables()) {
    EXPECT_NE(samples.Payload(table, 1), samples.Payload(table, 2)) << table;
  }
}

TEST(RoundTripTest, HeaderSaysWhoWroteTheTraceAndWhen) {
  const TempDir dir;
  WriterOptions options;
  options.rank = 7;
  MustCreate(dir.File("a.htrace"), options)->Close().IgnoreError();
  MustCreate(dir.File("b.htrace"))->Close().IgnoreError();
  const std::unique_ptr<Reader> a = MustOpen(dir.File("a.htrace"));
  const std::unique_ptr<Reader> b = MustOpen(dir.File("b.htrace"));
  EXPECT_EQ(a->header().version, kFormatVersion);
  EXPECT_EQ(a->header().min_reader_version, kMinReaderVersion);
  EXPECT_EQ(a->header().pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(a->header().rank, 7);
  EXPECT_EQ(b->header().rank, -1);
  EXPECT_NE(a->header().uuid, b->header().uuid);
  const uint64_t year_2020 = 1'577'836'800'000'000'000;
  EXPECT_GT(a->header().start_unix_ns, year_2020);
  EXPECT_LE(a->header().start_unix_ns, b->header().start_unix_ns);
  EXPECT_EQ(a->path(), dir.File("a.htrace"));
  EXPECT_EQ(a->file_size(), ReadFile(a->path()).size());
}

TEST(RoundTripTest, TraceMadeFromAnotherKeepsItsHeader) {
  const TempDir dir;
  WriterOptions options;
  options.rank = 7;
  MustCreate(dir.File("a.htrace"), options)->Close().IgnoreError();
  const Header header = MustOpen(dir.File("a.htrace"))->header();
  WriterOptions copy;
  copy.source = header;
  MustCreate(dir.File("b.htrace"), copy)->Close().IgnoreError();
  const Header copied = MustOpen(dir.File("b.htrace"))->header();
  EXPECT_EQ(copied.uuid, header.uuid);
  EXPECT_EQ(copied.pid, header.pid);
  EXPECT_EQ(copied.rank, 7);
  EXPECT_EQ(copied.start_unix_ns, header.start_unix_ns);
  EXPECT_EQ(copied.version, kFormatVersion);
}

TEST(RoundTripTest, TraceWithoutRecordsIsWhole) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->bytes_written(), ReadFile(writer->path()).size());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), 1u);
  EXPECT_EQ(reader->records()[0].As<fb::End>()->records(), 0u);
}

TEST(RoundTripTest, EndOfTheRecorderIsNotRepeated) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  fb::EndT end;
  end.records = 0;
  end.reason = "tired";
  ASSERT_TRUE(writer->AppendObject(end));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  ASSERT_EQ(reader->records().size(), 1u);
  EXPECT_EQ(reader->records()[0].As<fb::End>()->reason()->str(), "tired");
}

TEST(RoundTripTest, EndOfTheWriterCountsRecordsAndUnsupportedCalls) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  AppendNote(*writer, 1);
  fb::UnsupportedT unsupported;
  unsupported.api = "cuMemExportToShareableHandle";
  ASSERT_TRUE(writer->AppendObject(unsupported));
  ASSERT_TRUE(writer->AppendObject(unsupported));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  const auto* end = reader->records().back().As<fb::End>();
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->records(), 3u);
  EXPECT_EQ(end->unsupported(), 2u);
}

TEST(RoundTripTest, ReservedRecordsAreWrittenInPlace) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  SchemaSamples samples;
  const std::vector<uint8_t> payload = samples.Payload("Launch", 1);
  const auto size = static_cast<uint32_t>(payload.size());
  for (int i = 0; i < 100; ++i) {
    uint8_t* to = writer->Reserve(size);
    ASSERT_NE(to, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(to) % 8, 0u);
    std::copy(payload.begin(), payload.end(), to);
    writer->Commit(to, fb::RecordType::kLaunch, size);
  }
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated());
  ASSERT_EQ(reader->records().size(), 101u);
  EXPECT_EQ(reader->records()[99].payload, absl::MakeConstSpan(payload));
}

TEST(RoundTripTest, RecordsMayBeLargerThanAChunk) {
  const TempDir dir;
  WriterOptions options;
  options.chunk_bytes = 64 << 10;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), options);
  std::vector<size_t> sizes;
  for (const size_t size : {size_t{1} << 25, size_t{10}, size_t{65536},
                            size_t{65521}, size_t{3} << 20, size_t{1}}) {
    sizes.push_back(size);
    ASSERT_TRUE(AppendNote(*writer, static_cast<int>(sizes.size()), size));
  }
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), sizes.size() + 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(reader->records()[i].As<fb::Note>()->text()->str(),
              NoteText(static_cast<int>(i + 1), sizes[i]));
  }
}

TEST(RoundTripTest, FooterIndexesEvery1024thRecord) {
  const TempDir dir;
  WriterOptions options;
  options.chunk_bytes = 64 << 10;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), options);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(AppendNote(*writer, i));
  ASSERT_TRUE(writer->Close().ok());

  const std::vector<uint8_t> bytes = ReadFile(dir.File("t.htrace"));
  FileTrailer trailer{};
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof(trailer),
              sizeof(trailer));
  EXPECT_EQ(trailer.magic, kTrailerMagic);
  EXPECT_EQ(trailer.file_size, bytes.size());
  const auto* footer = flatbuffers::GetRoot<fb::Footer>(
      bytes.data() + trailer.footer_offset + sizeof(RecordHeader));
  EXPECT_EQ(footer->records(), 5001u);
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  ASSERT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(footer->index()->size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(footer->index()->Get(i),
              reader->records()[i * kIndexInterval].offset);
  }
  std::map<int, uint64_t> counts;
  for (const fb::KeyValueU64* count : *footer->counts()) {
    counts[count->key()] = count->value();
  }
  EXPECT_EQ(counts, (std::map<int, uint64_t>{
                        {static_cast<int>(fb::RecordType::kEnd), 1},
                        {static_cast<int>(fb::RecordType::kNote), 5000}}));
}

TEST(RoundTripTest, TypesOfLaterVersionsAreKeptAndPaddingIsNot) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  const std::vector<uint8_t> bytes = {1, 2, 3};
  ASSERT_TRUE(AppendNote(*writer, 1));
  ASSERT_TRUE(writer->Append(fb::RecordType::kPad, {}));
  ASSERT_TRUE(writer->Append(fb::RecordType::kPad, bytes));
  ASSERT_TRUE(writer->Append(static_cast<fb::RecordType>(77), bytes));
  ASSERT_TRUE(AppendNote(*writer, 2));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), 4u);
  EXPECT_EQ(RecordTypeName(reader->records()[1].type), "type-77");
  EXPECT_EQ(reader->records()[1].index, 1u);
  EXPECT_EQ(reader->records()[1].payload, absl::MakeConstSpan(bytes));
  EXPECT_EQ(reader->records()[2].As<fb::Note>()->text()->str(), NoteText(2));
}

TEST(RoundTripTest, BytesThatAreNotAlignedCanBeRead) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  SchemaSamples samples;
  ASSERT_TRUE(
      writer->Append(fb::RecordType::kGraph, samples.Payload("Graph", 1)));
  ASSERT_TRUE(writer->Close().ok());
  const std::vector<uint8_t> bytes = ReadFile(dir.File("t.htrace"));
  for (size_t shift = 0; shift < 9; ++shift) {
    std::vector<uint8_t> shifted(shift);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    const absl::StatusOr<std::unique_ptr<Reader>> reader = Reader::FromBytes(
        absl::MakeConstSpan(shifted).subspan(shift), "shifted");
    ASSERT_TRUE(reader.ok());
    EXPECT_FALSE((*reader)->truncated());
    EXPECT_EQ((*reader)->path(), "shifted");
    EXPECT_EQ(samples.Text("Graph", (*reader)->records()[0].payload),
              samples.Text("Graph", samples.Payload("Graph", 1)));
  }
}

TEST(RecordTypeNameTest, IsInLowerCaseWithHyphens) {
  EXPECT_EQ(RecordTypeName(fb::RecordType::kLaunch), "launch");
  EXPECT_EQ(RecordTypeName(fb::RecordType::kModuleUnload), "module-unload");
  EXPECT_EQ(RecordTypeName(fb::RecordType::kTensorMap), "tensor-map");
  EXPECT_EQ(RecordTypeName(static_cast<fb::RecordType>(65535)), "type-65535");
}

TEST(HashTest, IsXxh3OfTheBytes) {
  // The canonical form that libxxhash gives for nothing and for "heddle".
  EXPECT_EQ(HashBytes({}).ToHex(), "99aa06d3014798d86001c324468d497f");
  const std::string text = "heddle";
  EXPECT_EQ(
      HashBytes(absl::MakeConstSpan(
                    reinterpret_cast<const uint8_t*>(text.data()), text.size()))
          .ToHex(),
      "01e949a3c423ed801054413ec3b56729");
}

}  // namespace
}  // namespace heddle::trace
