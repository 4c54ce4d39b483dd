// SPDX-License-Identifier: Apache-2.0
// Masks of bits that are there and that are not.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/access/rules_fixture.h"

namespace heddle::access {
namespace {

class MaskRulesTest : public RulesTest {};

TEST_P(MaskRulesTest, MasksOfBitsThatCannotBeChangeNothing) {
  struct Row {
    uint32_t threads, factor, addend, mask;
    Reach reach;
  };
  const Row rows[] = {
      {128, 2, 0, 0xfe, {0, 254}},  // as Triton writes it
      {64, 2, 0, 0xfe, {0, 126}},
      {256, 2, 0, 0xfe, {0, 255}},  // and here it does
      {256, 2, 0, 0xff0001fe, {0, 510}},
      {100, 4, 0, 0x1fc, {0, 396}},
      {32, 8, 4, 0xfc, {4, 252}},
      {16, 1, 0, 0xf0f, {0, 15}},
      {256, 1, 0, 0xf00, {0, 0}},
      {257, 1, 0, 0xf00, {0, 256}},
      {32, 1, 0, 0x10, {0, 16}},
      {32, 0, 0x55, 0x33, {0x11, 0x11}},
  };
  const std::vector<Word128> begin = code_;
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.threads << " " << row.factor << " "
                                    << row.addend << " " << row.mask);
    code_ = begin;
    accesses_.clear();
    threads_ = row.threads;
    Add({TimesNumber(2, kThread, row.factor), AddNumber(2, 2, row.addend),
         LogicNumber(2, 2, row.mask, kAnd)});
    Access(2);
    EXPECT_EQ(LastReach(), row.reach);
  }
}

// Not only bounded: a row of steps, so that what is between is not touched.
TEST_P(MaskRulesTest, AMaskThatChangesNothingLeavesTheSteps) {
  threads_ = 128;
  Add({TimesNumber(2, kThread, 2), LogicNumber(2, 2, 0xfe, kAnd)});
  Access(2);
  const KernelFootprint footprint = runner_.Analyze(Made());
  ASSERT_EQ(footprint.footprints.size(), 1u);
  EXPECT_EQ(footprint.footprints[0].terms,
            (std::vector<AddressTerm>{{SymbolKind::kThread, 0, 2, 0, 127}}));
}

TEST_P(MaskRulesTest, MasksOfAnythingCoverWhatTheyLeave) {
  std::mt19937_64 random(8);
  const std::vector<Word128> begin = code_;
  for (int round = 0; round < 300; ++round) {
    code_ = begin;
    accesses_.clear();
    threads_ = 1 + static_cast<uint32_t>(random() % 100);
    const auto shift = [&] { return random() % 32; };
    const auto number = [&] { return static_cast<uint32_t>(random()); };
    Add({TimesNumber(2, kThread, number() >> shift()),
         AddNumber(2, 2, number() >> shift()),
         LogicNumber(2, 2, number() & number() >> shift(), kAnd)});
    Access(2);
    Add({LogicNumber(3, 2, number() >> shift(), kAnd)});
    Access(3);
    Reaches();
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, MaskRulesTest, testing::Values(80, 89, 90));

}  // namespace
}  // namespace heddle::access
