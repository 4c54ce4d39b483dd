// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_SASS_H_
#define HEDDLE_RUNTIME_CUBIN_SASS_H_

// Decodes machine instructions of sm_80 to sm_90: 128 bits each, which hold an
// opcode (bits 0 to 11), a guard predicate (12 to 15), operands and modifiers,
// and scheduling controls (105 to 125).
//
// What counts here are exact sets of what an instruction reads and writes. An
// encoding that is not in the table (sass_table.cc), or whose modifiers say
// something that was not checked, is returned as unknown; users must then
// assume that it touches anything.
//
// The encoding is not documented by its vendor. Every layout was derived from
// what nvdisasm prints when single bits change, and is compared with it by
// benchmarks/suite/check_sass.py, text for operands and life ranges for
// registers.
//
// Thread-safe: no state.

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::cubin {

inline constexpr size_t kSassInstructionBytes = 16;

// The index that reads as zero and ignores writes.
inline constexpr uint8_t kSassRegisterZero = 255;        // RZ
inline constexpr uint8_t kSassUniformRegisterZero = 63;  // URZ
inline constexpr uint8_t kSassPredicateTrue = 7;         // PT, UPT

enum class SassClass : uint8_t {
  kUnknown,
  kControlFlow,
  kLoad,
  kStore,
  kAtomic,   // also reductions
  kBulk,     // TMA: tensor and bulk copies, reductions and prefetches
  kBarrier,  // barriers, fences, waits
  kInteger,
  kFloat,
  kTensor,
  kConversion,
  kMove,
  kPredicate,
  kUniform,          // arithmetic of the uniform datapath
  kSpecialRegister,  // reads of S2R and its like
  kNop,
  kDependentLaunch,  // ACQBULK, PREEXIT
  kOther,
};
absl::string_view SassClassName(SassClass value);

enum class SassOperandKind : uint8_t {
  kRegister,             // R: `index`, `count`
  kUniformRegister,      // UR: `index`, `count`
  kPredicate,            // P: `index`, `negated`
  kUniformPredicate,     // UP: `index`, `negated`
  kPredicateSet,         // R2P and P2R: predicates by mask in `value`
  kUniformPredicateSet,  // the same of uniform predicates
  kImmediate,            // `value`; floating-point ones as their bits
  kConstant,             // c[`bank`][`value`], `count` words from there
  kSpecialRegister,      // SR: number in `value`
  kConvergenceBarrier,   // B: `index`
  kTarget,               // code offset in `value`, bytes
};

enum class SassAccess : uint8_t { kRead, kWrite };

struct SassOperand {
  SassOperandKind kind = SassOperandKind::kImmediate;
  SassAccess access = SassAccess::kRead;
  // Part of an address (of memory, of a constant or a descriptor): the register
  // is read whatever the access to memory is.
  bool address = false;
  bool negated = false;  // predicates only: read as their opposite
  // First register, predicate or barrier.
  uint8_t index = 0;
  // Consecutive registers from `index`; 32-bit words of a constant.
  uint8_t count = 1;
  uint8_t bank = 0;
  // A constant by descriptor, cx[UR][offset]: the bank is in the uniform
  // registers of the operand before it.
  bool bindless = false;
  int64_t value = 0;
};

enum class SassSpace : uint8_t {
  kNone,
  kGlobal,
  kShared,
  kLocal,
  kGeneric,
  kConstant,
  kDistributedShared,  // shared memory of the cluster
};

enum class SassMemoryKind : uint8_t {
  kLoad,
  kStore,
  kReduction,  // read and written, nothing returned
  kAtomic,     // read and written, old value returned
  kPrefetch,   // caches only
};

inline constexpr uint8_t kSassNoOperand = 0xff;

// One access to memory. Fields that end in `_operand` are indices of
// `operands`, or kSassNoOperand.
struct SassMemory {
  SassSpace space = SassSpace::kNone;
  SassMemoryKind kind = SassMemoryKind::kLoad;
  // Per thread; 0 where a register (bulk copies) or a descriptor (tensor
  // copies, texture) decides.
  uint16_t bytes = 0;
  // The address is 64 bits wide, in two registers.
  bool wide = false;
  // Address = base + uniform + offset; base may be scaled (shared memory). For
  // bulk copies the registers behind a base in shared memory hold the barrier
  // and the coordinates, and the base of a tensor in global memory is the
  // address of its tensor map.
  uint8_t base_operand = kSassNoOperand;
  uint8_t base_scale = 1;
  uint8_t uniform_operand = kSassNoOperand;
  int64_t offset = 0;  // bytes
  // desc[UR]: memory descriptor or cache policy, no part of the address.
  uint8_t descriptor_operand = kSassNoOperand;
  // What is stored, or where the load goes to.
  uint8_t data_operand = kSassNoOperand;
};

enum class SassFlow : uint8_t {
  kNext,            // goes on with the next instruction
  kBranch,          // to `target`, unless predicates say no
  kIndirectBranch,  // to an address in registers or constants
  kCall,            // `target`, comes back
  kIndirectCall,
  kReturn,  // to an address in registers
  kExit,    // the thread ends, unless predicates say no
  kTrap,
  // Names `target` as the place to go on from together, and goes on here (BSSY,
  // WARPSYNC.COLLECTIVE) ...
  kMeetingPoint,
  // ... and the end of that: waits and goes on from the place named (BSYNC,
  // ENDCOLLECTIVE).
  kMeet,
};

// When an instruction may issue and what it holds up.
struct SassControl {
  uint8_t stall = 0;   // cycles before the next instruction
  bool yield = false;  // prefer another warp
  uint8_t write_barrier =
      7;  // scoreboard set until results are written; 7: none
  uint8_t read_barrier = 7;  // the same until operands are read
  uint8_t wait_mask = 0;     // scoreboards waited for
  uint8_t reuse = 0;         // operand cache hints, bit by source slot
};

inline constexpr size_t kSassMaxOperands = 16;

struct SassInstruction {
  uint16_t opcode = 0;  // 12 bits
  // Without modifiers: "LDG" of LDG.E.64. Static storage; "" if unknown.
  absl::string_view mnemonic;
  SassClass instruction_class = SassClass::kUnknown;

  // @P or @!P; kSassPredicateTrue and not negated: always. Guards of the
  // uniform datapath are uniform predicates.
  uint8_t guard = kSassPredicateTrue;
  bool guard_negated = false;
  bool guard_uniform = false;

  uint8_t operand_count = 0;
  std::array<SassOperand, kSassMaxOperands> operand;
  // Two for copies from memory to memory (source behind destination).
  uint8_t memory_count = 0;
  std::array<SassMemory, 2> memory;

  SassFlow flow = SassFlow::kNext;
  bool has_target = false;
  // Code offset in bytes, from where `offset` of DecodeSass counts. Also of
  // instructions that compute an address from it (LEPC).
  int64_t target = 0;
  // What it does depends on where it is: it holds a displacement. Such an
  // instruction cannot be moved as it is. Besides those with a target these are
  // the indirect branches BRX and BRXU, which go to register + immediate + the
  // address of the next instruction.
  bool relative = false;

  SassControl control;

  bool known() const { return instruction_class != SassClass::kUnknown; }
  // In the order in which nvdisasm prints them.
  absl::Span<const SassOperand> operands() const {
    return absl::MakeConstSpan(operand.data(), operand_count);
  }
  absl::Span<const SassMemory> accesses() const {
    return absl::MakeConstSpan(memory.data(), memory_count);
  }
};

// Whether instructions of this compute capability x 10 can be decoded.
bool SassSupports(uint32_t arch);

// Decodes the instruction of compute capability `arch` (x 10) at `offset` bytes
// into its function. `words` are its 16 bytes, little endian, low half first.
// For an `arch` that is not supported everything is unknown.
SassInstruction DecodeSass(uint64_t low, uint64_t high, uint64_t offset,
                           uint32_t arch);

// The same from 16 bytes of a text section. Unknown unless [offset, offset+16)
// lies in `text`.
SassInstruction DecodeSass(absl::Span<const uint8_t> text, uint64_t offset,
                           uint32_t arch);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_SASS_H_
