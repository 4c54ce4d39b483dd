// SPDX-License-Identifier: Apache-2.0
// What random code (random_code_test.cc) once found: launches for which the
// analysis predicted less than happened, cut down to the instructions that
// matter.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/access/linear.h"
#include "tests/unit/access/case_runner.h"

namespace heddle::access {
namespace {

using Code = std::map<size_t, Word128>;  // by offset

// In registers 20 and 21: the first pointer. Chips before sm_90.
const Code kBegin = {{0x100, {0x0000580000147a02, 0x000fc40000000f00}},
                     {0x110, {0x0000590000157a02, 0x000fc40000000f00}}};

CoverageResult Check(int arch, const Code& code,
                     const std::vector<uint64_t>& params, uint32_t threads) {
  CaseRunner runner({"traps"}, arch);
  Case made;
  made.launch.kernel = "strided";  // its parameters are 64 bytes
  made.launch.block = {threads, 1, 1};
  made.launch.params.resize(64);
  std::memcpy(made.launch.params.data(), params.data(), 8 * params.size());
  made.code.assign(0x600 / 16, NoOperation());
  for (const Code& part : {kBegin, code}) {
    for (const auto& [offset, word] : part) made.code[offset / 16] = word;
  }
  return runner.Check(made);
}

void ExpectCovered(const CoverageResult& result) {
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.checked, 0u);
}

// The sum of the terms' smallest values is below address 0, that of what they
// can be together is not.
TEST(RegressionTest, TermsThatCancelOutMakeNoBoxThatWrapsAround) {
  ExpectCovered(Check(
      80,
      {{0x1d0, {0x0800000003037816, 0x000fca0000000006}},   // PRMT
       {0x2e0, {0x0000000103167825, 0x000fca00078e0014}},   // IMAD.WIDE.U32
       {0x2f0, {0x0000000416ff7981, 0x000ea2000c1e1100}},   // LDG
       {0x4b0, {0x000000000000794d, 0x000fea0003800000}}},  // EXIT
      {0x7f13ffffff20, 0x7f12fffffedb, 0x58}, 32));
}

// A comparison's result is added: it is no carry of the numbers compared.
TEST(RegressionTest, AComparisonIsNoCarry) {
  ExpectCovered(Check(
      80,
      {{0x000, {0x0000000000007919, 0x000e280000002100}},   // S2R
       {0x010, {0x0000000000017919, 0x000e280000002500}},   // S2R
       {0x060, {0x0000670000067a02, 0x000fc40000000f00}},   // MOV
       {0x150, {0x000000000600720c, 0x000fe40003f06070}},   // ISETP
       {0x1a0, {0x3f000000ff077424, 0x000fe400078e00ff}},   // IMAD.MOV
       {0x1d0, {0x00000001010d7824, 0x100fe200000e0607}},   // IMAD.X
       {0x460, {0x000000010d167825, 0x000fca00078e0014}},   // IMAD.WIDE.U32
       {0x470, {0x0000000416ff7981, 0x000ea2000c1e1100}},   // LDG
       {0x4f0, {0x000000000000794d, 0x000fea0003800000}}},  // EXIT
      {0x7f11ffffff30, 0x7f1300000058, 0x53, 0xa877a9b800000007, 0x400000000321,
       0x78a00000010, 0xffb32244fffffff8, 0x200000aaa},
      32));
}

// The place that a loop goes back to is reached from its end alone.
TEST(RegressionTest, ALoopThatIsEnteredInItsMiddleIsReached) {
  // Nothing need be known of such a loop.
  EXPECT_EQ(
      Check(80,
            {{0x030, {0x00005d0000037a02, 0x000fc40000000f00}},   // MOV
             {0x120, {0xcc56bc7f0300780c, 0x000fda0003f04270}},   // ISETP
             {0x140, {0x000000c000000947, 0x000fc00003800000}},   // BRA
             {0x190, {0x0000000104167825, 0x000fca00078e0214}},   // IMAD.WIDE
             {0x1f0, {0x00005f000f007a0c, 0x000fc80003f01270}},   // ISETP
             {0x210, {0xffffff3000000947, 0x000fc0000383ffff}},   // BRA
             {0x4a0, {0x0000000416ff7981, 0x000ea2000c1e1100}},   // LDG
             {0x4e0, {0x000000000000794d, 0x000fea0003800000}}},  // EXIT
            {0x7f11fffffec0, 0x7f12000002fb, 0x52dfffffffc, 0xfffffff700020000,
             7, 0x48, 0xf5d57adcd9fb1cd6, 0xc7bf7e6f19f2b4df},
            32)
          .complaint,
      "");
}

// A warp that is not full: what comes from no thread is no thread's value.
TEST(RegressionTest, AShuffleMayReadWhereNoThreadIs) {
  ExpectCovered(
      Check(89,
            {{0x0e0, {0x00005c00000e7a02, 0x000fc40000000f00}},   // MOV
             {0x190, {0x0a001f0e0e0b7f89, 0x000e2200000e000e}},   // SHFL
             {0x4c0, {0x000000010b167825, 0x000fca00078e0214}},   // IMAD.WIDE
             {0x4d0, {0x0000000416ff7981, 0x000ea2000c1e1100}},   // LDG
             {0x590, {0x000000000000794d, 0x000fea0003800000}}},  // EXIT
            {0x7f10ffffff70, 0x7f10000002c4, 0x4c, 0x43, 0x9fffffffb, 0x47,
             0x820b702cfffffff6, 0xd},
            5));
}

TEST(RegressionTest, ACoefficientWithoutANegativeIsNotDivided) {
  Universe universe;
  Symbol symbol;
  symbol.range = {0, 1};
  const SymbolId id = universe.NewSymbol(symbol);
  const Form form{{{id, INT64_MIN}}, 0};
  const Bound bound{universe.Intern(Form{{{id, -1}}, 0}), {-1, 0}};
  const Range range = universe.RangeOf(form, {&bound, 1});
  EXPECT_LE(range.lo, Wide{INT64_MIN});
  EXPECT_GE(range.hi, Wide{0});
}

}  // namespace
}  // namespace heddle::access
