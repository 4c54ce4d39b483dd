// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/compression.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>
#include <string>

#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

std::vector<uint8_t> Text(const std::string& text) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

// The examples are written by hand from the block format description: token
// {literal length, match length - 4}, literals, little-endian offset.
TEST(DecompressLz4Test, CopiesLiteralsAndMatches) {
  const std::vector<uint8_t> block = {0x32, 'a',  'b', 'c', 3,
                                      0,    0x20, 'x', 'y'};
  absl::StatusOr<std::vector<uint8_t>> out = DecompressLz4(block, 11);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, Text("abcabcabcxy"));
}

TEST(DecompressLz4Test, RepeatsAnOverlappingMatchWithALongLength) {
  // Match of 4 + 15 + 255 + 10 bytes at distance 1.
  const std::vector<uint8_t> block = {0x1f, 'z', 1, 0, 255, 10, 0x00};
  absl::StatusOr<std::vector<uint8_t>> out = DecompressLz4(block, 285);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, std::vector<uint8_t>(285, 'z'));
}

TEST(DecompressLz4Test, RefusesEveryDamageThatChangesTheSize) {
  const std::vector<uint8_t> good = {0x32, 'a', 'b', 'c', 3, 0, 0x20, 'x', 'y'};
  EXPECT_FALSE(DecompressLz4(good, 10).ok());
  EXPECT_FALSE(DecompressLz4(good, 12).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecompressLz4(absl::MakeConstSpan(good).first(size), 11).ok());
  }
  EXPECT_FALSE(DecompressLz4({0x30, 'a', 'b'}, 3).ok());      // literals
  EXPECT_FALSE(DecompressLz4({0xf0, 255, 255}, 600).ok());    // length
  EXPECT_FALSE(DecompressLz4({0x10, 'a', 2, 0, 0}, 5).ok());  // offset
  EXPECT_FALSE(DecompressLz4({0x10, 'a', 0, 0, 0}, 5).ok());  // offset 0
}

TEST(DecompressLz4Test, SurvivesRandomBytes) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> block(random() % 64);
    for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
    const uint64_t size = random() % 4096;
    absl::StatusOr<std::vector<uint8_t>> out = DecompressLz4(block, size);
    if (!out.ok()) continue;
    EXPECT_EQ(out->size(), size);
  }
}

TEST(DecompressZstdTest, ReturnsExactlyTheStatedSize) {
  const std::vector<uint8_t> text = Text("to be or not to be, that is it");
  std::vector<uint8_t> frame(ZSTD_compressBound(text.size()));
  frame.resize(
      ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  absl::StatusOr<std::vector<uint8_t>> out = DecompressZstd(frame, text.size());
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, text);
  EXPECT_FALSE(DecompressZstd(frame, text.size() - 1).ok());
  EXPECT_FALSE(DecompressZstd(frame, text.size() + 1).ok());
  EXPECT_FALSE(DecompressZstd(frame, UINT64_MAX).ok());
  frame.pop_back();
  EXPECT_FALSE(DecompressZstd(frame, text.size()).ok());
}

}  // namespace
}  // namespace heddle::cubin
