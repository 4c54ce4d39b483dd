// SPDX-License-Identifier: Apache-2.0
// Single and double precision, by the host's arithmetic.

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {
namespace {

// Whether what stands at bit 32 is the third source.
bool FieldIsC(const Code& code) {
  const uint64_t form = code.Bits(9, 3);
  return form == 2 || form == 3 || form == 7;
}

struct Signs {
  bool negate = false;
  bool absolute = false;
};

// Place: 'a' the first source, 'v' what is at bit 32, 'b' and 'c' the second
// and third.
Signs SignsAt(const Code& code, char place) {
  if (place == 'a') return {code.Bit(72), code.Bit(73)};
  const bool field = place == 'v' || (place == 'b') == !FieldIsC(code);
  if (!field) return {code.Bit(75), code.Bit(74)};
  const uint64_t form = code.Bits(9, 3);
  if (form == 2 || form == 4) return {};
  return {code.Bit(63), code.Bit(62)};
}

float Flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

// `operation` under the rounding of bits 78 and 79: to nearest, down, up, to
// zero.
template <typename T, typename Operation>
T Rounded(const Code& code, Operation operation) {
  constexpr int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                            FE_TOWARDZERO};
  const int before = std::fegetround();
  std::fesetround(kModes[code.Bits(78, 2)]);
  volatile T result = operation();
  std::fesetround(before);
  return result;
}

template <typename T>
bool Compared(uint64_t comparison, T a, T b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  switch (comparison) {
    case 0:
      return false;
    case 1:
      return a < b;
    case 2:
      return a == b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    case 5:
      return a != b && !unordered;
    case 6:
      return a >= b;
    case 7:
      return !unordered;
    case 8:
      return unordered;
    case 9:
      return unordered || a < b;
    case 10:
      return unordered || a == b;
    case 11:
      return unordered || a <= b;
    case 12:
      return unordered || a > b;
    case 13:
      return unordered || a != b;
    case 14:
      return unordered || a >= b;
    default:
      return true;
  }
}

bool Combined(uint64_t combine, bool value, bool with) {
  if (combine == 0) return value && with;
  return combine == 1 ? value || with : value != with;
}

template <typename T>
T Extreme(T a, T b, bool least) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  // Of zeros the negative one is less.
  const bool less = a < b || (a == b && std::signbit(a));
  return less == least ? a : b;
}

bool Approximate(uint64_t function, float x, float* result) {
  switch (function) {
    case 0:
      *result = std::cos(x * 6.283185307179586f);
      return true;
    case 1:
      *result = std::sin(x * 6.283185307179586f);
      return true;
    case 2:
      *result = std::exp2(x);
      return true;
    case 3:
      *result = std::log2(x);
      return true;
    case 4:
      *result = 1.0f / x;
      return true;
    case 5:
      *result = static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
      return true;
    case 8:
      *result = std::sqrt(x);
      return true;
    case 9:
      *result = std::tanh(x);
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<float> Warp::FloatSource(const Code& code, int lane, int operand,
                                        char place) const {
  const absl::StatusOr<uint64_t> bits =
      Operand(lane, code.decoded.operand[static_cast<size_t>(operand)], 1);
  if (!bits.ok()) return bits.status();
  auto value = std::bit_cast<float>(static_cast<uint32_t>(*bits));
  const Signs signs = SignsAt(code, place);
  if (signs.absolute) value = std::fabs(value);
  return signs.negate ? -value : value;
}

absl::StatusOr<double> Warp::DoubleSource(const Code& code, int lane,
                                          int operand, char place) const {
  const cubin::SassOperand& source =
      code.decoded.operand[static_cast<size_t>(operand)];
  absl::StatusOr<uint64_t> bits = Operand(lane, source, 2);
  if (!bits.ok()) return bits.status();
  // Immediates are the upper half.
  if (source.kind == cubin::SassOperandKind::kImmediate) *bits <<= 32;
  auto value = std::bit_cast<double>(*bits);
  const Signs signs = SignsAt(code, place);
  if (signs.absolute) value = std::fabs(value);
  return signs.negate ? -value : value;
}

absl::Status Warp::Float(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) { return FloatLane(code, lane); });
}

