// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/integer.h"

#include <algorithm>
#include <bit>

namespace heddle::sass_machine {
namespace {

using cubin::SassCombine;
using cubin::SassCompare;
using cubin::SassOp;
using cubin::SassOperation;
using Wide = unsigned __int128;

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
int32_t Signed(uint64_t value) { return static_cast<int32_t>(Low(value)); }

class Evaluator {
 public:
  Evaluator(const SassOperation& operation,
            const std::array<uint64_t, 3>& source,
            const std::array<bool, 3>& predicate)
      : o_(operation), source_(source), p_(predicate) {}

  IntegerResult Run() {
    result_.known = true;
    Switch();
    return result_;
  }

 private:
  // A source after its modifiers, where a sign takes no part in a carry.
  uint64_t Value(size_t at) const {
    uint64_t value = source_[at];
    if (o_.source[at].invert) value = ~value;
    if (o_.source[at].negate) value = o_.extended ? ~value : 0 - value;
    return o_.source[at].words == 2 ? value : Low(value);
  }
  // One addend of a sum with carries: the complement, whose 1 Ones() counts.
  Wide Addend(size_t at, uint64_t value, uint64_t mask) const {
    return (o_.source[at].negate ? ~value : value) & mask;
  }
  unsigned Ones(size_t at) const {
    return o_.source[at].negate && !o_.extended ? 1 : 0;
  }
  unsigned CarryIn(size_t at) const { return o_.extended && p_[at] ? 1 : 0; }

  void Sum(Wide total, int bits) {
    result_.value = static_cast<uint64_t>(total);
    if (bits == 32) result_.value = Low(result_.value);
    result_.first = total >> bits != 0;
    result_.second = total >> bits > 1;
  }

  bool Combined(bool value) const {
    switch (o_.combine) {
      case SassCombine::kAnd:
        return value && p_[0];
      case SassCombine::kOr:
        return value || p_[0];
      case SassCombine::kXor:
        return value != p_[0];
    }
    return false;
  }

  static uint64_t Table(uint8_t lut, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t result = 0;
    for (int i = 0; i < 8; ++i) {
      if ((lut >> i & 1) == 0) continue;
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
  }

  void Product(bool high) {
    const uint64_t a = o_.is_signed
                           ? static_cast<uint64_t>(int64_t{Signed(Value(0))})
                           : Low(Value(0));
    const uint64_t b = o_.is_signed
                           ? static_cast<uint64_t>(int64_t{Signed(Value(1))})
                           : Low(Value(1));
    Wide total = Wide{a * b} + Addend(2, source_[2], ~uint64_t{0}) + Ones(2) +
                 CarryIn(0);
    Sum(total, 64);
    if (high) result_.value >>= 32;
  }

  void ShiftAdd() {
    const Wide shifted =
        Addend(0, Low(source_[0] << o_.shift), 0xffffffff) + Ones(0);
    Sum(shifted + Addend(1, source_[1], 0xffffffff) + Ones(1) + CarryIn(0), 32);
  }

  void ShiftAddHigh() {
    const uint64_t high =
        o_.sign_fill ? (Signed(source_[0]) < 0 ? ~0u : 0) : Low(source_[2]);
    const uint64_t both = high << 32 | Low(source_[0]);
    Sum(Wide{Low(both >> (32 - o_.shift))} + Addend(1, source_[1], 0xffffffff) +
            Ones(1) + CarryIn(0),
        32);
  }

  void Funnel() {
    const uint64_t both = source_[2] << 32 | Low(source_[0]);
    const uint32_t limit = o_.shift_wide ? 64 : 32;
    const uint32_t wanted = Low(Value(1));
    const uint32_t by =
        o_.shift_wrap ? wanted % limit : std::min(wanted, limit);
    uint64_t shifted = 0;
    if (!o_.shift_right) {
      shifted = by >= 64 ? 0 : both << by;
    } else if (o_.is_signed) {
      shifted = static_cast<uint64_t>(static_cast<int64_t>(both) >>
                                      std::min<uint32_t>(by, 63));
    } else {
      shifted = by >= 64 ? 0 : both >> by;
    }
    result_.value = o_.shift_high ? shifted >> 32 : Low(shifted);
  }

  void Compare() {
    const int64_t a = o_.is_signed ? Signed(Value(0)) : int64_t{Low(Value(0))};
    const int64_t b = o_.is_signed ? Signed(Value(1)) : int64_t{Low(Value(1))};
    bool value = false;
    // Of equal high halves the low ones decide.
    const bool low = o_.extended && p_[1];
    switch (o_.compare) {
      case SassCompare::kFalse:
        break;
      case SassCompare::kLess:
        value = o_.extended ? a < b || (a == b && low) : a < b;
        break;
      case SassCompare::kLessEqual:
        value = o_.extended ? a < b || (a == b && low) : a <= b;
        break;
      case SassCompare::kGreater:
        value = o_.extended ? a > b || (a == b && low) : a > b;
        break;
      case SassCompare::kGreaterEqual:
        value = o_.extended ? a > b || (a == b && low) : a >= b;
        break;
      case SassCompare::kEqual:
        value = o_.extended ? a == b && low : a == b;
        break;
      case SassCompare::kNotEqual:
        value = a != b || low;
        break;
      case SassCompare::kTrue:
        value = true;
        break;
    }
    result_.first = Combined(value);
    result_.second = Combined(!value);
  }

  uint32_t Extreme(uint32_t a, uint32_t b) const {
    const bool less = o_.is_signed ? Signed(a) < Signed(b) : a < b;
    return p_[0] == less ? a : b;
  }

  void Permute() {
    const uint64_t bytes = Low(Value(0)) | Low(Value(2)) * (uint64_t{1} << 32);
    const uint32_t selector = Low(Value(1));
    // By mode and the low bits of the selector, the highest byte first.
    static constexpr uint16_t kModes[7][4] = {
        {},
        {0x3210, 0x4321, 0x5432, 0x6543},  // F4E
        {0x5670, 0x6701, 0x7012, 0x0123},  // B4E
        {0x0000, 0x1111, 0x2222, 0x3333},  // RC8
        {0x3210, 0x3211, 0x3222, 0x3333},  // ECL
        {0x0000, 0x1110, 0x2210, 0x3210},  // ECR
        {0x1010, 0x3232, 0x1010, 0x3232},  // RC16
    };
    const uint32_t places =
        o_.permute_mode == 0 ? selector : kModes[o_.permute_mode][selector & 3];
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t place = places >> (4 * i) & 0xf;
      uint32_t byte = bytes >> (8 * (place & 7)) & 0xff;
      if (place & 8) byte = byte & 0x80 ? 0xff : 0;
      value |= byte << (8 * i);
    }
    result_.value = value;
  }

