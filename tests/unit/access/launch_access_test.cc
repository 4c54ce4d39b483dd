// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/launch_access.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace heddle::access {
namespace {

std::set<uint64_t> BytesOf(const ExtentSet& set) {
  std::set<uint64_t> bytes;
  for (const Extent& extent : set.extents()) {
    for (uint64_t i = 0; i < extent.size; ++i) bytes.insert(extent.address + i);
  }
  return bytes;
}

TEST(BoxTest, HoldsExactlyTheBytesOfASmallBox) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const uint64_t width = random() % 5;
    std::vector<uint64_t> sizes;
    std::vector<uint64_t> strides;
    for (uint64_t i = random() % 4; i > 0; --i) {
      sizes.push_back(random() % 5);
      strides.push_back(random() % 40);
    }
    std::set<uint64_t> expected = {1000};
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::set<uint64_t> next;
      for (const uint64_t base : expected) {
        for (uint64_t step = 0; step < sizes[i]; ++step) {
          next.insert(base + step * strides[i]);
        }
      }
      expected = next;
    }
    std::set<uint64_t> bytes;
    for (const uint64_t base : expected) {
      for (uint64_t i = 0; i < width; ++i) bytes.insert(base + i);
    }
    EXPECT_EQ(BytesOf(BoxOf(1000, width, sizes, strides)), bytes);
  }
}

TEST(BoxTest, KeepsTheHullOfWhatIsTooManyPieces) {
  const ExtentSet box = BoxOf(0, 4, std::vector<uint64_t>{1000000, 3},
                              std::vector<uint64_t>{8, 1 << 24});
  ASSERT_EQ(box.extents().size(), 3u);
  EXPECT_EQ(box.extents()[1], (Extent{1 << 24, 8 * 999999 + 4}));
}

class LaunchAccessTest : public testing::Test {
 protected:
  LaunchAccessTest() {
    view_.allocation = [](uint64_t address) -> std::optional<Extent> {
      if (address >= 0x10000 && address < 0x20000) {
        return Extent{0x10000, 0x10000};
      }
      return std::nullopt;
    };
    view_.tensor_map =
        [](absl::Span<const uint8_t> map) -> std::optional<ExtentSet> {
      if (map[0] != 0x77) return std::nullopt;
      return ExtentSet({Extent{0x10800, 64}});
    };
    params_.assign(256, 0);
    const uint64_t pointer = 0x10100;
    std::memcpy(params_.data() + 8, &pointer, sizeof(pointer));
    params_[64] = 0x77;
    launch_.params = params_;
    bool too_many = false;
    launch_.pointers = FindPointers(params_, view_, &too_many);
  }

  // A Footprint of which only some matters.
  struct Part {
    Mode mode = Mode::kRead;
    uint32_t bytes = 0;
    bool generic = false;
    int pointer = -1;
    Origins origins = 0;
    bool bounded = false;
    int64_t lo = 0;
    int64_t hi = 0;
    int tensor_map = -1;
  };

  AccessSet Of(const Part& part) {
    KernelFootprint kernel;
    Footprint footprint;
    footprint.name = "STG";
    footprint.mode = part.mode;
    footprint.bytes = part.bytes;
    footprint.generic = part.generic;
    footprint.pointer = part.pointer;
    footprint.origins = part.origins;
    footprint.bounded = part.bounded;
    footprint.lo = part.lo;
    footprint.hi = part.hi;
    footprint.tensor_map = part.tensor_map;
    kernel.footprints.push_back(std::move(footprint));
    return AccessOfLaunch(kernel, launch_, view_);
  }

  std::vector<uint8_t> params_;
  LaunchValues launch_;
  MemoryView view_;
};

TEST_F(LaunchAccessTest, FindsWhatPointsIntoAllocations) {
  EXPECT_EQ(launch_.pointers, (std::vector<uint32_t>{8}));
}

TEST_F(LaunchAccessTest, BoundsInsideTheAllocationAreProved) {
  const AccessSet set = Of(Part{.mode = Mode::kWrite,
                                .bytes = 4,
                                .pointer = 0,
                                .origins = 1,
                                .bounded = true,
                                .lo = 16,
                                .hi = 28});
  ASSERT_EQ(set.accesses.size(), 1u);
  EXPECT_EQ(set.accesses[0].provenance, Provenance::kProved);
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{0x10110, 16}}));
  EXPECT_TRUE(set.Reads().empty());
  EXPECT_TRUE(set.reads_known() && set.writes_known());
}

TEST_F(LaunchAccessTest, BoundsBeyondTheAllocationAreCutAndAssumed) {
  const AccessSet set = Of(Part{.mode = Mode::kRead,
                                .bytes = 4,
                                .pointer = 0,
                                .origins = 1,
                                .bounded = true,
                                .lo = -0x100000,
                                .hi = 12});
  ASSERT_EQ(set.accesses.size(), 1u);
  EXPECT_EQ(set.accesses[0].provenance, Provenance::kAssumed);
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{0x10000, 0x110}}));
}

TEST_F(LaunchAccessTest, NoBoundsMeanTheWholeAllocation) {
  const AccessSet set =
      Of(Part{.mode = Mode::kAtomic, .bytes = 4, .pointer = 0, .origins = 1});
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{0x10000, 0x10000}}));
  EXPECT_EQ(set.Writes(), ExtentSet({Extent{0x10000, 0x10000}}));
}

TEST_F(LaunchAccessTest, AddressesFromMemoryMayBeAnything) {
  const AccessSet set =
      Of(Part{.mode = Mode::kWrite, .bytes = 4, .origins = kFromMemory | 1});
  EXPECT_TRUE(set.reads_known());
  EXPECT_FALSE(set.writes_known());
  EXPECT_NE(set.unknown_writes.find("loaded from memory"), std::string::npos);
}

TEST_F(LaunchAccessTest, AnAddressOfNothingKnownIsUnknownUnlessItIsShared) {
  EXPECT_FALSE(
      Of(Part{.mode = Mode::kRead, .bytes = 4, .generic = true}).reads_known());
  EXPECT_FALSE(Of(Part{.mode = Mode::kRead, .bytes = 4, .origins = kFromDriver})
                   .reads_known());
  const AccessSet window = Of(Part{.mode = Mode::kRead,
                                   .bytes = 4,
                                   .generic = true,
                                   .origins = kFromDriver});
  EXPECT_TRUE(window.reads_known());
  EXPECT_TRUE(window.accesses.empty());
}

TEST_F(LaunchAccessTest, TensorCopiesGoByTheirMap) {
  const AccessSet set = Of(Part{.mode = Mode::kRead, .tensor_map = 64});
  ASSERT_EQ(set.accesses.size(), 1u);
  EXPECT_EQ(set.accesses[0].provenance, Provenance::kTensorMap);
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{0x10800, 64}}));
  EXPECT_FALSE(Of(Part{.mode = Mode::kRead, .tensor_map = 72}).reads_known());
  EXPECT_FALSE(
      Of(Part{.mode = Mode::kWrite, .tensor_map = 250}).writes_known());
  // Which map is open, but it is one of the parameters.
  EXPECT_EQ(
      Of(Part{.mode = Mode::kRead, .origins = kFromDriver, .tensor_map = -2})
          .Reads(),
      ExtentSet({Extent{0x10800, 64}}));
}

}  // namespace
}  // namespace heddle::access
