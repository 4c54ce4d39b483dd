// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace heddle::replay {
namespace {

using fb::ScalarType;

double FromBF16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

double FromF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double FromE4M3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && mantissa == 7) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

std::vector<double> Values(ScalarType type, const std::vector<uint8_t>& bytes) {
  std::vector<double> values;
  const auto read = [&]<typename T>(T, auto convert) {
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T raw;
      std::memcpy(&raw, bytes.data() + at, sizeof(T));
      values.push_back(static_cast<double>(convert(raw)));
    }
  };
  const auto same = [](auto x) { return x; };
  switch (type) {
    case ScalarType::kF32:
      read(float{}, same);
      break;
    case ScalarType::kF64:
      read(double{}, same);
      break;
    case ScalarType::kF16:
      read(uint16_t{}, FromF16);
      break;
    case ScalarType::kBF16:
      read(uint16_t{}, FromBF16);
      break;
    case ScalarType::kFP8:
      read(uint8_t{}, FromE4M3);
      break;
    case ScalarType::kI32:
      read(int32_t{}, same);
      break;
    case ScalarType::kI64:
      read(int64_t{}, same);
      break;
    default:
      read(uint8_t{}, same);
      break;
  }
  return values;
}

std::vector<uint8_t> Filled(const SeededFill& fill, size_t size) {
  std::vector<uint8_t> bytes(size);
  fill.Write(0, absl::MakeSpan(bytes));
  return bytes;
}

constexpr ScalarType kFloats[] = {ScalarType::kF32, ScalarType::kF16,
                                  ScalarType::kBF16, ScalarType::kF64,
                                  ScalarType::kFP8};

TEST(FillTest, FloatingPointValuesHaveTheMeanAndDeviationAskedFor) {
  for (const ScalarType type : kFloats) {
    for (const auto& [mean, stddev] : {std::pair{0.0, 1.0}, {0.5, 0.25}}) {
      const std::vector<double> values =
          Values(type, Filled(SeededFill(type, mean, stddev, 3), 1 << 20));
      double sum = 0;
      double squares = 0;
      for (const double v : values) sum += v;
      const double average = sum / static_cast<double>(values.size());
      for (const double v : values) squares += (v - average) * (v - average);
      const double deviation =
          std::sqrt(squares / static_cast<double>(values.size()));
      EXPECT_NEAR(average, mean, 0.01 * stddev + 0.002)
          << fb::EnumNameScalarType(type);
      EXPECT_NEAR(deviation, stddev, 0.02 * stddev)
          << fb::EnumNameScalarType(type);
    }
  }
}

TEST(FillTest, FloatingPointValuesAreNeverZeroInfiniteOrNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarType type : kFloats) {
    for (const auto& [mean, stddev] : {std::pair{0.0, 0.0},
                                       {0.0, 1e-30},
                                       {nan, 1.0},
                                       {0.0, nan},
                                       {inf, 1.0},
                                       {1e308, 1e308},
                                       {0.0, 1e38},
                                       {-3e4, 6e4},
                                       {0.0, -5.0}}) {
      for (const double v :
           Values(type, Filled(SeededFill(type, mean, stddev, 9), 1 << 16))) {
        ASSERT_TRUE(std::isfinite(v) && v != 0)
            << fb::EnumNameScalarType(type) << " mean " << mean << " stddev "
            << stddev << " gave " << v;
      }
    }
  }
}

