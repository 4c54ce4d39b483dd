// SPDX-License-Identifier: Apache-2.0
// What was written under a guard and is used under another.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/access/rules_fixture.h"

namespace heddle::access {
namespace {

class GuardRulesTest : public RulesTest {};

TEST_P(GuardRulesTest, TheSameConditionBringsBackWhatWasWrittenUnderIt) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16)});
  WriteUnder(Is(0));
  Access(2, Is(0));
  // Predicate 0 becomes another one.
  Add({CompareNumber(0, kThread, Relation::kLess, 3),
       CompareNumber(1, kThread, Relation::kLess, 16),
       CompareNumber(2, kThread, Relation::kGreaterEqual, 16)});
  Access(2, Is(1));
  Access(2, Not(2));
  const size_t skip = Skip();
  Access(2);
  Here(skip, Not(1));
  Access(2, Not(1));
  Access(2, Is(0));
  Access(2);
  const std::vector<Reach> reaches = Reaches();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(reaches[i], kFive) << i;
  EXPECT_EQ(reaches[6], (Reach{5, kFromParameters}));
}

TEST_P(GuardRulesTest, APredicateWithAnotherConditionBringsNothingBack) {
  for (const bool negated : {false, true}) {
    Add({CompareNumber(0, kThread, Relation::kLess, 16),
         // Of nothing that is known.
         LogicNumber(4, kThread, 0x15, kXor), LogicNumber(4, 4, 0x15, kAnd),
         CompareNumber(3, 4, Relation::kNotEqual, 0)});
    WriteUnder({0, negated});
    Add({CompareNumber(0, kThread, Relation::kNotEqual, 11)});
    Access(2, Is(0));
    Access(2, Not(0));
    WriteUnder({3, negated});
    Add({MoveNumber(9, 0x8), RegisterToPredicates(9, 0x8)});
    Access(2, Is(3));
    Add({RegisterToPredicates(kZero, 0x8)});
    Access(2, Not(3));
  }
  Reaches();
}

TEST_P(GuardRulesTest, AConditionThatImpliesAnotherWillDo) {
  Add({CompareNumber(0, kThread, Relation::kGreaterEqual, 16),
       CompareNumber(1, kThread, Relation::kEqual, 16),
       CompareNumber(2, kThread, Relation::kGreater, 16)});
  WriteUnder(Is(0));
  Access(2, Is(1));
  Access(2, Is(2));
  EXPECT_EQ(Reaches(), (std::vector<Reach>{kFive, kFive}));
}

// Threads for which the second is true and the first is not have what was
// there before.
TEST_P(GuardRulesTest, AConditionThatIsImpliedWillNot) {
  constexpr Relation kAll[] = {Relation::kLess,      Relation::kEqual,
                               Relation::kLessEqual, Relation::kGreater,
                               Relation::kNotEqual,  Relation::kGreaterEqual};
  // By sign of the difference, which of them hold: below, equal, above.
  const auto holds = [](Relation relation) {
    constexpr int kHolds[] = {0, 1, 2, 3, 4, 5, 6};
    return kHolds[static_cast<int>(relation)];  // bits: less, equal, greater
  };
  const std::vector<Word128> begin = code_;
  for (const Relation first : kAll) {
    for (const Relation second : kAll) {
      for (const bool negated : {false, true}) {
        code_ = begin;
        accesses_.clear();
        Add({CompareNumber(0, kThread, first, 16),
             CompareNumber(1, kThread, second, 16)});
        WriteUnder(Is(0));
        Access(2, {1, negated});
        const int used = negated ? 7 - holds(second) : holds(second);
        const bool implied = (used & ~holds(first)) == 0;
        const Reach reach = LastReach();
        if (implied) {
          EXPECT_EQ(reach, kFive) << static_cast<int>(first) << " "
                                  << static_cast<int>(second) << negated;
        } else {
          EXPECT_GE(reach.hi, int64_t{kFromParameters});
        }
      }
    }
  }
}

