// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/describe.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle::record {
namespace {

constexpr size_t kSampleBytes = 256u << 10;
constexpr size_t kPieceBytes = 4u << 10;

double FromBf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

double FromF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double value;
  if (exponent == 31) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename Word, typename Convert>
std::vector<double> Decode(const std::vector<uint8_t>& bytes,
                           Convert&& convert) {
  std::vector<double> values;
  values.reserve(bytes.size() / sizeof(Word));
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    values.push_back(convert(word));
  }
  return values;
}

// Numbers that a program computes with: nearly all finite, most of them not
// zero, and within a few binades of each other. Bytes of another type read as
// this one have exponents all over the place.
bool LooksLikeNumbers(const std::vector<double>& values) {
  std::vector<double> exponents;
  size_t finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    ++finite;
    if (value != 0) exponents.push_back(std::log2(std::fabs(value)));
  }
  if (values.empty() || finite * 1000 < values.size() * 999) return false;
  if (exponents.size() * 2 < values.size()) return false;
  const auto middle =
      exponents.begin() + static_cast<std::ptrdiff_t>(exponents.size() / 2);
  std::nth_element(exponents.begin(), middle, exponents.end());
  const double median = *middle;
  if (median < -24 || median > 16) return false;
  const auto near =
      std::count_if(exponents.begin(), exponents.end(),
                    [median](double e) { return std::fabs(e - median) < 8; });
  return static_cast<size_t>(near) * 10 > exponents.size() * 9;
}

Description Summarize(fb::ScalarType type, const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    squares += value * value;
    ++count;
  }
  if (count == 0) return {type, 0, 0};
  const double mean = sum / static_cast<double>(count);
  const double variance =
      std::max(0.0, squares / static_cast<double>(count) - mean * mean);
  return {type, mean, std::sqrt(variance)};
}

}  // namespace

void Describer::Add(absl::Span<const uint8_t> piece) {
  // Spread over the piece: its beginning may be a header, its end padding.
  const size_t room = kSampleBytes - std::min(kSampleBytes, sample_.size());
  const size_t pieces = std::min<size_t>(room / kPieceBytes, 16);
  for (size_t i = 0; i < pieces; ++i) {
    const size_t at = piece.size() / pieces * i / 8 * 8;
    const size_t size = std::min(kPieceBytes, piece.size() - at);
    sample_.insert(sample_.end(), piece.begin() + static_cast<long>(at),
                   piece.begin() + static_cast<long>(at + size));
    if (size < kPieceBytes) break;
  }
}

Description Describer::Result() const {
  // bf16 before f16 before f32: bytes of an earlier one can pass for a later
  // one (two bf16 make a plausible f32), not the other way round.
  std::vector<double> values = Decode<uint16_t>(sample_, FromBf16);
  if (LooksLikeNumbers(values)) {
    return Summarize(fb::ScalarType::kBF16, values);
  }
  values = Decode<uint16_t>(sample_, FromF16);
  if (LooksLikeNumbers(values)) {
    return Summarize(fb::ScalarType::kF16, values);
  }
  values =
      Decode<float>(sample_, [](float v) { return static_cast<double>(v); });
  if (LooksLikeNumbers(values)) {
    return Summarize(fb::ScalarType::kF32, values);
  }
  values = Decode<double>(sample_, [](double v) { return v; });
  if (LooksLikeNumbers(values)) {
    return Summarize(fb::ScalarType::kF64, values);
  }
  return {};
}

}  // namespace heddle::record
