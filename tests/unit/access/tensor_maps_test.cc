// SPDX-License-Identifier: Apache-2.0
// Tensor maps by their bytes, against what the driver's encoder made of known
// shapes (tensor_maps.txt), and what launches make of maps that nobody saw.

#include "runtime/access/tensor_maps.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/access/launch_access.h"

namespace heddle::access {
namespace {

using Shape = TensorMaps::Shape;
using Bytes = std::vector<uint8_t>;
constexpr uint64_t k32 = uint64_t{1} << 32;

// Bytes of an element, apart from what is tested.
uint64_t ElementBytes(uint32_t type) {
  constexpr uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return kBytes[type];
}

struct Sample {
  std::string kind;
  uint32_t type = 0;
  int interleave = 0;
  Shape shape;
  Bytes bytes;  // the first 64
};

std::vector<uint64_t> Numbers(const std::string& text) {
  std::vector<uint64_t> numbers;
  std::istringstream in(text);
  for (std::string one; text != "-" && std::getline(in, one, ',');) {
    numbers.push_back(std::stoull(one));
  }
  return numbers;
}

Bytes FromHex(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i + 2 <= hex.size(); i += 2) {
    bytes.push_back(
        static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<Sample> Samples() {
  std::ifstream file(HEDDLE_ACCESS_TEST_DATA "/tensor_maps.txt");
  std::vector<Sample> samples;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    Sample sample;
    std::string address, dims, strides, hex;
    in >> sample.kind >> sample.type >> sample.interleave >> address >> dims >>
        strides >> hex;
    sample.shape.data_type = sample.type;
    sample.shape.address = std::stoull(address, nullptr, 16);
    sample.shape.dims = Numbers(dims);
    sample.shape.strides = Numbers(strides);
    sample.bytes = FromHex(hex);
    samples.push_back(std::move(sample));
  }
  return samples;
}

// A map as cuBLASLt's host code writes it: 2048 x 2048 x 1 of bfloat16.
Bytes CublasMap() {
  return FromHex(
      "00008074747f0000226504000001000000000000000000100000000000000000"
      "ff070000ff0700000000000000000000000000000000003f3f00000000000000");
}

template <typename T>
void Put(T value, size_t at, Bytes* bytes) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

TEST(TensorMapsTest, SamplesCoverWhatAMapCanSay) {
  std::set<uint32_t> types;
  std::set<std::pair<std::string, size_t>> ranks;
  std::set<int> interleaves;
  int long_dims = 0;
  int long_strides = 0;
  for (const Sample& sample : Samples()) {
    ASSERT_EQ(sample.bytes.size(), TensorMaps::kHardwareBytes);
    ASSERT_EQ(sample.shape.strides.size() + 1, sample.shape.dims.size());
    interleaves.insert(sample.interleave);
    if (sample.interleave != 0) continue;
    types.insert(sample.type);
    ranks.insert({sample.kind, sample.shape.dims.size()});
    for (const uint64_t dim : sample.shape.dims) long_dims += dim == k32;
    for (const uint64_t stride : sample.shape.strides) {
      long_strides += stride >= uint64_t{1} << 36;
    }
  }
  EXPECT_EQ(types.size(), 13u);
  EXPECT_EQ(ranks.size(), 5u + 3u);  // im2col has at least 3 dimensions
  EXPECT_EQ(interleaves.size(), 3u);
  EXPECT_GT(long_dims, 3);
  EXPECT_GT(long_strides, 3);
}

TEST(TensorMapsTest, WhatTheDriverEncodedIsReadBack) {
  for (const Sample& sample : Samples()) {
    const std::optional<Shape> shape = TensorMaps::Decode(sample.bytes);
    ASSERT_EQ(shape.has_value(), sample.interleave == 0);
    if (!shape.has_value()) continue;
    EXPECT_EQ(shape->address, sample.shape.address);
    EXPECT_EQ(ElementBytes(shape->data_type), ElementBytes(sample.type));
    EXPECT_EQ(shape->dims, sample.shape.dims);
    EXPECT_EQ(shape->strides, sample.shape.strides);
    // The rest of a CUtensorMap does not matter, and less is no map.
    Bytes whole = sample.bytes;
    whole.resize(TensorMaps::kBytes, 0xff);
    EXPECT_EQ(TensorMaps::Decode(whole)->dims, shape->dims);
    whole.resize(TensorMaps::kHardwareBytes - 1);
    EXPECT_FALSE(TensorMaps::Decode(whole).has_value());
  }
}

TEST(TensorMapsTest, AMapThatCublasMadeIsRead) {
  const std::optional<Shape> shape = TensorMaps::Decode(CublasMap());
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->data_type,
            static_cast<uint32_t>(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
  EXPECT_EQ(shape->address, 0x7f7474800000u);
  EXPECT_EQ(shape->dims, (std::vector<uint64_t>{2048, 2048, 1}));
  EXPECT_EQ(shape->strides.at(0), 4096u);
  // Rows follow each other without gaps.
  EXPECT_EQ(TensorMaps::BytesOf(*shape),
            ExtentSet({Extent{0x7f7474800000, 2048 * 4096}}));
}

// Of every dimension every bit is that of this dimension alone; swizzles, boxes
// and element strides are no part of the shape.
TEST(TensorMapsTest, EveryBitOfADimensionIsItsOwn) {
  for (const Sample& sample : Samples()) {
    const std::optional<Shape> before = TensorMaps::Decode(sample.bytes);
    if (!before.has_value()) continue;
    for (size_t bit = 8 * 32; bit < 8 * TensorMaps::kHardwareBytes; ++bit) {
      Bytes bytes = sample.bytes;
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      const size_t dim = (bit - 8 * 32) / 32;
      const std::optional<Shape> after = TensorMaps::Decode(bytes);
      if (dim < 5 && dim >= before->dims.size()) {
        EXPECT_FALSE(after.has_value());
        continue;
      }
      ASSERT_TRUE(after.has_value());
      std::vector<uint64_t> expected = before->dims;
      if (dim < 5) {
        expected[dim] = ((expected[dim] - 1) ^ uint64_t{1} << (bit % 32)) + 1;
      }
      EXPECT_EQ(after->dims, expected);
      EXPECT_EQ(after->strides, before->strides);
      EXPECT_EQ(after->address, before->address);
    }
  }
}

bool Holds(const ExtentSet& set, Wide first, uint64_t bytes) {
  if (first < 0 || first + bytes > Wide{UINT64_MAX}) return false;
  return ExtentSet({Extent{static_cast<uint64_t>(first), bytes}})
      .Minus(set)
      .empty();
}

// Whether the elements at the corners of a tensor, and some others, are in
// `set`, by arithmetic that does not wrap around.
bool HoldsElements(const ExtentSet& set, const Shape& shape,
                   std::mt19937_64& random) {
  const uint64_t element = ElementBytes(shape.data_type);
  for (int i = 0; i < 40; ++i) {
    Wide at = shape.address;
    for (size_t dim = 0; dim < shape.dims.size(); ++dim) {
      uint64_t index = random() % shape.dims[dim];
      if (i < 32) index = (i >> dim & 1) != 0 ? shape.dims[dim] - 1 : 0;
      at += Wide{index} * (dim == 0 ? element : shape.strides[dim - 1]);
    }
    if (!Holds(set, at, element)) return false;
  }
  return true;
}

TEST(TensorMapsTest, BytesAreThoseOfAllElements) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    Shape shape;
    shape.data_type = static_cast<uint32_t>(random() % 13);
    shape.address = 16 * (1 + random() % 1000);
    std::set<uint64_t> starts = {shape.address};
    for (uint64_t rank = 1 + random() % 5; rank > 0; --rank) {
      const bool first = shape.dims.empty();
      shape.dims.push_back(1 + random() % 4);
      uint64_t stride = ElementBytes(shape.data_type);
      if (!first) {
        stride = 16 * (random() % 12);
        shape.strides.push_back(stride);
      }
      std::set<uint64_t> next;
      for (const uint64_t start : starts) {
        for (uint64_t i = 0; i < shape.dims.back(); ++i) {
          next.insert(start + i * stride);
        }
      }
      starts = std::move(next);
    }
    std::vector<Extent> expected;
    for (const uint64_t start : starts) {
      expected.push_back({start, ElementBytes(shape.data_type)});
    }
    EXPECT_EQ(TensorMaps::BytesOf(shape), ExtentSet(std::move(expected)));
  }
}

// A tensor that goes past the end of all addresses has bytes near its beginning
// again; it must not pass for a small one.
TEST(TensorMapsTest, TensorsThatWrapAroundHaveNoBytes) {
  Shape shape;
  shape.data_type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  shape.address = 0x7f0000000000;
  // 2^28 steps of 2^36 bytes.
  shape.dims = {16, (uint64_t{1} << 28) + 1};
  shape.strides = {uint64_t{1} << 36};
  EXPECT_EQ(TensorMaps::BytesOf(shape), std::nullopt);
  shape.dims = {16, k32, k32, k32, k32};
  shape.strides = {16, uint64_t{1} << 36, (uint64_t{1} << 40) - 16, 16};
  EXPECT_EQ(TensorMaps::BytesOf(shape), std::nullopt);
  // Few pieces, each of them beyond.
  shape.address = UINT64_MAX - 15;
  shape.dims = {16, 3};
  shape.strides = {4096};
  EXPECT_EQ(TensorMaps::BytesOf(shape), std::nullopt);
}

// Any bytes: a shape that a map can have, and no element left out.
TEST(TensorMapsTest, DamagedMapsAreRefusedOrReadInFull) {
  const std::vector<Sample> samples = Samples();
  std::mt19937_64 random(4);
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 60000; ++round) {
    Bytes bytes = samples[random() % samples.size()].bytes;
    for (uint64_t i = random() % 6; i > 0; --i) {
      bytes[random() % bytes.size()] ^=
          static_cast<uint8_t>(1u << (random() % 8));
    }
    if (random() % 4 == 0) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      if (random() % 2 == 0) Put<uint32_t>(0x22, 8, &bytes);
    }
    const std::optional<Shape> shape = TensorMaps::Decode(bytes);
    if (!shape.has_value()) {
      ++refused;
      continue;
    }
    ++read;
    ASSERT_NE(shape->address, 0u);
    ASSERT_TRUE(shape->dims.size() >= 1 && shape->dims.size() <= 5);
    ASSERT_EQ(shape->strides.size() + 1, shape->dims.size());
    for (const uint64_t dim : shape->dims) ASSERT_TRUE(dim >= 1 && dim <= k32);
    for (const uint64_t stride : shape->strides) {
      ASSERT_TRUE(stride % 16 == 0 && stride < uint64_t{1} << 40);
    }
    const std::optional<ExtentSet> set = TensorMaps::BytesOf(*shape);
    if (set.has_value()) {
      EXPECT_TRUE(HoldsElements(*set, *shape, random)) << "round " << round;
    }
  }
  EXPECT_GT(read, 10000);
  EXPECT_GT(refused, 10000);
}

