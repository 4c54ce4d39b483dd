// SPDX-License-Identifier: Apache-2.0
// Conversions between numbers of different kinds.

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/sass_machine/half.h"
#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {
namespace {

// Codes of floating-point types.
constexpr uint64_t kHalf = 1;
constexpr uint64_t kSingle = 2;
constexpr uint64_t kDouble = 3;

long double RoundedToWhole(uint64_t mode, long double value) {
  switch (mode) {
    case 0:
      return std::nearbyint(value);
    case 1:
      return std::floor(value);
    case 2:
      return std::ceil(value);
    default:
      return std::trunc(value);
  }
}

template <typename T>
T Narrowed(uint64_t mode, long double value) {
  constexpr int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                            FE_TOWARDZERO};
  std::fesetround(kModes[mode]);
  volatile long double exact = value;
  volatile T result = static_cast<T>(exact);
  std::fesetround(FE_TONEAREST);
  return result;
}

// Saturated, and what is no number becomes 0 (in 64 bits the highest bit).
uint64_t Whole(long double value, int bits, bool is_signed) {
  if (std::isnan(value)) return bits == 64 ? uint64_t{1} << 63 : 0;
  const long double top = std::ldexp(1.0L, is_signed ? bits - 1 : bits);
  const long double bottom = is_signed ? -top : 0;
  if (value >= top) {
    return is_signed ? (uint64_t{1} << (bits - 1)) - 1
                     : ~uint64_t{0} >> (64 - bits);
  }
  if (value < bottom) value = bottom;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

}  // namespace

absl::Status Warp::Convert(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) { return ConvertLane(code, lane); });
}

absl::Status Warp::ConvertLane(const Code& code, int lane) {
  const auto operands = code.decoded.operands();
  const absl::string_view name = code.decoded.mnemonic;
  const uint64_t rounding = code.Bits(78, 2);
  const uint8_t to = operands[0].index;
  if (name == "F2FP") {
    // .PACK_AB: two singles as halves, the first one above.
    if (operands.size() != 3 || code.Bits(73, 3) != 0 ||
        code.Bits(77, 5) != 0) {
      return Unknown(code);
    }
    const absl::StatusOr<float> a = FloatSource(code, lane, 1, 'a');
    const absl::StatusOr<float> b = FloatSource(code, lane, 2, 'b');
    if (!a.ok()) return a.status();
    if (!b.ok()) return b.status();
    const bool brain = code.Bit(76);
    const uint32_t high = brain ? FloatToBrain(*a) : FloatToHalf(*a);
    const uint32_t low = brain ? FloatToBrain(*b) : FloatToHalf(*b);
    SetRegister(lane, to, high << 16 | low);
    return absl::OkStatus();
  }
  if (name == "I2F" || name == "I2FP") {
    const uint64_t size = code.Bits(84, 2);  // 0 to 3: 8 to 64 bits
    const absl::StatusOr<uint64_t> bits =
        Operand(lane, operands[1], size == 3 ? 2 : 1);
    if (!bits.ok()) return bits.status();
    if (name == "I2F" ? size < 2 : size != 2) return Unknown(code);
    const bool is_signed = code.Bit(74);
    long double value;
    if (size == 3) {
      value = is_signed ? static_cast<long double>(static_cast<int64_t>(*bits))
                        : static_cast<long double>(*bits);
    } else {
      value = is_signed
                  ? static_cast<long double>(static_cast<int32_t>(*bits))
                  : static_cast<long double>(static_cast<uint32_t>(*bits));
    }
    const uint64_t type = code.Bits(75, 3);
    if (type == kSingle) {
      SetRegister(lane, to,
                  std::bit_cast<uint32_t>(Narrowed<float>(rounding, value)));
    } else if (type == kDouble && name == "I2F") {
      SetWords(lane, false, to, 2,
               std::bit_cast<uint64_t>(Narrowed<double>(rounding, value)));
    } else {
      return Unknown(code);
    }
    return absl::OkStatus();
  }
  // From floats: the type of the source.
  const uint64_t from = code.Bits(84, 3);
  long double value = 0;
  if (from == kDouble) {
    const absl::StatusOr<double> source = DoubleSource(code, lane, 1, 'v');
    if (!source.ok()) return source.status();
    value = *source;
  } else if (from == kSingle) {
    const absl::StatusOr<float> source = FloatSource(code, lane, 1, 'v');
    if (!source.ok()) return source.status();
    value = *source;
    if (code.Bit(80) && std::fpclassify(*source) == FP_SUBNORMAL) value = 0;
  } else {
    return Unknown(code);
  }
  if (name == "F2I") {
    const uint64_t size = code.Bits(75, 2);
    if (size < 2) return Unknown(code);
    const int bits = size == 3 ? 64 : 32;
    SetWords(lane, false, to, bits / 32,
             Whole(RoundedToWhole(rounding, value), bits, code.Bit(72)));
    return absl::OkStatus();
  }
  const uint64_t type = code.Bits(75, 3);
  if (name == "FRND") {
    value = std::copysign(RoundedToWhole(rounding, value), value);
  }
  if (type == kSingle) {
    SetRegister(lane, to,
                std::bit_cast<uint32_t>(
                    Narrowed<float>(name == "FRND" ? 0 : rounding, value)));
  } else if (type == kDouble) {
    SetWords(lane, false, to, 2,
             std::bit_cast<uint64_t>(
                 Narrowed<double>(name == "FRND" ? 0 : rounding, value)));
  } else if (type == kHalf && name == "F2F" && rounding == 0) {
    SetRegister(lane, to, DoubleToHalf(static_cast<double>(value)));
  } else {
    return Unknown(code);
  }
  return absl::OkStatus();
}

}  // namespace heddle::sass_machine