// A combination is true where more than its first half is.
TEST_P(GuardRulesTest, OnePartOfACombinedConditionWillNotDo) {
  const std::vector<Word128> begin = code_;
  for (const int combine : {0, 1, 2}) {
    for (const bool negated : {false, true}) {
      code_ = begin;
      accesses_.clear();
      Add({CompareNumber(1, kThread, Relation::kNotEqual, 3),
           CompareNumber(0, kThread, Relation::kLess, 16, {1, negated},
                         combine),
           CompareNumber(2, kThread, Relation::kLess, 16),
           CompareNumber(3, kThread, Relation::kNotEqual, 3)});
      WriteUnder(Is(0));
      for (const int predicate : {1, 2, 3}) {
        Access(2, Is(predicate));
        Access(2, Not(predicate));
      }
      WriteUnder(Not(0));
      for (const int predicate : {1, 2, 3}) {
        Access(2, Is(predicate));
        Access(2, Not(predicate));
      }
      Reaches();  // on the machine
    }
  }
}

TEST_P(GuardRulesTest, ItIsNotTheSameConditionOnceItsRegisterChanged) {
  Add({AddNumber(3, kThread, 0), CompareNumber(0, 3, Relation::kLess, 16)});
  WriteUnder(Is(0));
  Add({TimesNumber(3, 3, ~0u), AddNumber(3, 3, 31),
       CompareNumber(1, 3, Relation::kLess, 16)});
  Access(2, Is(1));
  EXPECT_GE(LastReach().hi, int64_t{kFromParameters});
  // The other way round it is the same again: 31 - R3 < 16 as R3 was.
  Add({TimesNumber(3, 3, ~0u), AddNumber(3, 3, 31),
       CompareNumber(1, 3, Relation::kLess, 16)});
  Access(2, Is(1));
  EXPECT_EQ(LastReach(), kFive);
}

TEST_P(GuardRulesTest, ItIsNotTheSameConditionInTheNextRound) {
  for (const int step : {0, 1, 2}) {
    Add({MoveNumber(3, 0), MoveConstant(2, base_ + 16)});
    const size_t head = code_.size();
    Add({CompareNumber(0, 3, Relation::kGreaterEqual, 2)});
    // In the third round for the first time, not yet written.
    Access(2, Is(0));
    Add({On(Is(0), MoveNumber(2, 5))});
    Access(2, Is(0));
    if (step == 1) Add({AddNumber(2, 2, 7)});
    if (step == 2) Add({MoveConstant(2, base_ + 20)});
    Add({AddNumber(3, 3, 1), CompareNumber(1, 3, Relation::kLess, 5)});
    Back(head, Is(1));
    const std::vector<Reach> reaches = Reaches();
    EXPECT_GE(reaches[reaches.size() - 2].hi, int64_t{kFromParameters});
    EXPECT_EQ(reaches.back(), kFive);
  }
}

// Written under a condition in front of a loop, and otherwise in it.
TEST_P(GuardRulesTest, WhatWasWrittenInFrontOfALoopIsNotWhatItsRoundsLeave) {
  const Word128 writes[] = {AddNumber(2, 2, 1), MoveNumber(2, 9),
                            On(Is(3), MoveNumber(2, 9)),
                            On(Not(0), MoveNumber(2, 9)), LoadByte(2, 20)};
  const std::vector<Word128> begin = code_;
  for (const Word128& write : writes) {
    code_ = begin;
    accesses_.clear();
    Add({MoveNumber(3, 0), CompareNumber(0, kThread, Relation::kLess, 16),
         CompareNumber(3, kThread, Relation::kGreater, 10)});
    WriteUnder(Is(0));
    const size_t head = code_.size();
    Access(2, Is(0));
    Add({CompareNumber(1, kThread, Relation::kLess, 16)});
    Access(2, Is(1));
    Add({write, AddNumber(3, 3, 1), CompareNumber(1, 3, Relation::kLess, 4)});
    Back(head, Is(1));
    Access(2, Is(0));
    Reaches();
  }
}

