// SPDX-License-Identifier: Apache-2.0
// Predicates that registers keep.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/access/rules_fixture.h"

namespace heddle::access {
namespace {

class KeptPredicateRulesTest : public RulesTest {};

TEST_P(KeptPredicateRulesTest, PredicatesComeBackFromARegister) {
  for (const int byte : {0, 1, 3}) {
    Add({CompareNumber(0, kThread, Relation::kLess, 16),
         CompareNumber(1, kThread, Relation::kGreaterEqual, 20),
         PredicatesToRegister(8, kZero, 0x7f, byte),
         CompareNumber(0, kThread, Relation::kLess, 3),
         CompareNumber(1, kThread, Relation::kLess, 2),
         RegisterToPredicates(8, 0x1, byte)});
    accesses_.clear();
    Access(kThread, Is(0));
    Access(kThread, Not(0));
    Access(kThread, Is(1));  // is not in the mask
    Add({RegisterToPredicates(8, 0x7e, byte)});
    Access(kThread, Is(1));
    EXPECT_EQ(Reaches(),
              (std::vector<Reach>{{0, 15}, {16, 31}, {0, 1}, {20, 31}}));
  }
}

// The register behind the condition has changed since: it is about the old one.
TEST_P(KeptPredicateRulesTest, AKeptPredicateIsAboutWhatItWasMadeOf) {
  Add({AddNumber(3, kThread, 0), CompareNumber(0, 3, Relation::kLess, 16),
       PredicatesToRegister(8, kZero, 0x1), TimesNumber(3, 3, ~0u),
       AddNumber(3, 3, 31), CompareNumber(0, 3, Relation::kLess, 16),
       RegisterToPredicates(8, 0x1)});
  Access(3, Is(0));
  EXPECT_EQ(LastReach(), (Reach{16, 31}));
}

TEST_P(KeptPredicateRulesTest,
       WhatWasWrittenUnderAKeptPredicateComesBackWithIt) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16)});
  WriteUnder(Is(0));
  Add({PredicatesToRegister(8, kZero, 0x7f),
       CompareNumber(0, kThread, Relation::kGreater, 16),
       RegisterToPredicates(8, 0x7f)});
  Access(2, Is(0));
  EXPECT_EQ(LastReach(), kFive);
}

TEST_P(KeptPredicateRulesTest, BitsThatAreMovedAreFollowed) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16),
       CompareNumber(2, kThread, Relation::kGreater, 28),
       PredicatesToRegister(8, kZero, 0x5), TimesNumber(9, 8, 2),
       RegisterToPredicates(9, 0xa)});
  Access(kThread, Is(1));
  Access(kThread, Is(3));
  // Out of the byte and into the next.
  Add({TimesNumber(9, 9, 64), RegisterToPredicates(9, 0x2, 1)});
  Access(kThread, Is(1));
  EXPECT_EQ(Reaches(), (std::vector<Reach>{{0, 15}, {29, 31}, {29, 31}}));
}

TEST_P(KeptPredicateRulesTest, BitsThatAreChangedAreNot) {
  const std::vector<std::vector<Word128>> changes = {
      {LogicNumber(8, 8, 1, kXor)},
      {LogicNumber(8, 8, ~1u, kAnd)},
      {LogicNumber(8, 8, 3, kOr)},
      {LogicNumber(8, 8, 2, kAnd)},
      {AddNumber(8, 8, 1)},
      {AddNumber(8, 8, ~0u)},
      {AddRegister(8, 8, 8)},
      {TimesNumber(8, 8, 3)},
      {TimesNumber(8, 8, ~0u)},
      {TimesNumber(8, 8, uint32_t{1} << 31)},
      {TimesNumber(9, 8, 2), AddRegister(8, 8, 9)},
      {MoveNumber(8, 2)},
      {MoveConstant(8, base_ + 16)},
      {On(Is(3), MoveNumber(8, 1))},
      {Select(8, 8, kZero, Is(3))},
      {LogicRegister(8, 8, kThread, kXor)},
      {AddRegister(8, 8, kThread)},
      {LoadByte(8, 20)}};
  const std::vector<Word128> begin = code_;
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    code_ = begin;
    accesses_.clear();
    Add({CompareNumber(0, kThread, Relation::kLess, 16),
         CompareNumber(1, kThread, Relation::kEqual, 9),
         CompareNumber(3, kThread, Relation::kGreater, 8),
         PredicatesToRegister(8, kZero, 0x3)});
    code_.insert(code_.end(), changes[i].begin(), changes[i].end());
    Add({RegisterToPredicates(8, 0x7)});
    for (const int predicate : {0, 1, 2}) {
      Access(kThread, Is(predicate));
      Access(kThread, Not(predicate));
    }
    Add({CompareNumber(4, 8, Relation::kNotEqual, 0)});
    Access(kThread, Is(4));
    Access(kThread, Not(4));
    Reaches();
  }
}

