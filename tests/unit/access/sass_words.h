// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_SASS_WORDS_H_
#define HEDDLE_TESTS_UNIT_ACCESS_SASS_WORDS_H_

// Instructions by hand: enough of an assembler for kernels that no compiler
// writes. Where they are in the code does not matter, except to branches.
// sass_words_test.cc compares them with the disassembler.

#include <cstdint>

namespace heddle::access {

struct Word128 {
  uint64_t low = 0;
  uint64_t high = 0;
};

enum class Relation : uint8_t {
  kLess = 1,
  kEqual,
  kLessEqual,
  kGreater,
  kNotEqual,
  kGreaterEqual,
};

// Tables of LOP3 for two operands.
inline constexpr uint64_t kAnd = 0xc0;
inline constexpr uint64_t kOr = 0xfc;
inline constexpr uint64_t kXor = 0x3c;

// A predicate or its opposite; the default is always true.
struct Condition {
  int predicate = 7;
  bool negated = false;
  constexpr uint64_t bits() const {
    return static_cast<uint64_t>(predicate) | (negated ? 8u : 0u);
  }
};

namespace words {

inline constexpr uint64_t kControls = 0x000fe20000000000;

constexpr uint64_t Field(int64_t value, int bit) {
  return static_cast<uint64_t>(value) << (bit % 64);
}
// The three operands in the low half.
constexpr uint64_t Low(uint64_t opcode, int rd, int ra, uint32_t third) {
  return opcode | 0x7000 | Field(rd, 16) | Field(ra, 24) | Field(third, 32);
}

}  // namespace words

// `word` where `guard` is true.
constexpr Word128 On(Condition guard, Word128 word) {
  word.low = (word.low & ~uint64_t{0xf000}) | guard.bits() << 12;
  return word;
}

constexpr Word128 NoOperation() {
  return {0x0000000000007918, 0x000fc00000000000};
}
constexpr Word128 Exit() { return {0x000000000000794d, 0x000fea0003800000}; }

// R`to` = c[0][`offset`].
constexpr Word128 MoveConstant(int to, uint32_t offset) {
  return {words::Low(0xa02, to, 0, 0) | words::Field(offset / 4, 40),
          0x000fc40000000f00};
}
constexpr Word128 MoveNumber(int to, uint32_t number) {
  return {words::Low(0x802, to, 0, number), words::kControls | 0xf00};
}
// The special register of this number: 0x21 threadIdx.x, 0x25 blockIdx.x.
constexpr Word128 Special(int to, int which) {
  return {words::Low(0x919, to, 0, 0),
          0x000e280000000000 | words::Field(which, 8)};
}
constexpr Word128 AddNumber(int to, int a, uint32_t number) {
  return {words::Low(0x810, to, a, number), words::kControls | 0x07ffe0ff};
}
constexpr Word128 AddRegister(int to, int a, int b) {
  return {words::Low(0x210, to, a, static_cast<uint32_t>(b)),
          words::kControls | 0x07ffe0ff};
}
constexpr Word128 TimesNumber(int to, int a, uint32_t number) {
  return {words::Low(0x824, to, a, number), words::kControls | 0x078e02ff};
}
constexpr Word128 LogicNumber(int to, int a, uint32_t number, uint64_t table) {
  return {words::Low(0x812, to, a, number),
          words::kControls | 0x078e00ff | table << 8};
}
constexpr Word128 LogicRegister(int to, int a, int b, uint64_t table) {
  return {words::Low(0x212, to, a, static_cast<uint32_t>(b)),
          words::kControls | 0x078e00ff | table << 8};
}
// R`to` = `which` ? R`a` : R`b`.
constexpr Word128 Select(int to, int a, int b, Condition which) {
  return {words::Low(0x207, to, a, static_cast<uint32_t>(b)),
          words::kControls | which.bits() << 23};
}

// P`to` = (R`a` `relation` number) and, or, xor (`combine` 0, 1, 2) `with`.
constexpr Word128 CompareNumber(int to, int a, Relation relation,
                                uint32_t number, Condition with = {},
                                int combine = 0, bool is_signed = true) {
  return {words::Low(0x80c, 0, a, number),
          words::kControls | 0x00700070 | words::Field(is_signed ? 1 : 0, 9) |
              words::Field(combine, 10) |
              words::Field(static_cast<int>(relation), 12) |
              words::Field(to, 17) | with.bits() << 23};
}
constexpr Word128 CompareRegister(int to, int a, Relation relation, int b) {
  Word128 word = CompareNumber(to, a, relation, static_cast<uint32_t>(b));
  word.low = (word.low & ~uint64_t{0xfff}) | 0x20c;
  return word;
}
// R`to` = R`base`, in whose byte `byte` the predicates of `mask` are put.
constexpr Word128 PredicatesToRegister(int to, int base, uint32_t mask,
                                       int byte = 0) {
  return {words::Low(0x803, to, base, mask),
          words::kControls | words::Field(byte, 12)};
}
constexpr Word128 RegisterToPredicates(int from, uint32_t mask, int byte = 0) {
  return {words::Low(0x804, 0, from, mask),
          words::kControls | words::Field(byte, 12)};
}

// LDG.E.U8 `to`, [`from`.64]
constexpr Word128 LoadByte(int to, int from) {
  return {words::Low(0x981, to, from, 4), 0x000ea2000c1e1100};
}
// `to`, `to` + 1 = `pointer` + a number of 32 bits.
constexpr Word128 WideSum(int to, int number, int pointer, bool is_signed) {
  return {words::Low(0x825, to, number, 1),
          (is_signed ? 0x000fca00078e0200 : 0x000fca00078e0000) |
              words::Field(pointer, 0)};
}
// By so many instructions from this one.
constexpr Word128 Branch(int64_t instructions, uint32_t arch) {
  // From the instruction behind.
  const auto quarter = static_cast<uint64_t>((instructions - 1) * 16 / 4);
  Word128 word{0x7947, 0x000fc00003800000};
  constexpr uint64_t k30 = (uint64_t{1} << 30) - 1;
  constexpr uint64_t k18 = (uint64_t{1} << 18) - 1;
  if (arch >= 90) {
    word.low |= (quarter & 0xff) << 16 | (quarter >> 8 & k30) << 34;
    word.high |= quarter >> 38 & k18;
  } else {
    word.low |= (quarter & k30) << 34;
    word.high |= quarter >> 30 & k18;
  }
  return word;
}
// BRA.U `only`, U`which`, ...: by a uniform predicate as well. sm_90.
constexpr Word128 BranchUniform(int64_t instructions, Condition which,
                                Condition only = {}) {
  Word128 word = Branch(instructions, 90);
  word.low = (word.low & ~uint64_t{0xfff}) | 0x547 | which.bits() << 24 |
             uint64_t{1} << 32;
  word.high = (word.high & ~(uint64_t{15} << 23)) | only.bits() << 23 |
              uint64_t{1} << 27;
  return word;
}

// The uniform datapath (sm_90).
constexpr Word128 UniformConstant(int to, uint32_t offset) {
  return {words::Low(0xab9, to, 0, 0) | words::Field(offset / 4, 40),
          words::kControls | 0x800};
}
constexpr Word128 UniformAddNumber(int to, int a, uint32_t number) {
  return {words::Low(0x890, to, a, number), words::kControls | 0x0fffe03f};
}
// UIADD3.64 of pairs.
constexpr Word128 UniformAddNumber64(int to, int a, uint32_t number) {
  return {words::Low(0x897, to, a, number), words::kControls | 0x0fffe03f};
}
constexpr Word128 UniformAdd64(int to, int a, int b) {
  return {words::Low(0x297, to, a, static_cast<uint32_t>(b)),
          words::kControls | 0x0fffe03f};
}
// UP`to` = UR`a` `relation` number.
constexpr Word128 UniformCompareNumber(int to, int a, Relation relation,
                                       uint32_t number) {
  return {words::Low(0x88c, 0, a, number),
          words::kControls | 0x0bf00270 |
              words::Field(static_cast<int>(relation), 12) |
              words::Field(to, 17)};
}
constexpr Word128 MoveUniform(int to, int from) {
  return {words::Low(0xc02, to, 0, static_cast<uint32_t>(from)),
          words::kControls | 0x08000f00};
}
// LEA.HI R`to`, R`a`, R`b`, number, shift: (number:a >> (32 - shift)) + b.
constexpr Word128 ShiftAddHighNumber(int to, int a, int b, uint32_t number,
                                     int shift) {
  return {words::Low(0x411, to, a, number), words::kControls | 0x078f0000 |
                                                words::Field(b, 0) |
                                                words::Field(shift, 11)};
}
// UTMALDG.2D [UR`to`], [UR`map`]
constexpr Word128 LoadTensor(int to, int map) {
  return {words::Low(0x5b4, 0, map, static_cast<uint32_t>(to)),
          0x000fe20008008000};
}

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_SASS_WORDS_H_
