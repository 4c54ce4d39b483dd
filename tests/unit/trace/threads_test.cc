// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

constexpr int kThreads = 8;

// A Range record: `domain` says the thread, `id` counts its records, the name
// has a size of its own.
bool AppendRange(Writer& writer, int thread, uint64_t number, size_t size) {
  fb::RangeT range;
  range.domain = static_cast<uint64_t>(thread);
  range.id = number;
  range.name = NoteText(thread, size);
  return writer.AppendObject(range);
}

// Checks that each thread's records are there in the order it wrote them, the
// first `written[thread]` of them.
void ExpectAllInOrder(const Reader& reader,
                      const std::vector<uint64_t>& written) {
  std::vector<uint64_t> seen(written.size(), 0);
  for (const Record& record : reader.records()) {
    const auto* range = record.As<fb::Range>();
    if (range == nullptr) continue;
    ASSERT_LT(range->domain(), written.size());
    ASSERT_EQ(range->id(), seen[range->domain()]++);
    ASSERT_EQ(range->name()->str(), NoteText(static_cast<int>(range->domain()),
                                             range->name()->size()));
  }
  EXPECT_EQ(seen, written);
}

TEST(ThreadsTest, EveryRecordOfEveryThreadIsThereInItsOrder) {
  const TempDir dir;
  WriterOptions options;
  options.chunk_bytes = 64 << 10;  // so that they meet at many ends of chunks
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), options);
  constexpr uint64_t kRecords = 20'000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<uint32_t>(t + 1));
      for (uint64_t i = 0; i < kRecords; ++i) {
        // Now and then one that needs more than a chunk.
        const size_t size = i % 5000 == 4999 ? 200'000 : 1 + random() % 300;
        ASSERT_TRUE(AppendRange(*writer, t, i, size));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ExpectAllInOrder(*reader, std::vector<uint64_t>(kThreads, kRecords));
}

TEST(ThreadsTest, RecordsThatRaceWithCloseAreInTheFileOrRefused) {
  const TempDir dir;
  for (int round = 0; round < 20; ++round) {
    WriterOptions options;
    options.chunk_bytes = 64 << 10;
    const std::unique_ptr<Writer> writer =
        MustCreate(dir.File("t.htrace"), options);
    std::vector<uint64_t> written(kThreads, 0);
    std::atomic<uint64_t> total{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        while (AppendRange(*writer, t, written[t], 100)) {
          ++written[t];
          total.fetch_add(1, std::memory_order_relaxed);
        }
        // Once off, always off.
        EXPECT_FALSE(AppendRange(*writer, t, written[t], 1));
        EXPECT_EQ(writer->Reserve(8), nullptr);
      });
    }
    while (total.load(std::memory_order_relaxed) < 2000) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(writer->Close().ok());
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(writer->Close().ok());
    const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
    EXPECT_FALSE(reader->truncated()) << reader->truncation();
    ExpectAllInOrder(*reader, written);
  }
}

TEST(ThreadsTest, RecordsThatRaceWithTheLimitAreInTheFileOrRefused) {
  const TempDir dir;
  for (int round = 0; round < 20; ++round) {
    WriterOptions options;
    options.chunk_bytes = 64 << 10;
    options.max_bytes = 500'000;
    const std::unique_ptr<Writer> writer =
        MustCreate(dir.File("t.htrace"), options);
    std::vector<uint64_t> written(kThreads, 0);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(static_cast<uint32_t>(round * kThreads + t));
        while (AppendRange(*writer, t, written[t], 1 + random() % 5000)) {
          ++written[t];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(writer->ok());
    EXPECT_EQ(writer->error().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(writer->Close().ok());
    const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
    EXPECT_LE(reader->file_size(), options.max_bytes);
    EXPECT_FALSE(reader->truncated()) << reader->truncation();
    ExpectAllInOrder(*reader, written);
  }
}

TEST(ThreadsTest, CloseWaitsForARecordThatIsReserved) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  uint8_t* payload = writer->Reserve(3);
  ASSERT_NE(payload, nullptr);
  std::thread closer([&] { EXPECT_TRUE(writer->Close().ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  payload[0] = payload[1] = payload[2] = 9;
  writer->Commit(payload, static_cast<fb::RecordType>(77), 3);
  closer.join();
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_FALSE(reader->truncated()) << reader->truncation();
  ASSERT_EQ(reader->records().size(), 2u);
  EXPECT_EQ(reader->records()[0].payload, (std::vector<uint8_t>{9, 9, 9}));
}

TEST(ThreadsTest, CloseGivesUpOnARecordThatIsNeverCommitted) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  ASSERT_TRUE(AppendNote(*writer, 1));
  uint8_t* payload = writer->Reserve(8);
  ASSERT_NE(payload, nullptr);
  ASSERT_TRUE(AppendNote(*writer, 2));
  EXPECT_EQ(writer->Close().code(), absl::StatusCode::kUnavailable);
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_TRUE(reader->truncated());
  EXPECT_NE(reader->truncation().find("was not finished"), std::string::npos)
      << reader->truncation();
  EXPECT_EQ(reader->records().size(), 1u);
  // The late thread does no harm.
  payload[0] = 1;
  writer->Commit(payload, fb::RecordType::kPad, 8);
}

}  // namespace
}  // namespace heddle::trace