TEST_P(KeptPredicateRulesTest, TheRestOfTheRegisterStaysWhereItIsNotZero) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16),
       CompareNumber(1, kThread, Relation::kLess, 4), MoveNumber(9, 0x102),
       PredicatesToRegister(8, 9, 0x1), RegisterToPredicates(8, 0x3)});
  Access(kThread, Is(0));
  Access(kThread, Is(1));  // all of them
  // Bytes of one register after each other.
  Add({CompareNumber(0, kThread, Relation::kGreater, 21),
       PredicatesToRegister(8, 8, 0x3, 1), RegisterToPredicates(8, 0x1, 0)});
  Access(kThread, Is(0));
  Add({RegisterToPredicates(8, 0x1, 1)});
  Access(kThread, Is(0));
  const std::vector<Reach> reaches = Reaches();
  EXPECT_EQ(reaches[1], (Reach{0, 31}));
}

TEST_P(KeptPredicateRulesTest, AKeptPredicateComparedWithZeroIsThatPredicate) {
  Add({CompareNumber(1, kThread, Relation::kLess, 16),
       CompareNumber(2, kThread, Relation::kLess, 3),
       PredicatesToRegister(8, kZero, 0x2, 1),
       CompareNumber(3, 8, Relation::kNotEqual, 0),
       CompareNumber(4, 8, Relation::kEqual, 0)});
  for (const Condition& guard : {Is(3), Not(3), Is(4), Not(4)}) {
    Access(kThread, guard);
  }
  // Another number, and two predicates, are not.
  Add({CompareNumber(3, 8, Relation::kEqual, 1),
       PredicatesToRegister(9, kZero, 0x6),
       CompareNumber(4, 9, Relation::kNotEqual, 0)});
  for (const Condition& guard : {Not(3), Is(4), Not(4)}) {
    Access(kThread, guard);
  }
  const std::vector<Reach> reaches = Reaches();
  EXPECT_EQ(reaches[0], (Reach{0, 15}));
  EXPECT_EQ(reaches[1], (Reach{16, 31}));
  EXPECT_EQ(reaches[2], (Reach{16, 31}));
  EXPECT_EQ(reaches[3], (Reach{0, 15}));
  EXPECT_EQ(reaches[4], (Reach{0, 31}));
}

// Every round takes what the last one kept.
TEST_P(KeptPredicateRulesTest, PredicatesThatAreKeptForTheNextRound) {
  Add({MoveNumber(3, 0), CompareNumber(0, kThread, Relation::kLess, 16),
       PredicatesToRegister(8, kZero, 0x1)});
  const size_t head = code_.size();
  Add({RegisterToPredicates(8, 0x1)});
  Access(kThread, Is(0));
  Access(3, Is(0));
  // Next time: thread > round.
  Add({CompareRegister(0, kThread, Relation::kGreater, 3),
       PredicatesToRegister(8, kZero, 0x1), AddNumber(3, 3, 9),
       CompareNumber(1, 3, Relation::kLess, 40)});
  Back(head, Is(1));
  Add({RegisterToPredicates(8, 0x1)});
  Access(kThread, Is(0));
  Access(3, Is(0));
  Reaches();
}

// Kept before a loop, used in it: it is what it was.
TEST_P(KeptPredicateRulesTest, PredicatesThatAreKeptOverALoop) {
  Add({MoveNumber(3, 0), AddNumber(4, kThread, 0),
       CompareNumber(0, 4, Relation::kLess, 16),
       PredicatesToRegister(8, kZero, 0x1)});
  const size_t head = code_.size();
  Add({CompareNumber(0, 4, Relation::kLess, 8), RegisterToPredicates(8, 0x1)});
  Access(4, Is(0));
  Add({AddNumber(4, 4, 5), AddNumber(3, 3, 1),
       CompareNumber(1, 3, Relation::kLess, 4)});
  Back(head, Is(1));
  Add({RegisterToPredicates(8, 0x1)});
  Access(4, Is(0));
  Reaches();
}

TEST_P(KeptPredicateRulesTest, KeptAndTakenUnderGuards) {
  Add({CompareNumber(0, kThread, Relation::kLess, 16),
       CompareNumber(1, kThread, Relation::kGreater, 4),
       CompareNumber(2, kThread, Relation::kLess, 9), MoveNumber(8, 1),
       On(Is(1), PredicatesToRegister(8, kZero, 0x1)),
       RegisterToPredicates(8, 0x1)});
  Access(kThread, Is(0));  // 0 to 4 as well, where R8 is 1
  Access(kThread, Not(0));
  Add({On(Is(2), RegisterToPredicates(8, 0x2))});
  Access(kThread, Is(1));
  Add({PredicatesToRegister(9, kZero, 0x7f),
       On(Not(1), RegisterToPredicates(9, 0x5))});
  Access(kThread, Is(0));
  Access(kThread, Is(2));
  Reaches();
}

INSTANTIATE_TEST_SUITE_P(Chips, KeptPredicateRulesTest,
                         testing::Values(80, 89, 90));

}  // namespace
}  // namespace heddle::access
