// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace heddle::record {
namespace {

uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x8000u) >> 16);
}

// Normal numbers only, which is all that the tests make.
uint16_t ToF16(float value) {
  const uint16_t sign = value < 0 ? 0x8000 : 0;
  int exponent;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  if (value == 0 || exponent < -13) return sign;
  const auto mantissa = static_cast<int>(std::lround(fraction * 2048)) - 1024;
  const int magnitude = ((exponent + 14) << 10) + mantissa;
  return static_cast<uint16_t>(sign | magnitude);
}

template <typename Word, typename Convert>
Description DescribeNormal(double mean, double stddev, Convert&& convert) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(mean, stddev);
  std::vector<uint8_t> bytes(8u << 20);
  for (size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    const Word word = convert(normal(random));
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  Describer describer;
  describer.Add(bytes);
  return describer.Result();
}

TEST(Describer, TellsTheFloatTypesApartWithTheirMoments) {
  const struct {
    double mean;
    double stddev;
  } kCases[] = {{0, 0.02}, {0, 1}, {1, 0.1}, {0, 0.0005}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.mean << " +- " << c.stddev);
    const Description bf16 = DescribeNormal<uint16_t>(
        c.mean, c.stddev,
        [](double v) { return ToBf16(static_cast<float>(v)); });
    EXPECT_EQ(bf16.type, fb::ScalarType::kBF16);
    EXPECT_NEAR(bf16.stddev, c.stddev, c.stddev * 0.05);
    EXPECT_NEAR(bf16.mean, c.mean, c.stddev * 0.05);
    const Description f32 = DescribeNormal<float>(
        c.mean, c.stddev, [](double v) { return static_cast<float>(v); });
    EXPECT_EQ(f32.type, fb::ScalarType::kF32);
    EXPECT_NEAR(f32.stddev, c.stddev, c.stddev * 0.05);
    const Description f16 = DescribeNormal<uint16_t>(
        c.mean, c.stddev,
        [](double v) { return ToF16(static_cast<float>(v)); });
    // f16 numbers all near 1 are as good bf16 numbers all near 0.01: their
    // bytes do not tell, and data made from either description is plausible.
    if (c.mean == 0) {
      EXPECT_EQ(f16.type, fb::ScalarType::kF16);
      EXPECT_NEAR(f16.stddev, c.stddev, c.stddev * 0.05);
    }
    const Description f64 =
        DescribeNormal<double>(c.mean, c.stddev, [](double v) { return v; });
    EXPECT_EQ(f64.type, fb::ScalarType::kF64);
    EXPECT_NEAR(f64.stddev, c.stddev, c.stddev * 0.05);
  }
}

TEST(Describer, BytesThatAreNoNumbersStayBytes) {
  std::mt19937 random(5);
  std::vector<uint8_t> noise(1u << 20);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  Describer of_noise;
  of_noise.Add(noise);
  EXPECT_EQ(of_noise.Result().type, fb::ScalarType::kBytes);

  std::vector<uint8_t> indices(1u << 20);
  for (size_t i = 0; i * 8 < indices.size(); ++i) {
    const uint64_t value = i;
    std::memcpy(indices.data() + i * 8, &value, 8);
  }
  Describer of_indices;
  of_indices.Add(indices);
  EXPECT_EQ(of_indices.Result().type, fb::ScalarType::kBytes);

  EXPECT_EQ(Describer().Result().type, fb::ScalarType::kBytes);
}

}  // namespace
}  // namespace heddle::record