// A CUtensorMap of no meaning, other for every number.
Bytes NumberedMap(uint64_t number) {
  Bytes bytes(TensorMaps::kBytes);
  Put(number, 0, &bytes);
  return bytes;
}

Shape RowAt(uint64_t address) {
  Shape shape;
  shape.data_type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  shape.address = address;
  shape.dims = {64};
  return shape;
}

TEST(TensorMapsTest, FindsWhatWasAddedLast) {
  TensorMaps maps;
  const Bytes map = NumberedMap(1);
  EXPECT_EQ(maps.Find(map), std::nullopt);
  maps.Add(map, RowAt(4096));
  EXPECT_EQ(maps.Find(map), ExtentSet({Extent{4096, 64}}));
  maps.Add(map, RowAt(8192));
  EXPECT_EQ(maps.Find(map), ExtentSet({Extent{8192, 64}}));
  // A map is all of its bytes.
  Bytes other = map;
  other.back() = 1;
  EXPECT_EQ(maps.Find(other), std::nullopt);
  EXPECT_EQ(maps.Find(absl::MakeConstSpan(map).first(64)), std::nullopt);
}

TEST(TensorMapsTest, WithAnotherAddressAMapKeepsItsShape) {
  TensorMaps maps;
  maps.Add(NumberedMap(1), RowAt(4096));
  maps.Replace(NumberedMap(1), NumberedMap(2), 8192);
  EXPECT_EQ(maps.Find(NumberedMap(1)), ExtentSet({Extent{4096, 64}}));
  EXPECT_EQ(maps.Find(NumberedMap(2)), ExtentSet({Extent{8192, 64}}));
  maps.Replace(NumberedMap(3), NumberedMap(4), 8192);
  EXPECT_EQ(maps.Find(NumberedMap(4)), std::nullopt);
  // In place: the map before is the map behind.
  maps.Replace(NumberedMap(2), NumberedMap(2), 4096);
  EXPECT_EQ(maps.Find(NumberedMap(2)), ExtentSet({Extent{4096, 64}}));
}

