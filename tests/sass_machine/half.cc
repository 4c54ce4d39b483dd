// SPDX-License-Identifier: Apache-2.0
// Half precision: two values in a register.

#include "tests/sass_machine/half.h"

#include <bit>
#include <cmath>

#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {

float HalfToFloat(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 0x3ff;
  float value;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return half & 0x8000 ? -value : value;
}

uint16_t DoubleToHalf(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7fff;
  const double size = std::fabs(value);
  if (size >= 65520.0) return sign | 0x7c00;
  // In units of the last place; the smallest is 2^-24.
  int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
  double units = std::nearbyint(std::ldexp(size, 10 - exponent));
  if (units >= 2048) {
    units /= 2;
    ++exponent;
  }
  const auto whole = static_cast<uint32_t>(units);
  if (whole < 1024) return static_cast<uint16_t>(sign | whole);
  return static_cast<uint16_t>(
      sign | static_cast<uint32_t>(exponent + 15) << 10 | (whole - 1024));
}

uint16_t FloatToHalf(float value) { return DoubleToHalf(value); }

float BrainToFloat(uint16_t brain) {
  return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16);
}

uint16_t FloatToBrain(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

namespace {

// Which halves a source means: 0 both in their places, 2 the low one twice, 3
// the high one twice.
struct Picked {
  float low = 0;
  float high = 0;
};

Picked Pick(uint32_t bits, uint64_t which, bool negate, bool absolute) {
  const auto low_half = static_cast<uint16_t>(bits);
  const auto high_half = static_cast<uint16_t>(bits >> 16);
  const auto value = [&](uint16_t half) {
    float number = HalfToFloat(half);
    if (absolute) number = std::fabs(number);
    return negate ? -number : number;
  };
  return {value(which == 3 ? high_half : low_half),
          value(which == 2 ? low_half : high_half)};
}

}  // namespace

absl::Status Warp::Half(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) { return HalfLane(code, lane); });
}

// HADD2, HMUL2: Rd, Ra, V. HFMA2: Rd, Ra, B, C. HSETP2: Pu, Pv, Ra, V, Pp. Only
// forms whose field at bit 32 is the second source.
absl::Status Warp::HalfLane(const Code& code, int lane) {
  const auto operands = code.decoded.operands();
  const absl::string_view name = code.decoded.mnemonic;
  const uint64_t form = code.Bits(9, 3);
  const bool compares = name == "HSETP2";
  const bool three = name == "HFMA2";
  const size_t first = compares ? 2 : 1;
  // No .BF16_V2, .FTZ, .SAT, .FMZ, .RELU; no second field.
  const bool brain = code.Bit(compares ? 65 : 85);
  if (brain || code.Bit(80) || (three && form != 1) ||
      (!compares && (code.Bit(77) || code.Bit(79))) ||
      (name == "HADD2" && code.Bit(76)) ||
      (name != "HADD2" && !compares && code.Bits(76, 1) != 0)) {
    return Unknown(code);
  }
  const absl::StatusOr<uint64_t> a_bits = Operand(lane, operands[first], 1);
  const absl::StatusOr<uint64_t> b_bits = Operand(lane, operands[first + 1], 1);
  if (!a_bits.ok()) return a_bits.status();
  if (!b_bits.ok()) return b_bits.status();
  const bool immediate =
      operands[first + 1].kind == cubin::SassOperandKind::kImmediate;
  // Constants leave no room for the choice.
  if (!immediate && form != 1 && form != 6 && form != 7) return Unknown(code);
  const Picked a = Pick(static_cast<uint32_t>(*a_bits), code.Bits(74, 2),
                        code.Bit(72), code.Bit(73));
  const Picked b =
      Pick(static_cast<uint32_t>(*b_bits), immediate ? 0 : code.Bits(60, 2),
           !immediate && code.Bit(63), !immediate && code.Bit(62));
  if (compares) {
    if (code.Bits(69, 3) != 0) return Unknown(code);
    const uint64_t comparison = code.Bits(76, 4);
    const auto compared = [&](float x, float y) {
      const bool unordered = std::isnan(x) || std::isnan(y);
      const bool values[8] = {false, x<y, x == y, x <= y, x> y,
                              x != y && !unordered, x >= y, !unordered};
      return comparison < 8 ? values[comparison]
                            : unordered || values[comparison & 7];
    };
    if (comparison == 7 || comparison == 8 || comparison == 15) {
      return Unknown(code);
    }
    const bool with = Predicate(lane, operands[4]);
    SetPredicate(lane, operands[0], compared(a.low, b.low) && with);
    SetPredicate(lane, operands[1], compared(a.high, b.high) && with);
    return absl::OkStatus();
  }
  Picked c;
  if (three) {
    const absl::StatusOr<uint64_t> c_bits = Operand(lane, operands[3], 1);
    if (!c_bits.ok()) return c_bits.status();
    c = Pick(static_cast<uint32_t>(*c_bits), code.Bits(81, 2), code.Bit(84),
             code.Bit(83));
  }
  // Exact in double precision, so that there is one rounding.
  const auto result = [&](float x, float y, float z) -> double {
    const double product = static_cast<double>(x) * y;
    if (name == "HADD2") return static_cast<double>(x) + y;
    return three ? product + z : product;
  };
  uint32_t bits = 0;
  if (code.Bit(78)) {  // HADD2.F32: one value
    if (name != "HADD2") return Unknown(code);
    bits = std::bit_cast<uint32_t>(static_cast<float>(result(a.low, b.low, 0)));
  } else {
    bits = DoubleToHalf(result(a.low, b.low, c.low)) |
           static_cast<uint32_t>(DoubleToHalf(result(a.high, b.high, c.high)))
               << 16;
  }
  SetRegister(lane, operands[0].index, bits);
  return absl::OkStatus();
}

}  // namespace heddle::sass_machine
