// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"
#include "runtime/trace/writer.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

size_t CountBlobs(const Reader& reader) {
  size_t count = 0;
  for (const Record& record : reader.records()) {
    count += record.type == fb::RecordType::kBlob ? 1 : 0;
  }
  return count;
}

TEST(BlobTest, BytesOfEverySizeComeBack) {
  const TempDir dir;
  for (const int level : {0, 1, 9}) {
    WriterOptions options;
    options.compression_level = level;
    const std::unique_ptr<Writer> writer =
        MustCreate(dir.File("t.htrace"), options);
    std::vector<std::vector<uint8_t>> blobs;
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{2}, size_t{1000}, kBlobPieceBytes - 1,
          kBlobPieceBytes, kBlobPieceBytes + 1, 3 * kBlobPieceBytes + 5}) {
      blobs.push_back(RandomBytes(size, static_cast<uint32_t>(size)));
      blobs.emplace_back(size, static_cast<uint8_t>(size % 251 + 1));
    }
    for (const std::vector<uint8_t>& blob : blobs) {
      EXPECT_EQ(writer->AppendBlob(blob), HashBytes(blob));
    }
    ASSERT_TRUE(writer->Close().ok());
    const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
    EXPECT_FALSE(reader->truncated()) << reader->truncation();
    // The empty blob is there once, and so is the one of one byte if equal.
    for (const std::vector<uint8_t>& blob : blobs) {
      EXPECT_TRUE(reader->HasBlob(HashBytes(blob)));
      const absl::StatusOr<std::vector<uint8_t>> read =
          reader->ReadBlob(HashBytes(blob));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == blob) << blob.size();
    }
    EXPECT_FALSE(reader->HasBlob(Hash128{1, 2}));
    EXPECT_EQ(reader->ReadBlob(Hash128{1, 2}).status().code(),
              absl::StatusCode::kNotFound);
  }
}

TEST(BlobTest, BytesThatCompressAreStoredCompressed) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  writer->AppendBlob(std::vector<uint8_t>(20 << 20, 7));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_LT(writer->bytes_written(), 100'000u);
}

TEST(BlobTest, BytesThatDoNotCompressAreStoredRaw) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  writer->AppendBlob(RandomBytes(100'000, 1));
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  const auto* blob = reader->records()[0].As<fb::Blob>();
  EXPECT_EQ(blob->codec(), fb::Codec::kRaw);
  EXPECT_EQ(blob->data()->size(), 100'000u);
}

TEST(BlobTest, SameBytesAreStoredOnce) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  const std::vector<uint8_t> bytes = RandomBytes(2 * kBlobPieceBytes, 1);
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(writer->AppendBlob(bytes), HashBytes(bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  EXPECT_EQ(CountBlobs(*reader), 2u);
  EXPECT_EQ(*reader->ReadBlob(HashBytes(bytes)), bytes);
}

// Appends a Blob record as it is told.
void AppendPiece(Writer& writer, const Hash128& hash, uint64_t size,
                 uint64_t offset, uint64_t piece_size, fb::Codec codec,
                 const std::vector<uint8_t>& data) {
  fb::BlobT blob;
  blob.hash = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  blob.size = size;
  blob.offset = offset;
  blob.piece_size = piece_size;
  blob.codec = codec;
  blob.data = data;
  ASSERT_TRUE(writer.AppendObject(blob));
}

TEST(BlobTest, PiecesMayComeInAnyOrderAndTwice) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5};
  const Hash128 hash = HashBytes(bytes);
  AppendPiece(*writer, hash, 5, 3, 2, fb::Codec::kRaw, {4, 5});
  AppendPiece(*writer, hash, 5, 0, 3, fb::Codec::kRaw, {1, 2, 3});
  AppendPiece(*writer, hash, 5, 3, 2, fb::Codec::kRaw, {4, 5});
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(*MustOpen(dir.File("t.htrace"))->ReadBlob(hash), bytes);
}

TEST(BlobTest, BlobWithAMissingPieceIsNotThere) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  AppendPiece(*writer, Hash128{1, 0}, 5, 0, 3, fb::Codec::kRaw, {1, 2, 3});
  AppendPiece(*writer, Hash128{2, 0}, 5, 3, 2, fb::Codec::kRaw, {4, 5});
  // Overlapping, of two sizes, and wrapping around.
  AppendPiece(*writer, Hash128{3, 0}, 5, 0, 3, fb::Codec::kRaw, {1, 2, 3});
  AppendPiece(*writer, Hash128{3, 0}, 5, 2, 3, fb::Codec::kRaw, {3, 4, 5});
  AppendPiece(*writer, Hash128{4, 0}, 3, 0, 3, fb::Codec::kRaw, {1, 2, 3});
  AppendPiece(*writer, Hash128{4, 0}, 5, 3, 2, fb::Codec::kRaw, {4, 5});
  AppendPiece(*writer, Hash128{5, 0}, 1, 0, ~uint64_t{0}, fb::Codec::kRaw, {});
  AppendPiece(*writer, Hash128{5, 0}, 1, ~uint64_t{0}, 2, fb::Codec::kRaw, {});
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  for (uint64_t i = 1; i <= 5; ++i) {
    EXPECT_FALSE(reader->HasBlob(Hash128{i, 0})) << i;
    EXPECT_EQ(reader->ReadBlob(Hash128{i, 0}).status().code(),
              absl::StatusCode::kNotFound)
        << i;
  }
}

