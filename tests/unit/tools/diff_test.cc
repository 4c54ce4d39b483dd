// SPDX-License-Identifier: Apache-2.0
#include "tools/diff.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/tools/synthetic_reader.h"

namespace heddle::tools {
namespace {

TEST(Diff, ATraceIsLikeItself) {
  const auto a = SyntheticReader();
  const DiffResult result = DiffTraces(*a, *a, {});
  EXPECT_TRUE(result.same());
  EXPECT_EQ(result.operations_a, result.operations_b);
  EXPECT_GT(result.operations_a, 6 * kSyntheticLaunchesPerStep);
}

TEST(Diff, OtherAddressesAreTheSameUnlessAskedForExactly) {
  const auto a = SyntheticReader();
  const auto b = SyntheticReader({.address_base = 0x10000000});
  EXPECT_TRUE(DiffTraces(*a, *b, {}).same());
  const DiffResult exact = DiffTraces(*a, *b, {.exact = true});
  EXPECT_FALSE(exact.same());
  EXPECT_EQ(exact.removed, 0u);
  EXPECT_EQ(exact.added, 0u);
}

TEST(Diff, AnotherPlaceAtTheSameAddressIsAChange) {
  const auto a = SyntheticReader();
  // The same numbers, but what was in buf1 now lies elsewhere.
  const auto b = SyntheticReader({.address_base = 0x1000});
  EXPECT_TRUE(DiffTraces(*a, *b, {}).same());
  const auto step3 = [](uint64_t record) {
    return record >= 134 && record <= 158;
  };
  const auto step4 = [](uint64_t record) {
    return record >= 160 && record <= 184;
  };
  const DiffResult steps = DiffTraces(*a, *a, {.in_a = step3, .in_b = step4});
  EXPECT_EQ(steps.changed, 4u);  // the position, and the cache three times
  ASSERT_FALSE(steps.differences.empty());
  EXPECT_EQ(steps.differences[0].changes,
            std::vector<std::string>{"parameter 2 131 -> 132"});
  EXPECT_EQ(
      steps.differences[1].changes,
      (std::vector<std::string>{"parameter 0 byte 0 buf4+0x300 -> buf4+0x400",
                                "parameter 0 byte 16 131 -> 132"}));
}

TEST(Diff, AnInsertedLaunchIsTheOnlyDifference) {
  const auto a = SyntheticReader();
  const auto b = SyntheticReader({.extra_launch_in_step = 3});
  const DiffResult there = DiffTraces(*a, *b, {});
  EXPECT_EQ(there.added, 1u);
  EXPECT_EQ(there.removed + there.changed, 0u);
  ASSERT_EQ(there.differences.size(), 1u);
  EXPECT_FALSE(there.differences[0].a.has_value());
  EXPECT_NE(there.differences[0].text_b.find("embed<<<9"), std::string::npos);
  const DiffResult back = DiffTraces(*b, *a, {});
  EXPECT_EQ(back.removed, 1u);
  EXPECT_EQ(back.added + back.changed, 0u);
}

TEST(Diff, AChangedParameterIsShownForEachLaunch) {
  const auto a = SyntheticReader();
  const auto b = SyntheticReader({.layer_constant = 8});
  const DiffResult result = DiffTraces(*a, *b, {});
  EXPECT_EQ(result.changed, 22u);  // 4 in the prefill, 3 in each of 6 steps
  for (const Difference& difference : result.differences) {
    EXPECT_EQ(difference.changes,
              std::vector<std::string>{"parameter 3 7 -> 8"});
  }
}

TEST(Diff, MoreStepsAreAdded) {
  const auto a = SyntheticReader({.steps = 4});
  const auto b = SyntheticReader({.steps = 5});
  const DiffResult result = DiffTraces(*a, *b, {});
  EXPECT_EQ(result.added, kSyntheticLaunchesPerStep + 2);
  EXPECT_EQ(result.removed, 0u);
}

}  // namespace
}  // namespace heddle::tools