TEST(TensorMapsTest, LeavesOutWhatMakesNoSense) {
  TensorMaps maps;
  const auto refused = [&](const Bytes& map, const Shape& shape) {
    maps.Add(map, shape);
    return !maps.Find(map).has_value();
  };
  Shape shape = RowAt(4096);
  EXPECT_TRUE(refused(Bytes(64, 1), shape));
  EXPECT_TRUE(refused({}, shape));
  shape.data_type = 13;  // packed elements
  EXPECT_TRUE(refused(NumberedMap(1), shape));
  shape = RowAt(4096);
  shape.dims = {};
  EXPECT_TRUE(refused(NumberedMap(1), shape));
  shape.dims = {64, 2};
  EXPECT_TRUE(refused(NumberedMap(1), shape));
  shape.strides = {128};
  EXPECT_FALSE(refused(NumberedMap(1), shape));
}

TEST(TensorMapsTest, TheOldestAreLostFirst) {
  TensorMaps maps;
  constexpr uint64_t kCount = 2 * TensorMaps::kMostMaps + 7;
  for (uint64_t i = 1; i <= kCount; ++i) {
    maps.Add(NumberedMap(i), RowAt(64 * i));
    // The last ones are there at any time.
    const uint64_t old = i - std::min(i - 1, TensorMaps::kMostMaps / 2 - 1);
    if (i % 1000 == 0) {
      ASSERT_EQ(maps.Find(NumberedMap(old)), ExtentSet({Extent{64 * old, 64}}));
    }
  }
  size_t kept = 0;
  bool lost_behind = false;
  for (uint64_t i = kCount; i >= 1; --i) {
    const bool found = maps.Find(NumberedMap(i)).has_value();
    kept += found ? 1 : 0;
    EXPECT_FALSE(found && lost_behind);
    lost_behind |= !found;
  }
  EXPECT_LE(kept, TensorMaps::kMostMaps);
  EXPECT_GE(kept, TensorMaps::kMostMaps / 2);
}

