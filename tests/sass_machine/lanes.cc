// SPDX-License-Identifier: Apache-2.0
// What passes between the lanes of a warp.

#include <bit>

#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {

using cubin::SassOperandKind;

// SHFL: Pu, Rd, Ra, lane, bounds; the mode at bit 58, as PTX defines it.
absl::Status Warp::Shuffle(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  std::array<uint32_t, 32> values{};
  std::array<bool, 32> inside{};
  absl::Status status = ForEach(lanes, [&](int lane) -> absl::Status {
    const absl::StatusOr<uint64_t> by = Operand(lane, operands[3], 1);
    const absl::StatusOr<uint64_t> bounds = Operand(lane, operands[4], 1);
    if (!by.ok()) return by.status();
    if (!bounds.ok()) return bounds.status();
    const int b = static_cast<int>(*by & 31);
    const int clamp = static_cast<int>(*bounds & 31);
    const int segment = static_cast<int>(*bounds >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment);
    const int first = lane & segment;
    int from = lane;
    bool good = false;
    switch (code.Bits(58, 2)) {
      case 0:
        from = first | (b & ~segment);
        good = from <= last;
        break;
      case 1:
        from = lane - b;
        good = from >= last;
        break;
      case 2:
        from = lane + b;
        good = from <= last;
        break;
      default:
        from = lane ^ b;
        good = from <= last;
        break;
    }
    if (!good) from = lane;
    values[static_cast<size_t>(lane)] = Register(from, operands[2].index);
    inside[static_cast<size_t>(lane)] = good;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return ForEach(lanes, [&](int lane) {
    SetRegister(lane, operands[1].index, values[static_cast<size_t>(lane)]);
    SetPredicate(lane, operands[0], inside[static_cast<size_t>(lane)]);
    return absl::OkStatus();
  });
}

// VOTE: Rd, Pu, Pp. Rd is which lanes say yes.
absl::Status Warp::Vote(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  const bool uniform = operands[0].kind == SassOperandKind::kUniformRegister;
  uint32_t yes = 0;
  absl::Status status = ForEach(lanes, [&](int lane) {
    if (Predicate(lane, operands[2])) yes |= 1u << lane;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  bool result = false;
  switch (code.Bits(72, 2)) {
    case 0:
      result = yes == lanes;
      break;
    case 1:
      result = yes != 0;
      break;
    case 2:
      result = yes == 0 || yes == lanes;
      break;
    default:
      return Unknown(code);
  }
  return ForEach(lanes, [&](int lane) {
    SetWords(lane, uniform, operands[0].index, 1, yes);
    SetPredicate(lane, operands[1], result);
    return absl::OkStatus();
  });
}

// MATCH.ANY: Rd, Ra; MATCH.ALL: Pu, Rd, Ra.
absl::Status Warp::Match(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  const size_t first = operands[0].kind == SassOperandKind::kPredicate ? 1 : 0;
  const int words = operands[first + 1].count;
  std::array<uint64_t, 32> values{};
  absl::Status status = ForEach(lanes, [&](int lane) -> absl::Status {
    const absl::StatusOr<uint64_t> value =
        Operand(lane, operands[first + 1], words);
    if (!value.ok()) return value.status();
    values[static_cast<size_t>(lane)] = *value;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return ForEach(lanes, [&](int lane) {
    uint32_t same = 0;
    for (size_t other = 0; other < 32; ++other) {
      if ((lanes >> other & 1) != 0 &&
          values[other] == values[static_cast<size_t>(lane)]) {
        same |= 1u << other;
      }
    }
    if (first == 1) {
      SetPredicate(lane, operands[0], same == lanes);
      if (same != lanes) same = 0;
    }
    SetRegister(lane, operands[first].index, same);
    return absl::OkStatus();
  });
}

// REDUX: URd, Ra; the operation at bit 78, bit 73 for signed.
absl::Status Warp::Reduce(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  const uint64_t operation = code.Bits(78, 3);
  if (operation > 5 || lanes == 0) return Unknown(code);
  const bool is_signed = code.Bit(73);
  uint32_t result = Register(std::countr_zero(lanes), operands[1].index);
  absl::Status status = ForEach(lanes & (lanes - 1), [&](int lane) {
    const uint32_t value = Register(lane, operands[1].index);
    const bool less =
        is_signed ? static_cast<int32_t>(value) < static_cast<int32_t>(result)
                  : value < result;
    switch (operation) {
      case 0:
        result &= value;
        break;
      case 1:
        result |= value;
        break;
      case 2:
        result ^= value;
        break;
      case 3:
        result += value;
        break;
      case 4:
        if (less) result = value;
        break;
      default:
        if (!less) result = value;
        break;
    }
    return absl::OkStatus();
  });
  SetWords(0, true, operands[0].index, 1, result);
  return status;
}

}  // namespace heddle::sass_machine
