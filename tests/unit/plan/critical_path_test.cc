// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace heddle::plan {
namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

// Looks at every path.
double LongestPath(const std::vector<double>& durations, const Pairs& edges,
                   uint32_t to) {
  double longest = 0;
  for (const auto& [from, end] : edges) {
    if (end != to) continue;
    longest = std::max(longest, LongestPath(durations, edges, from));
  }
  return longest + durations[to];
}

struct Sample {
  std::vector<double> durations;  // whole numbers
  Pairs edges;
};

Sample RandomSample(std::mt19937& random) {
  Sample sample;
  sample.durations.resize(1 + random() % 9);
  const uint32_t one_in = 1 + random() % 5;
  for (uint32_t to = 0; to < sample.durations.size(); ++to) {
    sample.durations[to] = static_cast<double>(random() % 6);
    for (uint32_t from = 0; from < to; ++from) {
      if (random() % one_in == 0) sample.edges.emplace_back(from, to);
    }
  }
  return sample;
}

TEST(CriticalPathTest, IsTheLongestOfAllPaths) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const Sample sample = RandomSample(random);
    double longest = 0;
    for (uint32_t op = 0; op < sample.durations.size(); ++op) {
      longest =
          std::max(longest, LongestPath(sample.durations, sample.edges, op));
    }
    const CriticalPath path = FindCriticalPath(sample.durations, sample.edges);
    ASSERT_EQ(path.length, longest);
    double sum = 0;
    for (size_t k = 0; k < path.operations.size(); ++k) {
      sum += sample.durations[path.operations[k]];
      if (k == 0) continue;
      ASSERT_NE(
          std::find(sample.edges.begin(), sample.edges.end(),
                    std::make_pair(path.operations[k - 1], path.operations[k])),
          sample.edges.end());
    }
    ASSERT_EQ(sum, longest);
  }
}

TEST(CriticalPathTest, TheProfileCountsWhatRunsAtEveryMoment) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const Sample sample = RandomSample(random);
    std::vector<double> starts;
    double length = 0;
    double sum = 0;
    for (uint32_t op = 0; op < sample.durations.size(); ++op) {
      const double end = LongestPath(sample.durations, sample.edges, op);
      starts.push_back(end - sample.durations[op]);
      length = std::max(length, end);
      sum += sample.durations[op];
    }
    std::vector<double> time_with(1);
    for (int second = 0; second < static_cast<int>(length); ++second) {
      const double now = second;
      size_t running = 0;
      for (uint32_t op = 0; op < starts.size(); ++op) {
        if (starts[op] <= now && now < starts[op] + sample.durations[op]) {
          ++running;
        }
      }
      time_with.resize(std::max(time_with.size(), running + 1));
      ++time_with[running];
    }
    const ParallelismProfile profile =
        ProfileParallelism(sample.durations, sample.edges);
    ASSERT_EQ(profile.time_with, time_with);
    ASSERT_EQ(profile.length, length);
    ASSERT_EQ(profile.sum, sum);
  }
}

TEST(CriticalPathTest, NothingTakesNoTime) {
  EXPECT_TRUE(FindCriticalPath({}, {}).operations.empty());
  const ParallelismProfile profile = ProfileParallelism({}, {});
  EXPECT_EQ(profile.length, 0);
  EXPECT_EQ(profile.Average(), 1);
}

}  // namespace
}  // namespace heddle::plan
