// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/apps/decode/safetensors.h"
#include "tests/unit/apps/safetensors_builder.h"

namespace decode {
namespace {

using testing::HasSubstr;

constexpr char kGoodHeader[] =
    R"({"__metadata__":{"format":"pt"},)"
    R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
    R"("scalar":{"dtype":"F16","shape":[],"data_offsets":[22,24]},)"
    R"("empty":{"dtype":"I64","shape":[0,4],"data_offsets":[24,24]}})";

// 1, -2, 0.5, 3 as F32; 1, -2, 0.5 as BF16; -0.25 as F16.
std::string GoodData() {
  const float floats[] = {1.0f, -2.0f, 0.5f, 3.0f};
  const uint16_t halves[] = {0x3f80, 0xc000, 0x3f00, 0xb400};
  std::string data(reinterpret_cast<const char*>(floats), sizeof(floats));
  data.append(reinterpret_cast<const char*>(halves), sizeof(halves));
  return data;
}

std::string GoodBytes() { return SafetensorsBytes(kGoodHeader, GoodData()); }

// The message with which a header over 24 bytes of data is refused, or "" if it
// is not.
std::string Refusal(const std::string& header) {
  const auto parsed =
      SafetensorsHeader::Parse(SafetensorsBytes(header, GoodData()));
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(Safetensors, ReadsEveryFloatTypeOfAGoodFile) {
  const TemporaryFile file(GoodBytes());
  const auto opened = SafetensorsFile::Open(file.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->header().tensors.size(), 4u);
  EXPECT_EQ(*opened->ReadFloats("a"),
            (std::vector<float>{1.0f, -2.0f, 0.5f, 3.0f}));
  EXPECT_EQ(*opened->ReadFloats("b"), (std::vector<float>{1.0f, -2.0f, 0.5f}));
  EXPECT_EQ(*opened->ReadFloats("scalar"), (std::vector<float>{-0.25f}));
  EXPECT_EQ((*opened->Find("a"))->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ((*opened->Find("empty"))->elements(), 0);
}

TEST(Safetensors, AMissingTensorIsNamedBesideSomeThatExist) {
  const TemporaryFile file(GoodBytes());
  const auto opened = SafetensorsFile::Open(file.path());
  ASSERT_TRUE(opened.ok());
  const absl::Status status = opened->Find("c").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no tensor \"c\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("(a, b, empty, ...)"));
}

TEST(Safetensors, ATypeThatIsNoFloatIsRefusedWhenRead) {
  const TemporaryFile file(GoodBytes());
  const auto opened = SafetensorsFile::Open(file.path());
  ASSERT_TRUE(opened.ok());
  // Empty, so there is nothing to convert.
  EXPECT_TRUE(opened->ReadFloats("empty").ok());
  const TemporaryFile integers(SafetensorsBytes(
      R"({"i":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  const auto other = SafetensorsFile::Open(integers.path());
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(absl::IsUnimplemented(other->ReadFloats("i").status()));
}

TEST(Safetensors, MissingEmptyAndIrregularFilesAreRefused) {
  EXPECT_TRUE(
      absl::IsNotFound(SafetensorsFile::Open("/nonexistent/file").status()));
  EXPECT_FALSE(SafetensorsFile::Open(testing::TempDir()).ok());
  const TemporaryFile empty("");
  EXPECT_FALSE(SafetensorsFile::Open(empty.path()).ok());
}

TEST(Safetensors, AFileCutAnywhereIsRefused) {
  const std::string good = GoodBytes();
  ASSERT_TRUE(SafetensorsHeader::Parse(good).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(SafetensorsHeader::Parse(good.substr(0, length)).ok())
        << "cut to " << length;
  }
  EXPECT_FALSE(SafetensorsHeader::Parse(good + "x").ok());
}

TEST(Safetensors, NoFlippedBitCrashesTheReader) {
  const std::string good = GoodBytes();
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string changed = good;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    if (!SafetensorsHeader::Parse(changed).ok()) continue;
    const TemporaryFile file(changed);
    const auto opened = SafetensorsFile::Open(file.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    for (const auto& [name, entry] : opened->header().tensors) {
      const auto values = opened->ReadFloats(name);
      if (values.ok()) {
        EXPECT_EQ(static_cast<int64_t>(values->size()), entry.elements());
      }
    }
  }
}

TEST(Safetensors, RandomBytesAreRefused) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Often a plausible length, so that the JSON parser sees the rest.
    if (bytes.size() > 8 && round % 2 == 0) {
      bytes.replace(0, 8, std::string("\x20\0\0\0\0\0\0\0", 8));
    }
    EXPECT_FALSE(SafetensorsHeader::Parse(bytes).ok());
  }
}

TEST(Safetensors, AnAbsurdHeaderLengthIsRefused) {
  std::string bytes = GoodBytes();
  bytes.replace(0, 8, 8, '\xff');
  const auto parsed = SafetensorsHeader::Parse(bytes);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr("not a safetensors file"));
}

TEST(Safetensors, OverlappingTensorsAreRefused) {
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
              R"("b":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})"),
      HasSubstr("overlaps"));
}

TEST(Safetensors, GapsAndLeftOverBytesAreRefused) {
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})"),
      HasSubstr("gap of 8"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})"),
      HasSubstr("8 bytes at the end"));
}

TEST(Safetensors, OffsetsOutsideTheFileAreRefused) {
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[7],"data_offsets":[0,28]}})"),
      HasSubstr("outside"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[24,0]}})"),
      HasSubstr("outside"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[-24,0]}})"),
      HasSubstr("data_offsets"));
}

TEST(Safetensors, SizesThatDoNotFitTheirShapeAreRefused) {
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"BF16","shape":[6],"data_offsets":[0,24]}})"),
      HasSubstr("need 12"));
  // 2^62 * 4 wraps to 0 in 64 bits.
  EXPECT_THAT(Refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904],)"
                      R"("data_offsets":[0,0]}})"),
              HasSubstr("larger than any file"));
}

TEST(Safetensors, HeadersOfTheWrongFormAreRefused) {
  EXPECT_THAT(Refusal("[1,2]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(Refusal("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(Refusal(R"({"a":3})"), HasSubstr("not a JSON object"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F33","shape":[6],"data_offsets":[0,24]}})"),
      HasSubstr("unknown dtype"));
  EXPECT_THAT(Refusal(R"({"a":{"shape":[6],"data_offsets":[0,24]}})"),
              HasSubstr("dtype"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,6]}})"),
      HasSubstr("shape"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0]}})"),
      HasSubstr("data_offsets"));
  EXPECT_THAT(
      Refusal(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},)"
              R"("a":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}})"),
      HasSubstr("twice"));
}

TEST(Safetensors, DeeplyNestedJsonIsSurvived) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(Refusal(R"({"a":)" + deep).empty());
}

// Every half, by the definition sign * 2^(exponent - 15) * (1 + fraction/1024).
TEST(Safetensors, EveryHalfHasItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = FloatFromHalf(static_cast<uint16_t>(bits));
    const uint32_t exponent = (bits >> 10) & 0x1f;
    const int fraction = static_cast<int>(bits & 0x3ff);
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    if (exponent == 31) {
      EXPECT_TRUE(fraction == 0 ? std::isinf(value) : std::isnan(value));
    } else if (exponent == 0) {
      EXPECT_EQ(std::abs(value), std::ldexp(fraction, -24));
    } else {
      EXPECT_EQ(std::abs(value),
                std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25));
    }
  }
}

}  // namespace
}  // namespace decode
