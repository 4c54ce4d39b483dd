// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_SASS_SLOTS_H_
#define HEDDLE_RUNTIME_CUBIN_SASS_SLOTS_H_

// The vocabulary of the decoder's table: operand slots by their usual names.

#include "runtime/cubin/sass_table.h"

namespace heddle::cubin::sass {

constexpr Slot Register(uint8_t bit, bool write = false) {
  return {.kind = SlotKind::kRegister, .bit = bit, .write = write};
}
constexpr Slot Uniform(uint8_t bit, bool write = false) {
  return {.kind = SlotKind::kUniform, .bit = bit, .write = write};
}
constexpr Slot Predicate(uint8_t bit, bool write = false) {
  return {.kind = SlotKind::kPredicate, .bit = bit, .write = write};
}
constexpr Slot UniformPredicate(uint8_t bit, bool write = false) {
  return {.kind = SlotKind::kUniformPredicate, .bit = bit, .write = write};
}
constexpr Slot Immediate(uint8_t bit, uint8_t size) {
  return {.kind = SlotKind::kImmediate, .bit = bit, .size = size};
}
constexpr Slot Signed(uint8_t bit, uint8_t size) {
  return {.kind = SlotKind::kSigned, .bit = bit, .size = size};
}
constexpr Slot Plain(SlotKind kind) { return {.kind = kind}; }

// General registers: destination, sources.
constexpr Slot kRd = Register(16, true);
constexpr Slot kRa = Register(24);
constexpr Slot kRb = Register(32);
constexpr Slot kRc = Register(64);
constexpr Slot kB = Plain(SlotKind::kSourceB);
constexpr Slot kC = Plain(SlotKind::kSourceC);
constexpr Slot kV = Plain(SlotKind::kField);
// Predicates: two destinations, three sources.
constexpr Slot kPu = Predicate(81, true);
constexpr Slot kPv = Predicate(84, true);
constexpr Slot kPp = Predicate(87);
constexpr Slot kPq = Predicate(77);
constexpr Slot kPr = Predicate(68);
// The same of the uniform datapath.
constexpr Slot kUd = Uniform(16, true);
constexpr Slot kUa = Uniform(24);
constexpr Slot kUb = Uniform(32);
constexpr Slot kUc = Uniform(64);
constexpr Slot kUpu = UniformPredicate(81, true);
constexpr Slot kUpv = UniformPredicate(84, true);
constexpr Slot kUpp = UniformPredicate(87);
constexpr Slot kUpq = UniformPredicate(77);
constexpr Slot kUpr = UniformPredicate(68);
// Of matrix products: whether to add to the accumulators.
constexpr Slot kMatrixPredicate = {.kind = SlotKind::kInvertedUniformPredicate,
                                   .bit = 87};
// Immediates.
constexpr Slot kImm32 = Immediate(32, 32);
constexpr Slot kTarget = Plain(SlotKind::kTarget);
constexpr Slot Convergence(uint8_t bit, uint8_t size, bool write = false) {
  return {
      .kind = SlotKind::kConvergence, .bit = bit, .size = size, .write = write};
}
// Predicates by the mask in the immediate; by a mask in a register.
constexpr Slot PredicateSet(SlotKind kind, bool write) {
  return {.kind = kind, .bit = 32, .size = 32, .write = write};
}
constexpr Slot AnyPredicate(bool write) {
  return {.kind = SlotKind::kPredicateSet, .write = write};
}
constexpr Slot kSpecial = {.kind = SlotKind::kSpecial, .bit = 72, .size = 8};

// Forms of arithmetic instructions, as bits of Row::forms.
constexpr uint8_t kFormsAll = 0xfe;
// One source beside Ra that is not a register: in place of B, or of C.
constexpr uint8_t kFormsB = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6;
constexpr uint8_t kFormsC = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7;
// Uniform datapath: registers and immediates.
constexpr uint8_t kFormsUniform = 1 << 1 | 1 << 4;
constexpr uint8_t kFormsUniform3 = 1 << 1 | 1 << 2 | 1 << 4;

// Columns of a row; see Row.
constexpr Row Arith(uint16_t opcode, uint8_t forms, const char* mnemonic,
                    SassClass instruction_class, std::array<Slot, 13> slots) {
  return {.mnemonic = mnemonic,
          .opcode = opcode,
          .forms = forms,
          .instruction_class = instruction_class,
          .slots = slots};
}
constexpr Row UniformArith(uint16_t opcode, uint8_t forms, const char* mnemonic,
                           std::array<Slot, 13> slots) {
  return {.mnemonic = mnemonic,
          .opcode = opcode,
          .forms = forms,
          .uniform = true,
          .instruction_class = SassClass::kUniform,
          .slots = slots};
}
constexpr Row Exact(uint16_t opcode, const char* mnemonic,
                    SassClass instruction_class,
                    std::array<Slot, 13> slots = {}) {
  return {.mnemonic = mnemonic,
          .opcode = opcode,
          .instruction_class = instruction_class,
          .slots = slots};
}
constexpr Row UniformExact(uint16_t opcode, const char* mnemonic,
                           SassClass instruction_class,
                           std::array<Slot, 13> slots = {}) {
  return {.mnemonic = mnemonic,
          .opcode = opcode,
          .uniform = true,
          .instruction_class = instruction_class,
          .slots = slots};
}

// An access whose size is not in the instruction.
constexpr MemoryRow Unsized(SassSpace space, SassMemoryKind kind) {
  return {.space = space, .kind = kind, .sized = false};
}

}  // namespace heddle::cubin::sass

#endif  // HEDDLE_RUNTIME_CUBIN_SASS_SLOTS_H_
