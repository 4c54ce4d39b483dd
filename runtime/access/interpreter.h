// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_INTERPRETER_H_
#define HEDDLE_RUNTIME_ACCESS_INTERPRETER_H_

// What one instruction does to a State: abstract interpretation of machine
// code with the values of one launch.

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/access/state.h"
#include "runtime/cubin/sass.h"
#include "runtime/cubin/sass_semantics.h"

namespace heddle::access {

// A launch as the analysis sees it. Pointers are unknown numbers, so that the
// result holds for every launch that differs in them alone.
struct LaunchValues {
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t param_base = 0;           // in constant bank 0
  absl::Span<const uint8_t> params;  // the parameter block
  // Offsets (multiples of 8) of 64-bit values in `params` that are pointers;
  // of their values only the lowest 8 bits count.
  std::vector<uint32_t> pointers;
};

struct CodeInstruction {
  cubin::SassInstruction decoded;
  cubin::SassOperation operation;
};

class Interpreter {
 public:
  Interpreter(const LaunchValues& launch,
              absl::Span<const CodeInstruction> code, Domain* domain);

  State Entry();

  // The effect of instruction `index`, if it is no branch; its guard counts.
  // `place` is a number of its own for wherever it is executed.
  void Step(uint32_t index, uint32_t place, State* state);

  // The state in which the guard of `index` lets it through, or not.
  State When(uint32_t index, bool taken, const State& state) const;
  // The same of an exit or branch, which may have a second predicate.
  State WhenTaken(uint32_t index, bool taken, const State& state) const;

  // The 64-bit address of an access, as an integer. `state` is that of
  // When(index, true), and gets symbols that are needed.
  FormId AddressOf(uint32_t index, uint32_t place,
                   const cubin::SassMemory& memory, State* state);

 private:
  using Source = cubin::SassSource;
  struct Where {
    uint32_t place = 0;
    uint32_t next = 0;  // number of the next symbol made there
    State* state = nullptr;
  };

  Value Read(const Source& source, int word, Where* where);
  Value ReadConstant(uint8_t bank, int64_t offset, Where* where);
  Value Raw(const Source& source, int word, Where* where);
  Truth TruthOf(const cubin::SassPredicateUse& use, const State& state) const;
  Truth TruthOf(uint8_t index, bool uniform, bool negated,
                const State& state) const;

  // A form that is equal to the value modulo 2^32.
  FormId Low(const Value& value, Where* where);
  // The value as a signed or unsigned 32-bit integer.
  FormId Integer(const Value& value, bool is_signed, Where* where);
  FormId IntegerOf(FormId low, bool is_signed, Where* where);
  // A form that is equal to high * 2^32 + low modulo 2^64.
  FormId Compose(const Value& low, const Value& high, Where* where);
  bool Linked(const Value& low, const Value& high, Form* whole) const;
  // The 64-bit integer, or false if `form` may wrap.
  bool Exact64(FormId form, bool is_signed, const State& state) const;
  FormId FloorShift(FormId form, int bits, Where* where);
  FormId LowBits(FormId form, int bits, Where* where);
  Value Unknown(const Range& range, Origins origins, bool varies, Where* where);
  Value Unknown(Origins origins, Where* where) {
    return Unknown(kSigned32, origins, true, where);
  }

  struct Results {
    std::array<Value, 2> value;
    int values = 0;
    std::array<Truth, 2> truth;
    // R2P: which predicates get which truth; 0: all of a set get an open one.
    uint8_t restores = 0;
    std::array<Truth, kPredicates> restored = {};
  };
  Results Compute(const cubin::SassOperation& op, Where* where);
  Results ComputeAdd(const cubin::SassOperation& op, Where* where);
  Results ComputeWideAdd(const cubin::SassOperation& op, Where* where);
  Results ComputeExtendedAdd(const cubin::SassOperation& op, Where* where);
  // The sum of high halves and of the carries out of the low ones.
  Value ExtendedSum(const std::array<Value, 3>& high,
                    const std::array<bool, 3>& inverted,
                    absl::Span<const cubin::SassPredicateUse> carries,
                    Where* where);
  Results ComputeMultiply(const cubin::SassOperation& op, Where* where);
  Results ComputeShiftAdd(const cubin::SassOperation& op, Where* where);
  Results ComputeLogic(const cubin::SassOperation& op, Where* where);
  Results ComputeShift(const cubin::SassOperation& op, Where* where);
  Results ComputeCompare(const cubin::SassOperation& op, Where* where);
  Results ComputeLogicPredicate(const cubin::SassOperation& op, Where* where);
  Results ComputePredicateSet(const cubin::SassOperation& op, Where* where);
  // nullptr if nothing is known of the number.
  const Truth* TruthOfNumber(FormId form, const State& state) const;
  // 1 where `truth` is, else 0.
  Value NumberOf(const Truth& truth, Where* where);
  Results ComputeSelect(const cubin::SassOperation& op, Where* where);
  Results ComputeSmall(const cubin::SassOperation& op, Where* where);
  Results ComputeSpecial(const cubin::SassOperation& op, Where* where);
  Results ComputeConstant(const cubin::SassOperation& op, Where* where);
  Value LogicOf(Value a, Value b, Value c, uint8_t lut, Where* where);
  Value AndConstant(const Value& a, uint32_t mask, Where* where);
  Value OrOf(const Value& a, const Value& b, bool exclusive, Where* where);
  FormId Multiply(FormId a, FormId b, Where* where);
  Value AddWords(absl::Span<const Value> values, absl::Span<const bool> negated,
                 Where* where);
  Origins OriginsOf(const cubin::SassOperation& op, Where* where);
  void Opaque(const CodeInstruction& instruction, Where* where);
  // Registers take what they hold where the guard of `code` is `taken`.
  void UseGuarded(const cubin::SassInstruction& code, bool taken,
                  const Truth& guard, State* state) const;
  // What is known by guards once `code` has run.
  void UpdateGuarded(const cubin::SassInstruction& code, const Truth& guard,
                     const State& then, State* state) const;
  void Apply(const CodeInstruction& instruction, Where* where);

  const LaunchValues& launch_;
  absl::Span<const CodeInstruction> code_;
  Domain& domain_;
  Universe& universe_;
  std::array<SymbolId, 3> thread_{};
  std::array<SymbolId, 3> block_{};
  std::vector<SymbolId> pointers_;
  SymbolId parameters_ = 0;
  bool warp_is_row_ = false;
};

// The index in State::values of a register.
inline int SlotOf(bool uniform, int index) {
  return uniform ? kRegisters + index : index;
}
inline bool IsZeroSlot(int slot) {
  return slot == cubin::kSassRegisterZero ||
         slot == kRegisters + cubin::kSassUniformRegisterZero;
}

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_INTERPRETER_H_