TEST(FillTest, BytesOfUnknownTypeAreNoNaNUnderAnyReading) {
  const std::vector<uint8_t> bytes =
      Filled(SeededFill(ScalarType::kBytes, 127, 80, 5), 1 << 16);
  for (const ScalarType type : kFloats) {
    for (const double v : Values(type, bytes)) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST(FillTest, IntegersStayWithinTwoDeviationsAndDoNotTurnNegative) {
  for (const ScalarType type : {ScalarType::kI32, ScalarType::kI64}) {
    for (const double v :
         Values(type, Filled(SeededFill(type, 10, 20, 1), 1 << 16))) {
      ASSERT_GE(v, 0);
      ASSERT_LE(v, 50);
    }
  }
}

TEST(FillTest, ARangeCanBeFilledInPiecesInAnyOrder) {
  for (const ScalarType type : {ScalarType::kF32, ScalarType::kBF16,
                                ScalarType::kF64, ScalarType::kFP8}) {
    const SeededFill fill(type, 0, 1, 7);
    const std::vector<uint8_t> whole = Filled(fill, 1000);
    std::vector<uint8_t> pieces(1000);
    for (const size_t at : {size_t{960}, size_t{64}, size_t{0}, size_t{512}}) {
      const size_t end = at == 0 ? 64 : at == 64 ? 512 : at == 512 ? 960 : 1000;
      fill.Write(at, absl::MakeSpan(pieces).subspan(at, end - at));
    }
    EXPECT_EQ(pieces, whole);
  }
}

TEST(FillTest, TheSeedDecidesTheBytes) {
  const auto fill = [](uint64_t seed) {
    return Filled(SeededFill(ScalarType::kF32, 0, 1, seed), 4096);
  };
  EXPECT_EQ(fill(1), fill(1));
  EXPECT_NE(fill(1), fill(2));
}

template <typename T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(PerturbTest, ChangesFloatsALittleAndKeepsThemFinite) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(4096);
  for (float& v : values) v = normal(random);
  std::vector<uint8_t> bytes = BytesOf(values);
  EXPECT_GT(Perturb(absl::MakeSpan(bytes), 0x1000, 5, 0, 0), 0U);
  size_t changed = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    float now;
    std::memcpy(&now, bytes.data() + 4 * i, 4);
    ASSERT_TRUE(std::isfinite(now));
    ASSERT_LE(std::abs(now - values[i]), std::abs(values[i]) / 128);
    changed += now != values[i] ? 1 : 0;
  }
  EXPECT_GT(changed, values.size() / 4);
}

TEST(PerturbTest, LeavesIntegersMasksZerosAndPointersAlone) {
  std::mt19937 random(4);
  std::vector<int32_t> indices(1024);
  for (int32_t& v : indices) v = static_cast<int32_t>(random() % 200000);
  std::vector<int64_t> positions(512);
  for (int64_t& v : positions) v = static_cast<int64_t>(random() % 4096);
  std::vector<uint64_t> pointers(512);
  for (uint64_t& v : pointers) v = 0x7f3e2a000000 + random() % (64 << 20);
  std::vector<uint8_t> mask(4096);
  for (uint8_t& v : mask) v = random() % 2;
  for (const std::vector<uint8_t>& original :
       {BytesOf(indices), BytesOf(positions), BytesOf(pointers), mask,
        std::vector<uint8_t>(4096, 0)}) {
    std::vector<uint8_t> bytes = original;
    EXPECT_EQ(
        Perturb(absl::MakeSpan(bytes), 0, 5, 0x7f3e00000000, 0x7f3f00000000),
        0U);
    EXPECT_EQ(bytes, original);
  }
}

TEST(PerturbTest, ABlockWithAPointerInItStaysEvenAmongFloats) {
  std::vector<float> values(128, 1.5F);
  std::vector<uint8_t> bytes = BytesOf(values);
  const uint64_t pointer = 0x400000003fc00000;  // 1.5, 2.0: or an address
  std::memcpy(bytes.data() + 16, &pointer, 8);
  const std::vector<uint8_t> before = bytes;
  Perturb(absl::MakeSpan(bytes), 0, 5, pointer, pointer + 1);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 256, before.begin()));
  EXPECT_NE(bytes, before) << "the other block is changed";
}

TEST(PerturbTest, MixedContentIsChangedBlockByBlock) {
  std::vector<uint8_t> bytes(1024, 0);
  for (int i = 0; i < 64; ++i) {
    const float value = 0.25F * static_cast<float>(i + 1);
    std::memcpy(bytes.data() + 512 + 4 * i, &value, 4);
    const int32_t integer = i;
    std::memcpy(bytes.data() + 4 * i, &integer, 4);
  }
  const std::vector<uint8_t> before = bytes;
  EXPECT_GT(Perturb(absl::MakeSpan(bytes), 0x200, 1, 0, 0), 0U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 512, before.begin()));
}

}  // namespace
}  // namespace heddle::replay