class UnseenMapTest : public testing::Test {
 protected:
  static constexpr uint64_t kTensor = 0x7f7474800000;
  static constexpr uint64_t kTensorBytes = 2048 * 4096;

  UnseenMapTest() {
    view_.allocation = [this](uint64_t address) -> std::optional<Extent> {
      for (const Extent& one : allocations_) {
        if (address >= one.address && address < one.end()) return one;
      }
      return std::nullopt;
    };
    view_.tensor_map = [this](absl::Span<const uint8_t> map) {
      return seen_.Find(map);
    };
  }

  // Of a copy by `map`, which lies at `at` in `size` bytes of parameters.
  AccessSet Of(const Bytes& map, size_t at = 64, size_t size = 256) {
    Bytes params(size);
    std::copy_n(map.begin(), std::min(map.size(), size - at),
                params.begin() + static_cast<int64_t>(at));
    LaunchValues launch;
    launch.params = params;
    Footprint footprint;
    footprint.name = "UTMALDG";
    footprint.mode = Mode::kRead;
    footprint.tensor_map = static_cast<int>(at);
    KernelFootprint kernel;
    kernel.footprints.push_back(footprint);
    return AccessOfLaunch(kernel, launch, view_);
  }

  std::vector<Extent> allocations_ = {{kTensor - 4096, kTensorBytes + 8192}};
  TensorMaps seen_;
  MemoryView view_;
};