  void SignExtend() {
    const uint32_t wanted = Low(Value(1));
    const uint32_t bits =
        o_.shift_wrap ? wanted & 31 : std::min<uint32_t>(wanted, 32);
    if (bits == 0) return;
    const uint32_t moved = Low(Value(0)) << (32 - bits);
    result_.value =
        o_.is_signed
            ? Low(static_cast<uint64_t>(int64_t{Signed(moved) >> (32 - bits)}))
            : moved >> (32 - bits);
  }

  void BitMask() {
    const uint32_t mask = o_.shift_wrap ? 31 : ~0u;
    const uint64_t begin = Low(Value(0)) & mask;
    const uint64_t end = begin + (Low(Value(1)) & mask);
    const auto below = [](uint64_t bit) {
      return bit >= 32 ? 0xffffffffu : (1u << bit) - 1;
    };
    result_.value = below(end) & ~below(begin);
  }

  void FindLeading() {
    uint32_t value = Low(Value(0));
    if (o_.is_signed && Signed(value) < 0) value = ~value;
    const uint32_t place = 31 - static_cast<uint32_t>(std::countl_zero(value));
    result_.value = value == 0 ? ~0u : o_.shift_count ? 31 - place : place;
  }

  void Reverse() {
    uint32_t value = 0;
    for (int i = 0; i < 32; ++i) value |= (source_[0] >> i & 1) << (31 - i);
    result_.value = value;
  }

  void Switch();

  const SassOperation& o_;
  const std::array<uint64_t, 3>& source_;
  const std::array<bool, 3>& p_;
  IntegerResult result_;
};

void Evaluator::Switch() {
  switch (o_.op) {
    case SassOp::kMove:
      result_.value = Value(0);
      return;
    case SassOp::kAdd: {
      const int bits = 32 * o_.destination_words;
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : 0xffffffff;
      Wide total = CarryIn(0) + CarryIn(1);
      for (size_t i = 0; i < 3; ++i) {
        total += Addend(i, source_[i], mask) + Ones(i);
      }
      return Sum(total, bits);
    }
    case SassOp::kMultiplyAdd:
      result_.value =
          Low(Low(Value(0)) * uint64_t{Low(Value(1))} + Value(2) + CarryIn(0));
      return;
    case SassOp::kMultiplyWide:
      return Product(false);
    case SassOp::kMultiplyHigh:
      return Product(true);
    case SassOp::kShiftAdd:
      return ShiftAdd();
    case SassOp::kShiftAddHigh:
      return ShiftAddHigh();
    case SassOp::kLogic3:
      result_.value = Low(Table(o_.lut, Value(0), Value(1), Value(2)));
      result_.first = Combined(result_.value != 0);
      return;
    case SassOp::kFunnelShift:
      return Funnel();
    case SassOp::kCompare:
      return Compare();
    case SassOp::kLogic3Predicate: {
      const auto all = [](bool p) { return p ? uint64_t{1} : 0; };
      result_.first = Table(o_.lut, all(p_[0]), all(p_[1]), all(p_[2])) & 1;
      result_.second = Table(o_.lut2, all(p_[0]), all(p_[1]), all(p_[2])) & 1;
      return;
    }
    case SassOp::kSelect:
      result_.value = p_[0] ? Value(0) : Value(1);
      return;
    case SassOp::kMinMax:
      result_.value = Extreme(Low(Value(0)), Low(Value(1)));
      return;
    case SassOp::kMinMax3:
      result_.value =
          Extreme(Extreme(Low(Value(0)), Low(Value(1))), Low(Value(2)));
      return;
    case SassOp::kAddMinMax:
      result_.value = Extreme(Low(Value(0) + Value(1)), Low(Value(2)));
      return;
    case SassOp::kPermute:
      return Permute();
    case SassOp::kAbsolute:
      result_.value = Signed(Value(0)) < 0 ? Low(0 - Value(0)) : Low(Value(0));
      return;
    case SassOp::kSignExtend:
      return SignExtend();
    case SassOp::kBitMask:
      return BitMask();
    case SassOp::kPopulation:
      result_.value = static_cast<uint64_t>(std::popcount(Low(Value(0))));
      return;
    case SassOp::kFindLeadingOne:
      return FindLeading();
    case SassOp::kReverseBits:
      return Reverse();
    default:
      result_.known = false;
  }
}

}  // namespace

IntegerResult Evaluate(const SassOperation& operation,
                       const std::array<uint64_t, 3>& source,
                       const std::array<bool, 3>& predicate) {
  return Evaluator(operation, source, predicate).Run();
}

}  // namespace heddle::sass_machine
