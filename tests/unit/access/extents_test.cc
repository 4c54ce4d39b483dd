// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/extents.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heddle::access {
namespace {

constexpr uint64_t kBits = 200;
using Bitmap = std::vector<bool>;

std::vector<Extent> RandomExtents(std::mt19937& random) {
  std::vector<Extent> extents;
  for (uint32_t i = 0; i < random() % 8; ++i) {
    const uint64_t address = random() % kBits;
    extents.push_back({address, random() % (kBits - address)});
  }
  return extents;
}

Bitmap Bits(const std::vector<Extent>& extents) {
  Bitmap bits(kBits + 64, false);
  for (const Extent& e : extents) {
    for (uint64_t i = e.address; i < e.end(); ++i) bits[i] = true;
  }
  return bits;
}

void ExpectNormal(const ExtentSet& set) {
  for (size_t i = 0; i < set.extents().size(); ++i) {
    ASSERT_GT(set.extents()[i].size, 0U);
    if (i != 0) {
      ASSERT_GT(set.extents()[i].address, set.extents()[i - 1].end());
    }
  }
}

TEST(ExtentsTest, SetOperationsAgreeWithABitmap) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<Extent> a = RandomExtents(random);
    const std::vector<Extent> b = RandomExtents(random);
    const ExtentSet sa(a);
    const ExtentSet sb(b);
    const Bitmap ba = Bits(a);
    const Bitmap bb = Bits(b);
    ExtentSet sum = sa;
    sum.Add(sb);
    const ExtentSet minus = sa.Minus(sb);
    const ExtentSet both = sa.Intersect(sb);
    const ExtentSet rounded = sa.Rounded(16);
    for (const ExtentSet& set : {sa, sum, minus, both, rounded}) {
      ExpectNormal(set);
    }
    const Bitmap bits_a = Bits(sa.extents());
    const Bitmap bits_sum = Bits(sum.extents());
    const Bitmap bits_minus = Bits(minus.extents());
    const Bitmap bits_both = Bits(both.extents());
    const Bitmap bits_rounded = Bits(rounded.extents());
    for (uint64_t bit = 0; bit < kBits; ++bit) {
      ASSERT_EQ(bits_a[bit], ba[bit]);
      ASSERT_EQ(bits_sum[bit], ba[bit] || bb[bit]);
      ASSERT_EQ(bits_minus[bit], ba[bit] && !bb[bit]);
      ASSERT_EQ(bits_both[bit], ba[bit] && bb[bit]);
      bool block = false;
      for (uint64_t j = bit / 16 * 16; j < bit / 16 * 16 + 16; ++j) {
        block = block || ba[j];
      }
      ASSERT_EQ(bits_rounded[bit], block);
    }
  }
}

TEST(ExtentsTest, BytesCountsEveryByteOnce) {
  EXPECT_EQ(ExtentSet({{0, 10}, {5, 10}, {20, 1}}).bytes(), 16U);
}

}  // namespace
}  // namespace heddle::access
