// SPDX-License-Identifier: Apache-2.0
#include "tools/call_set.h"

#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

constexpr uint64_t kRecords = 120;

trace::StepList Steps() {
  trace::StepList list;
  for (uint64_t i = 0; i < 8; ++i) {
    trace::Step step;
    step.first_record = 10 + 12 * i;
    step.end_record = step.first_record + 5 + i;
    list.steps.push_back(step);
  }
  return list;
}

absl::StatusOr<CallSet> Parse(const std::string& text) {
  return CallSet::Parse(
      text, []() -> absl::StatusOr<trace::StepList> { return Steps(); });
}

std::set<uint64_t> Members(const std::string& text) {
  const auto set = Parse(text);
  EXPECT_TRUE(set.ok()) << text << ": " << set.status().message();
  std::set<uint64_t> members;
  for (uint64_t i = 0; set.ok() && i < kRecords; ++i) {
    if (set->Contains(i)) members.insert(i);
  }
  if (set.ok() && !members.empty()) {
    EXPECT_GE(set->last(), *members.rbegin());
  }
  return members;
}

using Set = std::set<uint64_t>;

TEST(CallSet, ItemsAreNumbersRangesAndStrides) {
  EXPECT_EQ(Members("7"), Set({7}));
  EXPECT_EQ(Members("3-5"), Set({3, 4, 5}));
  EXPECT_EQ(Members("3-3"), Set({3}));
  EXPECT_EQ(Members("117-"), Set({117, 118, 119}));
  EXPECT_EQ(Members("10-20/4"), Set({10, 14, 18}));
  EXPECT_EQ(Members("100/9"), Set({100, 109, 118}));
  EXPECT_EQ(Members("*/50"), Set({0, 50, 100}));
  EXPECT_EQ(Members("*").size(), kRecords);
  EXPECT_EQ(Members("1, 3-4 ,9"), Set({1, 3, 4, 9}));
}

TEST(CallSet, StepsStandForTheirRecords) {
  EXPECT_EQ(Members("step0"), Set({10, 11, 12, 13, 14}));
  EXPECT_EQ(Members("step0,11,40"), Set({10, 11, 12, 13, 14, 40}));
  Set both = Members("step1");
  both.merge(Members("step4"));
  EXPECT_EQ(Members("step1-6/3"), both);
  EXPECT_EQ(Members("step6-"), Members("step6,step7"));
  EXPECT_EQ(Members("step*/9999999999999999999"), Members("step0"));
}

TEST(CallSet, StepsAreOnlySearchedForWhenNamed) {
  bool searched = false;
  const auto find = [&]() -> absl::StatusOr<trace::StepList> {
    searched = true;
    return absl::InternalError("cannot");
  };
  EXPECT_TRUE(CallSet::Parse("1-2,5", find).ok());
  EXPECT_FALSE(searched);
  EXPECT_EQ(CallSet::Parse("step1", find).status().message(), "cannot");
}

TEST(CallSet, ErrorsQuoteTheItem) {
  for (const std::string text :
       {"", "x", "1,,2", "5-3", "1-x", "-5", "+5", "1/0", "1/", "1/x", "steps",
        "step", "step-", "1--2", "1 2", "99999999999999999999", "1-2-3",
        "1/2/3", "**"}) {
    const auto set = Parse(text);
    ASSERT_EQ(set.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(set.status().message().find("call set: \""), 0u) << text;
  }
  EXPECT_EQ(Parse("step8").status().message(),
            "call set: \"step8\": the trace has 8 steps, 0 to 7 (see `heddle "
            "info`)");
  EXPECT_EQ(Parse("step2-8").status().code(), absl::StatusCode::kOutOfRange);
}

// Random sets against the meaning of each item, record by record.
TEST(CallSet, RandomSetsContainWhatTheirItemsSay) {
  std::mt19937 random(7);
  const auto below = [&random](uint64_t n) { return random() % n; };
  const trace::StepList steps = Steps();
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    Set expected;
    for (uint64_t items = 1 + below(4); items > 0; --items) {
      const bool step = below(3) == 0;
      const uint64_t limit = step ? steps.steps.size() : kRecords;
      const uint64_t first = below(limit);
      const uint64_t last = first + below(limit - first);
      const bool open = below(4) == 0;
      const uint64_t stride = 1 + below(3);
      absl::StrAppend(&text, text.empty() ? "" : ",", step ? "step" : "", first,
                      "-", open ? "" : absl::StrCat(last));
      if (stride > 1) absl::StrAppend(&text, "/", stride);
      for (uint64_t i = first; i <= (open ? limit - 1 : last); i += stride) {
        if (!step) {
          expected.insert(i);
          continue;
        }
        for (uint64_t r = steps.steps[i].first_record;
             r < steps.steps[i].end_record; ++r) {
          if (r < kRecords) expected.insert(r);
        }
      }
    }
    EXPECT_EQ(Members(text), expected) << text;
  }
}

}  // namespace
}  // namespace heddle::tools
