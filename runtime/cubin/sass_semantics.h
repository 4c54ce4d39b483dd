// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_SASS_SEMANTICS_H_
#define HEDDLE_RUNTIME_CUBIN_SASS_SEMANTICS_H_

// What an instruction computes, for those that addresses and control flow are
// made of: integers, logic, predicates, moves. DecodeSass says which registers
// an instruction reads and writes; this says which of them is which operand and
// what the modifiers do to it. The table of rows: sass_arithmetic.cc.
//
// The encoding is not documented by its vendor: modifiers were derived from
// what nvdisasm prints when single bits change. An instruction with a modifier
// that was not checked is kOpaque: its results may be anything.
//
// Thread-safe: no state.

#include <array>
#include <cstdint>

#include "runtime/cubin/sass.h"

namespace heddle::cubin {

// `a`, `b`, `c` are source[0..2] after their own modifiers; p0.. are
// source_predicate[0..]; d is the destination, q0, q1 the destination
// predicates. Arithmetic is modulo 2^32 (2^64 where the destination has two
// words).
enum class SassOp : uint8_t {
  kOpaque,  // not modelled: destinations may hold anything
  // d = a (MOV, UMOV, R2UR, IMAD.MOV; CS2R of zero; HFMA2 of a constant; two
  // words copy both). R2UR takes it from some thread of the warp.
  kMove,
  // d = a + b + c; if `extended`, + p0 + p1. q0, q1: the carries out. A negated
  // source (a two's complement) is ~x + 1, and the 1 takes part in the carry;
  // if `extended`, a negated source is ~x alone.
  kAdd,           // IADD3, UIADD3, VIADD, IADD
  kMultiplyAdd,   // d = low half of a * b + c (IMAD, UIMAD); `extended`: + p0
  kMultiplyWide,  // d (two words) = a * b + c (64 bits), `is_signed`; q0: carry
  // d = high half of (a * b + c (64 bits)), `is_signed`; q0: carry of that sum
  kMultiplyHigh,
  // d = (a << shift) + b; q0: carry of that sum. A negated source is so as in
  // kAdd, `a` after it was shifted.
  kShiftAdd,  // LEA, ULEA
  // d = ((c:a) >> (32 - shift)) + b, c the high word above a; `sign_fill`:
  // (LEA.HI.SX32) c is the sign of a. `extended`: + p0, b negated as in kAdd;
  // `a` never is.
  kShiftAddHigh,  // LEA.HI, ULEA.HI
  kLogic3,        // d = lut(a, b, c) bit by bit; q0 = p0 combined with (d != 0)
  // The 64 bits c:a shifted by b (SHF, USHF), d is one half of the result. See
  // the `shift_` fields.
  kFunnelShift,
  // q0 = (a compare b) combine p0; q1 = !(a compare b) combine p0. `extended`
  // (.EX): the high halves of a comparison, p1 being what the low halves said.
  kCompare,          // ISETP, UISETP
  kLogic3Predicate,  // q0 = lut(p0, p1, p2), q1 = lut2(p0, p1, p2) (PLOP3)
  kSelect,           // d = p0 ? a : b (SEL, USEL)
  kMinMax,           // d = p0 ? min(a, b) : max(a, b), `is_signed`
  kPermute,          // d = bytes of c:a as PRMT selects them: selector b, bytes
                     // 0-3 of a and 4-7 of c; `permute_mode`
  kAbsolute,         // d = |a| (IABS)
  kSignExtend,  // d = the low b bits of a extended (SGXT), `is_signed`; 0 of
                // none; b is taken modulo 32 if `shift_wrap`, else up to 32
  kBitMask,     // d = b ones from bit a up (BMSK), both modulo 32 if
                // `shift_wrap`; ones beyond bit 31 are lost
  kPopulation,  // d = ones in a (POPC)
  // d = the number of the highest bit of a that is one (`is_signed`: that
  // differs from the sign), ~0 if there is none; `shift_count`: 31 minus that
  // number (FLO, UFLO).
  kFindLeadingOne,
  kReverseBits,  // BREV
  // d = a with the bits of the mask b << `shift` replaced by the predicates of
  // those numbers (P2R, UP2UR; b is an immediate, 0x7f at most) ...
  kPredicatesToRegister,
  // ... and predicates from those bits of a (R2P, UR2UP).
  kRegisterToPredicates,
  kReadSpecial,   // d = special register `special` (S2R, S2UR, CS2R)
  kReadConstant,  // d = c[bank][a + offset] (LDC, ULDC); see constant_*
  kMinMax3,       // d = p0 ? min(a, b, c) : max(a, b, c) (VIMNMX3), `is_signed`
  kAddMinMax,     // d = p0 ? min(a + b, c) : max(a + b, c) (VIADDMNMX)
};

enum class SassCompare : uint8_t {
  kFalse,
  kLess,
  kEqual,
  kLessEqual,
  kGreater,
  kNotEqual,
  kGreaterEqual,
  kTrue,
};
enum class SassCombine : uint8_t { kAnd, kOr, kXor };

struct SassSource {
  enum class Kind : uint8_t {
    kZero,
    kRegister,
    kUniform,
    kImmediate,
    kConstant
  };
  Kind kind = Kind::kZero;  // RZ, URZ and absent operands are kZero
  uint8_t index = 0;        // first register
  uint8_t words = 1;        // 2: 64 bits, register pair or two constant words
  uint8_t bank = 0;         // kConstant
  bool negate = false;
  bool invert = false;    // bitwise
  bool absolute = false;  // before `negate`
  // kImmediate: 32 bits, zero-extended, or sign-extended where the operation is
  // on 64 bits; never two words. kConstant: byte offset.
  int64_t value = 0;
};

struct SassPredicateUse {
  uint8_t index = kSassPredicateTrue;
  bool negated = false;
  bool uniform = false;
  bool always() const { return index == kSassPredicateTrue && !negated; }
};

// Numbers of special registers that matter to addresses.
enum class SassSpecial : uint8_t {
  kOther,
  kLane,
  kTidX,
  kTidY,
  kTidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kPackedTid,  // SR_TID: x in bits 0-15, y 16-25, z 26-31
  kZero,       // SRZ
};

struct SassOperation {
  SassOp op = SassOp::kOpaque;
  bool uniform = false;                     // d is in the uniform registers
  uint8_t destination = kSassRegisterZero;  // RZ or URZ: none
  uint8_t destination_words = 1;
  std::array<SassPredicateUse, 2> destination_predicate;  // never negated
  std::array<SassSource, 3> source;
  std::array<SassPredicateUse, 3> source_predicate;
  bool is_signed = false;
  bool extended = false;
  bool sign_fill = false;
  // kShiftAdd, kShiftAddHigh; kPredicatesToRegister, kRegisterToPredicates: 0,
  // 8, 16 or 24.
  uint8_t shift = 0;
  SassCompare compare = SassCompare::kFalse;
  SassCombine combine = SassCombine::kAnd;
  uint8_t lut = 0;
  uint8_t lut2 = 0;
  // kFunnelShift: `shift_right`, `shift_high` (d is the high word of the
  // result), `is_signed` (copies of the highest bit come in from the left),
  // `shift_wrap` (the amount is taken modulo 32, or 64 if `shift_wide`; else
  // larger amounts count as 32, or 64). The operand is c:a in any case.
  bool shift_right = false;
  bool shift_high = false;
  bool shift_wide = false;
  bool shift_wrap = false;
  bool shift_count = false;  // kFindLeadingOne: .SH
  // kPermute: 0 is the plain one: 4 bits of b for each byte of d, number of a
  // byte, or its sign in all bits if the highest of the 4 is set.
  uint8_t permute_mode = 0;
  SassSpecial special = SassSpecial::kOther;
  // kReadConstant: address = source[0] + constant_offset in constant_bank;
  // destination_words 1, 2 (or 4), constant_bytes 1, 2, 4, 8 (or 16); less than
  // 4 are extended, `is_signed`.
  uint8_t constant_bank = 0;
  uint8_t constant_bytes = 4;
  int32_t constant_offset = 0;
};

// What the instruction that DecodeSass(low, high, offset, arch) returned as
// `decoded` computes. Its guard is not looked at here: under a guard that says
// no, nothing is written. Destinations that are not in the result but are in
// the operands of `decoded` (always so for kOpaque) may hold anything.
SassOperation InterpretSass(uint64_t low, uint64_t high,
                            const SassInstruction& decoded);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_SASS_SEMANTICS_H_
