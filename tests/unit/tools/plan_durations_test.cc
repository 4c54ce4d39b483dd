// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_durations.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/status/status.h"
#include "absl/strings/match.h"

namespace heddle::tools {
namespace {

// A step of a copy, something that does nothing, and two kernels.
replay::Program Step() {
  replay::Program program;
  program.kernels.resize(2);
  program.kernels[0].name = "_Z1av";
  program.kernels[1].name = "_Z1bv";
  std::vector<replay::Operation>& operations = program.step.operations;
  operations.resize(4);
  operations[0].work = replay::CopyWork{};
  operations[0].label = "memcpy HtoD 4 B";
  replay::LaunchWork launch;
  launch.kernel = 1;
  operations[2].work = launch;
  operations[2].label = "_Z1bv";
  launch.kernel = 0;
  operations[3].work = launch;
  operations[3].label = "_Z1av";
  return program;
}

constexpr char kReport[] = R"json({"schema": 1, "timelines": [
  {"name": "graph", "activities": []},
  {"name": "serial", "activities": [
    {"order": 2, "name": "_Z1av", "kind": "kernel", "us": 3.5},
    {"order": 0, "name": "Memcpy HtoD (pageable)", "kind": "memcpy", "us": 1},
    {"order": 1, "name": "_Z1bv", "kind": "kernel", "us": 2.25}]}]})json";

TEST(PlanDurationsTest, TheSerialRunOfAReportIsMatchedByOrder) {
  const auto activities = ParseReportDurations(kReport, "r.json");
  ASSERT_TRUE(activities.ok()) << activities.status();
  const auto durations = MatchDurations(*activities, Step(), "r.json");
  ASSERT_TRUE(durations.ok()) << durations.status();
  EXPECT_EQ(*durations, (std::vector<double>{1, 0, 2.25, 3.5}));
}

TEST(PlanDurationsTest, AnotherStepsDurationsAreRefused) {
  const auto good = *ParseReportDurations(kReport, "r.json");
  const auto refused = [](std::vector<MeasuredActivity> activities,
                          const char* what) {
    const auto durations = MatchDurations(activities, Step(), "r.json");
    EXPECT_TRUE(absl::IsFailedPrecondition(durations.status()));
    EXPECT_TRUE(absl::StrContains(durations.status().message(), what))
        << durations.status();
  };
  auto changed = good;
  changed.pop_back();
  refused(changed, "the step does more");
  changed = good;
  changed.push_back({"_Z1av", true, 1});
  refused(changed, "has 4 activities");
  changed = good;
  std::swap(changed[1], changed[2]);
  refused(changed, "_Z1av");
  changed = good;
  changed[0].kernel = true;
  refused(changed, "activity 0");
}

TEST(PlanDurationsTest, WhatIsNoReportIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "hello", "{\"timelines\": 3}", "{\"timelines\": [3]}",
        "{\"timelines\": [{\"name\": \"serial\"}]}",
        "{\"timelines\": [{\"name\": \"serial\", \"activities\": [1]}]}",
        "{\"timelines\": [{\"name\": \"serial\", \"activities\": "
        "[{\"order\": 0}]}]}",
        "{\"timelines\": [{\"name\": \"serial\", \"activities\": [{\"order\": "
        "0, \"name\": \"a\", \"kind\": \"kernel\", \"us\": -1}]}]}"}) {
    const auto activities = ParseReportDurations(text, "r.json");
    EXPECT_TRUE(absl::IsInvalidArgument(activities.status())) << text;
    EXPECT_TRUE(absl::StrContains(activities.status().message(), "r.json"));
  }
}

TEST(PlanDurationsTest, DamagedReportsNeverCrash) {
  std::mt19937 random(5);
  int good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = kReport;
    for (uint32_t i = 1 + random() % 4; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 8 == 0) text.resize(random() % text.size());
    const auto activities = ParseReportDurations(text, "r.json");
    if (!activities.ok()) continue;
    good += MatchDurations(*activities, Step(), "r.json").ok() ? 1 : 0;
  }
  EXPECT_GT(good, 100);
  EXPECT_LT(good, 19000);
}

}  // namespace
}  // namespace heddle::tools