// What is written is by a number that every round makes anew.
TEST_P(GuardRulesTest, AValueOfAnEarlierRoundIsNotThisRounds) {
  Add({MoveNumber(3, 0), MoveNumber(5, 3), MoveNumber(2, 77),
       CompareNumber(0, kThread, Relation::kLess, 16)});
  const size_t head = code_.size();
  Access(2, Is(0));
  Add({LogicNumber(6, 5, 0x55, kXor), LogicRegister(5, 6, 5, kOr),
       On(Is(0), AddNumber(2, 5, 0)), TimesNumber(5, 5, 3),
       LogicNumber(5, 5, 0x3ff, kAnd),
       CompareNumber(2, kThread, Relation::kLess, 16)});
  Access(2, Is(2));
  Add({AddNumber(3, 3, 1), CompareNumber(1, 3, Relation::kLess, 6)});
  Back(head, Is(1));
  Access(2, Is(2));
  Reaches();
}

TEST_P(GuardRulesTest, AWriteOfAnyKindEndsWhatWasWrittenUnderAGuard) {
  const Word128 writes[] = {AddNumber(2, 2, 1),
                            MoveNumber(2, 40),
                            WideSum(2, kThread, kZero, true),  // R2 and R3
                            Special(2, 0x21),
                            PredicatesToRegister(2, kZero, 0x7f),
                            On(Is(3), MoveNumber(2, 41)),
                            On(Not(0), MoveNumber(2, 42)),
                            LoadByte(2, 20)};
  const std::vector<Word128> begin = code_;
  for (const Word128& write : writes) {
    code_ = begin;
    accesses_.clear();
    Add({CompareNumber(0, kThread, Relation::kLess, 16),
         CompareNumber(3, kThread, Relation::kGreater, 10),
         MoveConstant(3, base_ + 16)});
    WriteUnder(Is(0));
    Add({On(Is(0), MoveNumber(3, 6)), write});
    Access(2, Is(0));
    Access(3, Is(0));
    Add({CompareNumber(1, kThread, Relation::kLess, 16)});
    Access(2, Is(1));
    Access(3, Is(1));
    Reaches();
  }
}

// An instruction that writes its own guard: it was the old one that counted.
TEST_P(GuardRulesTest, AGuardThatWritesItselfIsAnotherBehind) {
  const std::vector<Word128> begin = code_;
  for (const bool negated : {false, true}) {
    code_ = begin;
    accesses_.clear();
    // LOP3 P0, R2 = R0 & 9.
    Word128 logic = LogicNumber(2, kThread, 9, kAnd);
    logic.high &= ~(uint64_t{7} << 17);
    Add({CompareNumber(0, kThread, Relation::kLess, 16),
         MoveConstant(2, base_ + 16), On({0, negated}, logic),
         CompareNumber(1, kThread, Relation::kLess, 16)});
    Access(2, Is(0));
    Access(2, Not(0));
    Access(2, Is(1));
    Access(2, Not(1));
    // The same by a comparison.
    WriteUnder({1, negated});
    Add({On({1, negated}, CompareNumber(1, kThread, Relation::kEqual, 4))});
    Access(2, Is(1));
    Access(2, Not(1));
    Reaches();
  }
}

// Where paths meet, only what both know is known.
TEST_P(GuardRulesTest, PathsThatMeetKeepWhatBothWrote) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16),
       CompareNumber(1, kThread, Relation::kGreater, 7),
       MoveConstant(2, base_ + 16), MoveConstant(3, base_ + 16)});
  const size_t skip = Skip();
  Add({On(Is(0), MoveNumber(2, 5)), On(Is(0), MoveNumber(3, 5))});
  const size_t end = Skip();
  Here(skip, Is(1));
  Add({On(Is(0), MoveNumber(2, 5)), On(Is(0), MoveNumber(3, 9))});
  Here(end, {});
  Add({CompareNumber(2, kThread, Relation::kLess, 16)});
  Access(2, Is(2));
  Access(3, Is(2));
  const std::vector<Reach> reaches = Reaches();
  EXPECT_EQ(reaches[0], kFive);
  EXPECT_TRUE(reaches[1].lo <= 5 && reaches[1].hi >= 9);
}

INSTANTIATE_TEST_SUITE_P(Chips, GuardRulesTest, testing::Values(80, 89, 90));

}  // namespace
}  // namespace heddle::access
