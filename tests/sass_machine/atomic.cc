// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions.

#include <algorithm>
#include <cstring>

#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {
namespace {

using cubin::SassOperand;
using cubin::SassOperandKind;

enum class Type : uint8_t { kUnknown, kU32, kS32, kU64, kS64, kF32, kF64 };

// Codes of bits 73 to 75: with one list for all types before sm_90, and one
// for integers and one for floats after.
Type TypeOf(const Code& code, bool mixed) {
  const uint64_t number = code.Bits(73, 3);
  constexpr Type kMixed[] = {Type::kU32, Type::kS32,     Type::kU64,
                             Type::kF32, Type::kUnknown, Type::kS64,
                             Type::kF64, Type::kUnknown};
  if (mixed) return kMixed[number];
  return number < 4 ? static_cast<Type>(number + 1) : Type::kUnknown;
}
Type FloatTypeOf(const Code& code) {
  switch (code.Bits(73, 4)) {
    case 9:
    case 12:
      return Type::kF32;
    case 15:
      return Type::kF64;
    default:
      return Type::kUnknown;
  }
}

template <typename T>
T As(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

constexpr uint64_t kExchange = 8;

// The new value, or false if the operation is not known.
template <typename T>
bool Combine(uint64_t operation, uint64_t old_bits, uint64_t bits,
             uint64_t* result) {
  const T before = As<T>(old_bits);
  const T value = As<T>(bits);
  switch (operation) {
    case 0:
      if constexpr (std::is_floating_point_v<T>) {
        *result = BitsOf<T>(before + value);
      } else {
        *result = BitsOf<T>(static_cast<T>(old_bits + bits));
      }
      return true;
    case 1:
      *result = BitsOf<T>(std::min(before, value));
      return true;
    case 2:
      *result = BitsOf<T>(std::max(before, value));
      return true;
    case kExchange:
      *result = bits;
      return true;
    default:
      break;
  }
  if (std::is_floating_point_v<T>) return false;
  switch (operation) {
    case 3:
      *result = before >= value ? 0 : BitsOf<T>(static_cast<T>(old_bits + 1));
      return true;
    case 4:
      *result = old_bits == 0 || before > value
                    ? bits
                    : BitsOf<T>(static_cast<T>(old_bits - 1));
      return true;
    case 5:
      *result = old_bits & bits;
      return true;
    case 6:
      *result = old_bits | bits;
      return true;
    case 7:
      *result = old_bits ^ bits;
      return true;
    default:
      return false;
  }
}

bool CombineOf(Type type, uint64_t operation, uint64_t before, uint64_t value,
               uint64_t* result) {
  switch (type) {
    case Type::kU32:
      return Combine<uint32_t>(operation, before, value, result);
    case Type::kS32:
      return Combine<int32_t>(operation, before, value, result);
    case Type::kU64:
      return Combine<uint64_t>(operation, before, value, result);
    case Type::kS64:
      return Combine<int64_t>(operation, before, value, result);
    case Type::kF32:
      return Combine<float>(operation, before, value, result);
    case Type::kF64:
      return Combine<double>(operation, before, value, result);
    case Type::kUnknown:
      break;
  }
  return false;
}

}  // namespace

absl::Status Warp::Atomic(const Code& code, uint32_t lanes) {
  const cubin::SassMemory& memory = code.decoded.memory[0];
  const int low = code.decoded.opcode & 0x1ff;
  const bool shared = memory.space == cubin::SassSpace::kShared;
  const bool compares = low == 0x1a9 || low == 0x18b || low == 0x18d;
  // ATOMS.CAST: the result is whether it was as expected.
  const bool tests = low == 0x18d && code.Bit(87);
  const bool is_float = low == 0x1a2 || low == 0x1a3 || low == 0x1a6;
  const bool reduces = memory.kind == cubin::SassMemoryKind::kReduction;
  const bool mixed = !compares && !is_float && !shared && block_->arch < 90;
  const Type type = is_float ? FloatTypeOf(code) : TypeOf(code, mixed);
  if (type == Type::kUnknown ||
      (compares && low != 0x18d && code.Bits(87, 3) != 0)) {
    return Unknown(code);
  }
  const uint64_t operation = code.Bits(87, reduces ? 3 : 4);
  const int words = memory.bytes == 8 ? 2 : 1;
  const SassOperand* result = nullptr;
  for (const SassOperand& operand : code.decoded.operands()) {
    if (operand.access != cubin::SassAccess::kWrite) continue;
    if (operand.kind == SassOperandKind::kRegister) result = &operand;
    if (operand.kind == SassOperandKind::kPredicate &&
        operand.index != cubin::kSassPredicateTrue) {
      return Unknown(code);
    }
  }
  if (tests && result == nullptr) return Unknown(code);
  const SassOperand& data = code.decoded.operand[memory.data_operand];
  return ForEach(lanes, [&](int lane) -> absl::Status {
    const absl::StatusOr<uint8_t*> at =
        Locate(code, lane, 0, AccessMode::kAtomic);
    if (!at.ok()) return at.status();
    uint64_t before = 0;
    std::memcpy(&before, *at, memory.bytes);
    const absl::StatusOr<uint64_t> value = Operand(lane, data, words);
    if (!value.ok()) return value.status();
    uint64_t after = *value;
    if (compares) {
      const absl::StatusOr<uint64_t> expected =
          Operand(lane, code.decoded.operand[memory.data_operand - 1u], words);
      if (!expected.ok()) return expected.status();
      if (tests) {
        SetWords(lane, false, result->index, words,
                 before == *expected ? 1 : 0);
      }
      if (before != *expected) after = before;
    } else if (!CombineOf(type, operation, before, *value, &after)) {
      return Unknown(code);
    }
    std::memcpy(*at, &after, memory.bytes);
    if (result != nullptr && !tests) {
      SetWords(lane, false, result->index, words, before);
    }
    return absl::OkStatus();
  });
}

}  // namespace heddle::sass_machine