TEST(BlobTest, CorruptedBlobIsDataLoss) {
  const TempDir dir;
  const std::unique_ptr<Writer> writer = MustCreate(dir.File("t.htrace"));
  const std::vector<uint8_t> zeros(100);
  std::vector<uint8_t> frame(ZSTD_compressBound(zeros.size()));
  frame.resize(
      ZSTD_compress(frame.data(), frame.size(), zeros.data(), zeros.size(), 1));
  const Hash128 right = HashBytes(zeros);
  AppendPiece(*writer, right, 100, 0, 100, fb::Codec::kZstd, frame);
  uint64_t bad = 0;
  const auto append = [&](uint64_t size, fb::Codec codec,
                          const std::vector<uint8_t>& data) {
    AppendPiece(*writer, Hash128{++bad, 1}, size, 0, size, codec, data);
  };
  append(100, fb::Codec::kZstd, frame);            // not its hash
  append(3, fb::Codec::kRaw, {1, 2, 3});           // not its hash
  append(99, fb::Codec::kZstd, frame);             // not its size
  append(101, fb::Codec::kZstd, frame);            // not its size
  append(100, fb::Codec::kZstd, {});               // no frame
  append(100, fb::Codec::kZstd, {1, 2, 3, 4, 5});  // no frame
  append(100, static_cast<fb::Codec>(9), zeros);   // no codec
  append(4 << 20, fb::Codec::kRaw, {1, 2, 3});     // claims more than it has
  append(100, fb::Codec::kZstd, {frame.begin(), frame.end() - 2});  // cut
  ASSERT_TRUE(writer->Close().ok());
  const std::unique_ptr<Reader> reader = MustOpen(dir.File("t.htrace"));
  ASSERT_TRUE(reader->ReadBlob(right).ok()) << reader->ReadBlob(right).status();
  EXPECT_EQ(*reader->ReadBlob(right), zeros);
  ASSERT_EQ(bad, 9u);
  for (uint64_t i = 1; i <= bad; ++i) {
    EXPECT_TRUE(reader->HasBlob(Hash128{i, 1})) << i;
    EXPECT_EQ(reader->ReadBlob(Hash128{i, 1}).status().code(),
              absl::StatusCode::kDataLoss)
        << i;
  }
}

TEST(BlobTest, WriterThatIsOffStillSaysTheHash) {
  const TempDir dir;
  WriterOptions options;
  options.max_bytes = 100'000;
  const std::unique_ptr<Writer> writer =
      MustCreate(dir.File("t.htrace"), options);
  const std::vector<uint8_t> bytes = RandomBytes(200'000, 1);
  EXPECT_EQ(writer->AppendBlob(bytes), HashBytes(bytes));
  EXPECT_FALSE(writer->ok());
  EXPECT_EQ(writer->AppendBlob({}), HashBytes({}));
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_FALSE(MustOpen(dir.File("t.htrace"))->HasBlob(HashBytes(bytes)));
}

}  // namespace
}  // namespace heddle::trace
