// SPDX-License-Identifier: Apache-2.0
// The words that tests are written in are what the disassembler takes them for.

#include "tests/unit/access/sass_words.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/cubin/sass_text.h"

namespace heddle::access {
namespace {

using Lines = std::vector<std::pair<Word128, std::string>>;

void ExpectDisassembled(const Lines& lines, uint32_t arch) {
  std::vector<uint8_t> bytes;
  for (const auto& [word, text] : lines) {
    uint8_t raw[16];
    std::memcpy(raw, &word, sizeof(raw));
    bytes.insert(bytes.end(), raw, raw + sizeof(raw));
  }
  const std::vector<std::string> got = cubin::Disassemble(bytes, arch);
  ASSERT_EQ(got.size(), lines.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], lines[i].second);
}

TEST(SassWordsTest, AreWhatTheDisassemblerPrints) {
  if (!cubin::CanDisassemble()) GTEST_SKIP() << "there is no nvdisasm in PATH";
  const Lines lines = {
      {NoOperation(), "NOP"},
      {Exit(), "EXIT"},
      {MoveConstant(3, 0x210), "MOV R3, c[0x0][0x210]"},
      {MoveNumber(3, 77), "MOV R3, 0x4d"},
      {Special(3, 0x21), "S2R R3, SR_TID.X"},
      {Special(3, 0x25), "S2R R3, SR_CTAID.X"},
      {AddNumber(3, 4, 5), "IADD3 R3, R4, 0x5, RZ"},
      {AddRegister(3, 4, 5), "IADD3 R3, R4, R5, RZ"},
      {TimesNumber(3, 4, 5), "IMAD R3, R4, 0x5, RZ"},
      {LogicNumber(3, 4, 5, kAnd), "LOP3.LUT R3, R4, 0x5, RZ, 0xc0, !PT"},
      {LogicRegister(3, 4, 5, kXor), "LOP3.LUT R3, R4, R5, RZ, 0x3c, !PT"},
      {Select(3, 4, 5, {1, true}), "SEL R3, R4, R5, !P1"},
      {CompareNumber(2, 4, Relation::kGreater, 5),
       "ISETP.GT.AND P2, PT, R4, 0x5, PT"},
      {CompareNumber(2, 4, Relation::kNotEqual, 5, {1, true}, 1, false),
       "ISETP.NE.U32.OR P2, PT, R4, 0x5, !P1"},
      {CompareRegister(2, 4, Relation::kLessEqual, 5),
       "ISETP.LE.AND P2, PT, R4, R5, PT"},
      {PredicatesToRegister(3, 255, 0x7f), "P2R R3, PR, RZ, 0x7f"},
      {PredicatesToRegister(3, 4, 0x3, 2), "P2R.B2 R3, PR, R4, 0x3"},
      {RegisterToPredicates(3, 0x7f), "R2P PR, R3, 0x7f"},
      {RegisterToPredicates(3, 0x3, 1), "R2P PR, R3.B1, 0x3"},
      {WideSum(4, 3, 20, true), "IMAD.WIDE R4, R3, 0x1, R20"},
      {WideSum(4, 3, 20, false), "IMAD.WIDE.U32 R4, R3, 0x1, R20"}};
  for (const uint32_t arch : {80u, 89u, 90u}) {
    SCOPED_TRACE(arch);
    ExpectDisassembled(lines, arch);
    ExpectDisassembled({{On({2, true}, LoadByte(3, 4)),
                         arch == 90 ? "@!P2 LDG.E.U8 R3, desc[UR4][R4.64]"
                                    : "@!P2 LDG.E.U8 R3, [R4.64]"}},
                       arch);
  }
  ExpectDisassembled(
      {{BranchUniform(17, {3, true}), "BRA.U !UP3, 0x110"},
       {On({1, false}, BranchUniform(1, {0, false}, {2, true})),
        "@P1 BRA.U !P2, UP0, 0x20"},
       {UniformConstant(4, 0x198), "ULDC UR4, c[0x0][0x198]"},
       {UniformAddNumber(4, 6, 5), "UIADD3 UR4, UR6, 0x5, URZ"},
       {UniformAddNumber64(4, 6, 5), "UIADD3.64 UR4, UR6, 0x5, URZ"},
       {UniformAdd64(4, 6, 8), "UIADD3.64 UR4, UR6, UR8, URZ"},
       {UniformCompareNumber(1, 6, Relation::kLess, 5),
        "UISETP.LT.AND UP1, UPT, UR6, 0x5, UPT"},
       {MoveUniform(4, 6), "MOV R4, UR6"},
       {ShiftAddHighNumber(3, 4, 5, 6, 7), "LEA.HI R3, R4, R5, 0x6, 0x7"},
       {LoadTensor(4, 8), "UTMALDG.2D [UR4], [UR8]"}},
      90);
}

}  // namespace
}  // namespace heddle::access