absl::Status Warp::FloatLane(const Code& code, int lane) {
  const auto operands = code.decoded.operands();
  const absl::string_view name = code.decoded.mnemonic;
  const bool flush = code.Bit(80);
  // FSETP and FCHK have predicates in front.
  const int first = name == "FSETP" ? 2 : 1;
  const bool one = name == "MUFU";
  absl::StatusOr<float> a = FloatSource(code, lane, first, one ? 'v' : 'a');
  if (!a.ok()) return a.status();
  if (flush) *a = Flushed(*a);
  const bool three = name == "FFMA";
  absl::StatusOr<float> b = 0.0f;
  if (!one) b = FloatSource(code, lane, first + 1, three ? 'b' : 'v');
  if (!b.ok()) return b.status();
  if (flush) *b = Flushed(*b);
  if (name == "FSETP") {
    const bool value = Compared<float>(code.Bits(76, 4), *a, *b);
    const uint64_t combine = code.Bits(74, 2);
    const bool with = Predicate(lane, operands[4]);
    SetPredicate(lane, operands[0], Combined(combine, value, with));
    SetPredicate(lane, operands[1], Combined(combine, !value, with));
    return combine == 3 ? Unknown(code) : absl::OkStatus();
  }
  if (name == "FSET") {
    const bool value = Compared<float>(code.Bits(76, 4), *a, *b);
    const uint64_t combine = code.Bits(74, 2);
    const bool is_true = Combined(combine, value, Predicate(lane, operands[3]));
    SetRegister(lane, operands[0].index,
                std::bit_cast<uint32_t>(is_true ? 1.0f : 0.0f));
    return combine == 3 ? Unknown(code) : absl::OkStatus();
  }
  if (name == "FCHK") {
    // Whether a / b needs care; where it does not, saying so is right as well.
    const auto easy = [](float x) {
      return std::isnormal(x) && std::fabs(std::ilogb(x)) < 60;
    };
    SetPredicate(lane, operands[0], !easy(*a) || !easy(*b));
    return code.Bits(74, 7) == 0 ? absl::OkStatus() : Unknown(code);
  }
  float result = 0.0f;
  if (one) {
    if (!Approximate(code.Bits(74, 4), *a, &result)) return Unknown(code);
  } else if (name == "FSEL" || name == "FMNMX") {
    const bool choice = Predicate(lane, operands[3]);
    if (name == "FMNMX" && code.Bits(81, 2) != 0) return Unknown(code);
    result = name == "FSEL" ? (choice ? *a : *b) : Extreme(*a, *b, choice);
  } else {
    // .FMZ makes 0 times anything 0.
    if (name != "FADD" && code.Bit(76)) return Unknown(code);
    // FMUL has factors of two in bits 84 to 86; 4 is none.
    if (name == "FMUL" && code.Bits(84, 3) != 4) return Unknown(code);
    if (three) {
      absl::StatusOr<float> c = FloatSource(code, lane, 3, 'c');
      if (!c.ok()) return c.status();
      if (flush) *c = Flushed(*c);
      result = Rounded<float>(code, [&] { return std::fma(*a, *b, *c); });
    } else {
      volatile float x = *a;
      volatile float y = *b;
      result =
          Rounded<float>(code, [&] { return name == "FADD" ? x + y : x * y; });
    }
    if (code.Bit(77)) {
      result =
          std::isnan(result) ? 0.0f : std::fmin(std::fmax(result, 0.0f), 1.0f);
    }
  }
  if (flush) result = Flushed(result);
  SetRegister(lane, operands[0].index, std::bit_cast<uint32_t>(result));
  return absl::OkStatus();
}

absl::Status Warp::Double(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) { return DoubleLane(code, lane); });
}

// DADD: Rd, Ra, C. DMUL: Rd, Ra, V. DFMA: Rd, Ra, B, C. DSETP: Pu, Pv, Ra, V,
// Pp.
absl::Status Warp::DoubleLane(const Code& code, int lane) {
  const auto operands = code.decoded.operands();
  const absl::string_view name = code.decoded.mnemonic;
  const int first = name == "DSETP" ? 2 : 1;
  const absl::StatusOr<double> a = DoubleSource(code, lane, first, 'a');
  if (!a.ok()) return a.status();
  const char place = name == "DADD" ? 'c' : name == "DFMA" ? 'b' : 'v';
  const absl::StatusOr<double> b = DoubleSource(code, lane, first + 1, place);
  if (!b.ok()) return b.status();
  if (name == "DSETP") {
    const bool value = Compared<double>(code.Bits(76, 4), *a, *b);
    const uint64_t combine = code.Bits(74, 2);
    const bool with = Predicate(lane, operands[4]);
    SetPredicate(lane, operands[0], Combined(combine, value, with));
    SetPredicate(lane, operands[1], Combined(combine, !value, with));
    return combine == 3 ? Unknown(code) : absl::OkStatus();
  }
  absl::StatusOr<double> c = 0.0;
  if (name == "DFMA") c = DoubleSource(code, lane, 3, 'c');
  if (!c.ok()) return c.status();
  volatile double x = *a;
  volatile double y = *b;
  const double result = Rounded<double>(code, [&] {
    return name == "DFMA"   ? std::fma(*a, *b, *c)
           : name == "DADD" ? x + y
                            : x * y;
  });
  SetWords(lane, false, operands[0].index, 2, std::bit_cast<uint64_t>(result));
  return absl::OkStatus();
}

}  // namespace heddle::sass_machine
