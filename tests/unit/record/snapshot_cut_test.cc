// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/record/snapshot.h"

namespace heddle::record {
namespace {

MemoryBlock Block(uint64_t address, uint64_t size) {
  return {address, size, fb::MemoryKind::kDevice};
}

TEST(SnapshotCut, ASmallBlockStaysWhole) {
  const std::vector<MemoryBlock> blocks = {Block(0x1000, kSmallRange)};
  const std::vector<uint64_t> pointers = {0x1000, 0x1800};
  EXPECT_EQ(CutAtPointers(blocks, pointers),
            (std::vector<SnapshotRange>{{0x1000, kSmallRange}}));
}

TEST(SnapshotCut, ALargeBlockIsCutAtEveryPointerInside) {
  const uint64_t base = 0x100000000;
  const std::vector<MemoryBlock> blocks = {Block(base, 4 * kSmallRange)};
  const std::vector<uint64_t> pointers = {
      base - 8, base, base + 256, base + kSmallRange, base + 4 * kSmallRange};
  EXPECT_EQ(
      CutAtPointers(blocks, pointers),
      (std::vector<SnapshotRange>{{base, 256},
                                  {base + 256, kSmallRange - 256},
                                  {base + kSmallRange, 3 * kSmallRange}}));
}

// Whatever the pointers: the ranges tile the blocks, in order, and none is
// empty.
TEST(SnapshotCut, RangesTileTheBlocks) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<MemoryBlock> blocks;
    uint64_t at = 1 << 20;
    for (int i = 0; i < 5; ++i) {
      at += random() % kSmallRange;
      const uint64_t size = 1 + random() % (3 * kSmallRange);
      blocks.push_back(Block(at, size));
      at += size;
    }
    std::vector<uint64_t> pointers;
    for (int i = 0; i < 200; ++i) pointers.push_back(random() % (at + 100));
    std::sort(pointers.begin(), pointers.end());
    const std::vector<SnapshotRange> ranges = CutAtPointers(blocks, pointers);
    size_t next = 0;
    for (const MemoryBlock& block : blocks) {
      uint64_t expected = block.address;
      while (expected < block.address + block.size) {
        ASSERT_LT(next, ranges.size());
        ASSERT_EQ(ranges[next].address, expected);
        ASSERT_GT(ranges[next].size, 0u);
        expected += ranges[next++].size;
      }
      ASSERT_EQ(expected, block.address + block.size);
    }
    ASSERT_EQ(next, ranges.size());
  }
}

}  // namespace
}  // namespace heddle::record
