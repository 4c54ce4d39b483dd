// SPDX-License-Identifier: Apache-2.0
#include "runtime/report/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle::report {
namespace {

Activity At(uint64_t start, uint64_t end, const std::string& name = "k",
            uint64_t stream = 7) {
  Activity activity;
  activity.name = name;
  activity.start_ns = start;
  activity.end_ns = end;
  activity.stream = stream;
  return activity;
}

TEST(SummaryTest, BusyTimeAndGapsAgreeWithCountingNanoseconds) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Timeline timeline;
    const uint64_t origin = 1000;
    for (uint32_t i = 0; i < 1 + random() % 12; ++i) {
      const uint64_t start = origin + random() % 300;
      timeline.activities.push_back(At(start, start + random() % 40));
    }
    NumberActivities(timeline.activities);
    std::vector<int> running(400, 0);
    uint64_t first = ~uint64_t{0};
    uint64_t last = 0;
    uint64_t sum = 0;
    for (const Activity& a : timeline.activities) {
      for (uint64_t t = a.start_ns; t < a.end_ns; ++t) ++running[t - origin];
      first = std::min(first, a.start_ns);
      last = std::max(last, a.end_ns);
      sum += a.end_ns - a.start_ns;
    }
    const auto busy = static_cast<uint64_t>(std::count_if(
        running.begin(), running.end(), [](int count) { return count > 0; }));
    const Summary summary = Summarize(timeline);
    ASSERT_EQ(summary.span_ns, last - first);
    ASSERT_EQ(summary.busy_ns, busy);
    ASSERT_EQ(summary.sum_ns, sum);
    ASSERT_EQ(summary.gap_ns, summary.span_ns - summary.busy_ns);
    uint64_t gaps = 0;
    for (const Gap& gap : summary.gaps) {
      gaps += gap.ns;
      ASSERT_EQ(timeline.activities[gap.before].start_ns -
                    timeline.activities[gap.after].end_ns,
                gap.ns);
    }
    ASSERT_EQ(gaps, summary.gap_ns);
  }
}

TEST(SummaryTest, TotalsAreByNameMostTimeFirst) {
  Timeline timeline;
  timeline.activities = {At(0, 10, "a"), At(10, 40, "b"), At(50, 55, "a")};
  const Summary summary = Summarize(timeline);
  ASSERT_EQ(summary.totals.size(), 2U);
  EXPECT_EQ(summary.totals[0].name, "b");
  EXPECT_EQ(summary.totals[1].count, 2U);
  EXPECT_EQ(summary.totals[1].total_ns, 15U);
  EXPECT_EQ(summary.totals[1].min_ns, 5U);
  EXPECT_EQ(summary.totals[1].max_ns, 10U);
  EXPECT_DOUBLE_EQ(summary.totals[0].share, 30.0 / 45);
}

TEST(SummaryTest, AnEmptyTimelineHasASummary) {
  EXPECT_EQ(Summarize(Timeline{}).span_ns, 0U);
}

TEST(SummaryTest, AnActivityThatEndsBeforeItStartsHasNoDuration) {
  Timeline timeline;
  timeline.activities = {At(10, 5), At(20, 30)};
  const Summary summary = Summarize(timeline);
  EXPECT_EQ(summary.sum_ns, 10U);
  EXPECT_EQ(summary.span_ns, 20U);
}

TEST(ActivityTest, TheOrderIsThatOfSubmissionAndInAGraphThatOfTheNodes) {
  Activity late = At(50, 60);
  late.correlation = 1;
  Activity early = At(10, 20);
  early.correlation = 2;
  std::vector<Activity> serial = {late, early};
  NumberActivities(serial);
  EXPECT_EQ(serial[0].start_ns, 10U);
  EXPECT_EQ(serial[0].order, 1U);
  EXPECT_EQ(serial[1].order, 0U);

  late.correlation = early.correlation = 9;
  late.graph_node = 3;
  early.graph_node = 4;
  std::vector<Activity> graph = {late, early};
  NumberActivities(graph);
  EXPECT_EQ(graph[0].order, 1U);
  EXPECT_EQ(graph[1].order, 0U);
}

TEST(NameTest, ManglednamesAreShownAsTheSourceHasThem) {
  EXPECT_EQ(Demangle("_Z5scalePff"), "scale(float*, float)");
  EXPECT_EQ(Demangle("nvjet_hsh_64x8"), "nvjet_hsh_64x8");
}

TEST(NameTest, LongNamesLoseTheirArgumentsFirst) {
  EXPECT_EQ(ShortName("_Z5scalePff", 80), "scale(float*, float)");
  EXPECT_EQ(ShortName("_Z5scalePff", 10), "scale");
  EXPECT_EQ(ShortName("an_unmangled_name_that_is_long", 10), "an_unma...");
}

}  // namespace
}  // namespace heddle::report
