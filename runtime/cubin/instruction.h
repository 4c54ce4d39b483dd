// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_INSTRUCTION_H_
#define HEDDLE_RUNTIME_CUBIN_INSTRUCTION_H_

// The little that the patcher needs to know of the 128-bit instructions of
// sm_70 and later. Not documented by the vendor; checked against what nvdisasm
// prints for sm_90, sm_100 and sm_120.

#include <cstdint>

namespace heddle::cubin {

inline constexpr uint64_t kInstructionBytes = 16;

struct Instruction {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == kInstructionBytes);

// Bits 0 to 11: operation (9 bits) and form of its operands (3 bits).
inline constexpr uint32_t kOpcodeNop = 0x918;
inline constexpr uint32_t kOpcodeBra = 0x947;
inline constexpr uint32_t kOpcodeCallRel = 0x944;
inline constexpr uint32_t kOpcodeExit = 0x94d;
inline constexpr uint32_t kOpcodeAcqbulk = 0x82e;  // griddepcontrol.wait
inline constexpr uint32_t kOpcodePreexit = 0x82d;  // .launch_dependents

inline constexpr uint32_t Opcode(const Instruction& instruction) {
  return instruction.low & 0xfff;
}

// Branches, calls, returns, exits, convergence barriers (BSSY), LEPC, ...: the
// operations 0x140 to 0x15f, in all forms. They name code relative to their own
// address, or are named by their address.
inline constexpr bool IsControlFlow(const Instruction& instruction) {
  return (Opcode(instruction) & 0x1e0) == 0x140;
}

// A BRA or EXIT that is always taken: control never reaches what follows.
inline constexpr bool EndsControlFlow(const Instruction& instruction) {
  // Guard predicate: bits 12 to 14, negated by 15. Second predicate: bits 87 to
  // 89, negated by 90. 7 is "always".
  const bool always = ((instruction.low >> 12) & 0xf) == 7 &&
                      ((instruction.high >> 23) & 0xf) == 7;
  const uint32_t opcode = Opcode(instruction);
  return always && (opcode == kOpcodeBra || opcode == kOpcodeExit);
}

// BRA from the byte offset `from` to `to`, both multiples of 4 in one section.
// The displacement counts words of 4 bytes from the next instruction: its low 8
// bits are bits 16 to 23, its high 48 bits begin at bit 34. Scheduled like
// ptxas does it: 5 cycles, no barriers.
inline constexpr Instruction EncodeBranch(uint64_t from, uint64_t to) {
  const uint64_t words = (to - (from + kInstructionBytes)) >> 2;
  const uint64_t low8 = words & 0xff;
  // The subtraction wraps for branches back; the shift lost two sign bits, but
  // the field ends at bit 55 of 62.
  const uint64_t high48 = (words >> 8) & ((uint64_t{1} << 48) - 1);
  return Instruction{kOpcodeBra | uint64_t{7} << 12 | low8 << 16 | high48 << 34,
                     high48 >> 30 | uint64_t{0x000fea0003800000}};
}

// Where a BRA or CALL.REL at the byte offset `from` leads if it is taken; a
// target before the section wraps round to a huge one.
inline constexpr uint64_t BranchTarget(const Instruction& branch,
                                       uint64_t from) {
  const uint64_t high48 =
      (branch.low >> 34 | branch.high << 30) & ((uint64_t{1} << 48) - 1);
  uint64_t words = high48 << 8 | ((branch.low >> 16) & 0xff);
  if ((words >> 55) != 0) words |= uint64_t{0xff} << 56;
  return from + kInstructionBytes + (words << 2);
}

// Register operands that `instruction` leaves in the operand cache for the next
// one: a hint (bits 122 to 125) that holds only between neighbours.
inline constexpr Instruction WithoutReuse(Instruction instruction) {
  instruction.high &= ~(uint64_t{0xf} << 58);
  return instruction;
}

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_INSTRUCTION_H_
