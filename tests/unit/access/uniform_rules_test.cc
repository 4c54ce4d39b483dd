// SPDX-License-Identifier: Apache-2.0
// What only sm_90 has here: long sums of uniform registers, branches by uniform
// predicates, the address of the parameters.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/unit/access/rules_fixture.h"

namespace heddle::access {
namespace {

class UniformRulesTest : public RulesTest {
 protected:
  // UR4 is the block's index.
  void BlockIndex() {
    Add({{words::Low(0x2ca, 4, kBlock, 0), words::kControls | 0x000e0000}});
  }
};

TEST_P(UniformRulesTest, LongSumsTakeNumbersWithTheirSign) {
  struct Row {
    uint32_t number;
    int64_t offset;
  };
  // The pointer's low half is close to where it carries.
  pointer_ = kFirst + (uint64_t{1} << 32) - 8;
  const std::vector<Word128> begin = code_;
  for (const Row& row :
       {Row{0, 0}, Row{0x10, 0x10}, Row{0xfffffff0, -0x10},
        Row{0x7fffffff, 0x7fffffff}, Row{0x80000000, -0x80000000LL}}) {
    code_ = begin;
    accesses_.clear();
    Add({UniformConstant(4, base_), UniformConstant(5, base_ + 4),
         UniformAddNumber64(6, 4, row.number), MoveUniform(22, 6),
         MoveUniform(23, 7), LoadByte(kZero, 22)});
    accesses_.push_back(code_.size() - 1);
    EXPECT_EQ(LastReach(), (Reach{row.offset, row.offset}));
  }
}

TEST_P(UniformRulesTest, BranchesByUniformPredicatesBoundBothSides) {
  blocks_ = 5;
  BlockIndex();
  Add({UniformCompareNumber(0, 4, Relation::kLess, 2)});
  const size_t skip = Skip();
  Access(kBlock);  // where it is not taken
  const size_t end = Skip();
  code_[skip] = BranchUniform(static_cast<int64_t>(code_.size() - skip), Is(0));
  Access(kBlock);  // where it is
  Here(end, {});
  EXPECT_EQ(Reaches(), (std::vector<Reach>{{2, 4}, {0, 1}}));
}

// With other predicates all must hold: not taken says nothing of any.
TEST_P(UniformRulesTest, BranchesByMorePredicatesAreNotTakenIfAnyFails) {
  for (const Condition& which : {Is(0), Not(0)}) {
    for (const Condition& only : {Is(1), Not(1), Condition()}) {
      for (const Condition& guard : {Is(2), Not(2), Condition()}) {
        RulesTest::blocks_ = 5;
        accesses_.clear();
        BlockIndex();
        Add({UniformCompareNumber(0, 4, Relation::kLess, 2),
             CompareNumber(1, kThread, Relation::kLess, 16),
             CompareNumber(2, kThread, Relation::kNotEqual, 7)});
        const size_t skip = Skip();
        Access(kBlock);
        Access(kThread);
        const size_t end = Skip();
        code_[skip] =
            On(guard, BranchUniform(static_cast<int64_t>(code_.size() - skip),
                                    which, only));
        Access(kBlock);
        Access(kThread);
        Here(end, {});
        const std::vector<Reach> reaches = Reaches();
        if (only.predicate == 1) {
          EXPECT_EQ(reaches[0], (Reach{0, 4}));
        }
      }
    }
  }
}

TEST_P(UniformRulesTest, AConstantHighHalfIsShiftedIn) {
  struct Row {
    uint32_t number;
    int shift;
    uint32_t addend;  // to the thread, before
    Reach reach;
  };
  const std::vector<Word128> begin = code_;
  for (const Row& row :
       {Row{0, 4, 0, {100, 100}}, Row{5, 4, 0, {180, 180}},
        Row{5, 4, 0xfffffff0, {180, 195}}, Row{0x80000001, 4, 0, {116, 116}},
        Row{3, 28, 0x20, {0x30000066, 0x30000067}}}) {
    SCOPED_TRACE(row.number);
    code_ = begin;
    accesses_.clear();
    Add({AddNumber(2, kThread, row.addend), MoveNumber(3, 100),
         ShiftAddHighNumber(4, 2, 3, row.number, row.shift)});
    Access(4);
    const Reach reach = LastReach();
    EXPECT_LE(reach.lo, row.reach.lo);
    EXPECT_GE(reach.hi, row.reach.hi);
    if (row.reach.lo == row.reach.hi) {
      EXPECT_EQ(reach, row.reach);
    }
  }
}

// How cuBLASLt's kernels get to their maps: the low half alone is added to.
TEST_P(UniformRulesTest, ParametersAreFoundByTheirAddress) {
  constexpr uint32_t kBank = 0xc0;
  constexpr uint32_t kParameters = 0x198;
  const std::vector<Word128> begin = code_;
  const auto map_at = [&](std::initializer_list<Word128> words) {
    code_ = begin;
    Add(words);
    Add({LoadTensor(16, 8)});
    const KernelFootprint footprint = runner_.Analyze(Made());
    EXPECT_EQ(footprint.unknown, "");
    EXPECT_EQ(footprint.footprints.size(), 1u);
    return footprint.footprints.at(0).tensor_map;
  };
  const Word128 bank[] = {UniformConstant(8, kBank),
                          UniformConstant(9, kBank + 4)};
  const Word128 parameters[] = {UniformConstant(8, kParameters),
                                UniformConstant(9, kParameters + 4)};
  EXPECT_EQ(map_at({parameters[0], parameters[1]}), 0);
  EXPECT_EQ(map_at({bank[0], bank[1], UniformAddNumber(8, 8, base_ + 64)}), 64);
  EXPECT_EQ(map_at({bank[0], bank[1], UniformAddNumber64(8, 8, base_ + 64)}),
            64);
  EXPECT_EQ(map_at({parameters[0], parameters[1], UniformAddNumber(8, 8, 32),
                    UniformAddNumber(8, 8, 32)}),
            64);
  // In front of them, too far behind, halves that do not belong together.
  EXPECT_EQ(map_at({bank[0], bank[1]}), -2);
  EXPECT_EQ(map_at({parameters[0], parameters[1],
                    UniformAddNumber(8, 8, uint32_t{1} << 20)}),
            -2);
  EXPECT_EQ(map_at({UniformConstant(8, base_), bank[1]}), -2);
  EXPECT_EQ(map_at({bank[0], UniformConstant(9, base_ + 4)}), -2);
  EXPECT_EQ(map_at({parameters[0], UniformConstant(9, base_ + 16)}), -2);
}

INSTANTIATE_TEST_SUITE_P(Chips, UniformRulesTest, testing::Values(90));

}  // namespace
}  // namespace heddle::access