TEST_F(UnseenMapTest, ItsBytesSayWhatItIsOf) {
  const AccessSet set = Of(CublasMap());
  ASSERT_TRUE(set.reads_known()) << set.unknown_reads;
  ASSERT_EQ(set.accesses.size(), 1u);
  EXPECT_EQ(set.accesses[0].provenance, Provenance::kTensorMap);
  EXPECT_EQ(set.Reads(), ExtentSet({Extent{kTensor, kTensorBytes}}));
  // All that the device reads of it has to be there.
  EXPECT_TRUE(Of(CublasMap(), 64, 64 + 64).reads_known());
  EXPECT_FALSE(Of(CublasMap(), 64, 64 + 63).reads_known());
}

TEST_F(UnseenMapTest, ItsTensorLiesInOneAllocation) {
  allocations_ = {{kTensor, kTensorBytes}};
  EXPECT_TRUE(Of(CublasMap()).reads_known());
  allocations_ = {{kTensor, kTensorBytes - 1}};
  EXPECT_FALSE(Of(CublasMap()).reads_known());
  allocations_ = {{kTensor + 1, kTensorBytes}};
  EXPECT_FALSE(Of(CublasMap()).reads_known());
  allocations_ = {{kTensor, 4096}, {kTensor + 4096, kTensorBytes}};
  EXPECT_FALSE(Of(CublasMap()).reads_known());
  allocations_ = {};
  EXPECT_FALSE(Of(CublasMap()).reads_known());
}

TEST_F(UnseenMapTest, ATensorThatWrapsAroundIsInNoAllocation) {
  Bytes map = CublasMap();
  // 2^28 steps of 2^36 bytes.
  Put<uint32_t>(uint32_t{1} << 28, 36, &map);
  Put<uint32_t>(0, 12, &map);
  Put<uint32_t>(1, 28, &map);
  ASSERT_TRUE(TensorMaps::Decode(map).has_value());
  EXPECT_FALSE(Of(map).reads_known());
}

// Which of the maps among the parameters it is, is open: it may be one that was
// not seen.
TEST_F(UnseenMapTest, AMapThatWasNotSeenMayBeTheOneThatIsTaken) {
  const Bytes seen = NumberedMap(1);
  seen_.Add(seen, RowAt(4096));
  Bytes params(512);
  std::copy(seen.begin(), seen.end(), params.begin());
  const Bytes unseen = CublasMap();
  std::copy(unseen.begin(), unseen.end(), params.begin() + 256);
  LaunchValues launch;
  launch.params = params;
  Footprint footprint;
  footprint.name = "UTMALDG";
  footprint.mode = Mode::kRead;
  footprint.origins = kFromDriver;
  footprint.tensor_map = -2;
  KernelFootprint kernel;
  kernel.footprints.push_back(footprint);
  const AccessSet set = AccessOfLaunch(kernel, launch, view_);
  const ExtentSet both({Extent{4096, 64}, Extent{kTensor, kTensorBytes}});
  EXPECT_TRUE(!set.reads_known() || both.Minus(set.Reads()).empty());
}

TEST_F(UnseenMapTest, AMapThatWasSeenIsWhatWasSeen) {
  Bytes map = CublasMap();
  map.resize(TensorMaps::kBytes);
  seen_.Add(map, RowAt(4096));
  EXPECT_EQ(Of(map).Reads(), ExtentSet({Extent{4096, 64}}));
  // Other bytes are another map.
  map[127] = 1;
  EXPECT_EQ(Of(map).Reads(), ExtentSet({Extent{kTensor, kTensorBytes}}));
}

// Whatever the bytes are: what is said lies in one allocation.
TEST_F(UnseenMapTest, DamagedMapsNeverLeadOutOfAnAllocation) {
  std::mt19937_64 random(6);
  int known = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes map = CublasMap();
    for (uint64_t i = random() % 4; i > 0; --i) {
      map[random() % map.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
    }
    const AccessSet set = Of(map);
    if (!set.reads_known()) continue;
    ++known;
    EXPECT_TRUE(set.Reads().Minus(ExtentSet({allocations_[0]})).empty());
    const std::optional<Shape> shape = TensorMaps::Decode(map);
    ASSERT_TRUE(shape.has_value());
    EXPECT_TRUE(HoldsElements(set.Reads(), *shape, random)) << round;
  }
  EXPECT_GT(known, 2000);
  EXPECT_LT(known, 20000);
}

}  // namespace
}  // namespace heddle::access
