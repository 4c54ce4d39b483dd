// SPDX-License-Identifier: Apache-2.0
//
// Statistics of timed runs.

#include "runtime/replay/timing.h"

#include <gtest/gtest.h>

#include <random>

namespace heddle::replay {
namespace {

Timing Of(std::vector<double> us) {
  Timing timing;
  timing.us = std::move(us);
  Summarize(timing);
  return timing;
}

Timing RandomTiming(std::mt19937& random, double mean) {
  std::vector<double> us(21);
  for (double& value : us) {
    value = mean * (0.9 + 0.2 * static_cast<double>(random() % 1000) / 1000);
  }
  return Of(std::move(us));
}

TEST(CompareTimings, IsTheRatioOfMediansWithTheSpreadOfRatiosByTurn) {
  const Timing graph = Of({10, 22, 30, 40, 50});
  const Timing other = Of({10, 11, 15, 20, 20});
  const Speedup speedup = CompareTimings(graph, other);
  EXPECT_DOUBLE_EQ(speedup.ratio, 2);
  // By turn: 1, 2, 2, 2, 2.5.
  EXPECT_DOUBLE_EQ(speedup.spread, 0);
}

TEST(CompareTimings, WhatDriftsInBothCancelsOut) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    const Timing graph = RandomTiming(random, 100);
    Timing other = graph;
    for (double& value : other.us) value /= 1.25;
    Summarize(other);
    EXPECT_NEAR(CompareTimings(graph, other).ratio, 1.25, 1e-9);
    EXPECT_NEAR(CompareTimings(graph, other).spread, 0, 1e-9);
    EXPECT_GT(graph.spread_us, 0);
  }
}

TEST(CompareTimings, IsTheInverseTheOtherWayRound) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const Timing a = RandomTiming(random, 100);
    const Timing b = RandomTiming(random, 80);
    const Speedup there = CompareTimings(a, b);
    EXPECT_NEAR(there.ratio * CompareTimings(b, a).ratio, 1, 1e-9);
    EXPECT_GT(there.ratio, 1);
    EXPECT_GT(there.spread, 0);
    EXPECT_LT(there.spread, 0.2);
  }
}

TEST(CompareTimings, NothingToCompareIsZero) {
  EXPECT_EQ(CompareTimings(Of({}), Of({1, 2})).ratio, 0);
  EXPECT_EQ(CompareTimings(Of({1, 2}), Of({})).ratio, 0);
  EXPECT_EQ(CompareTimings(Of({1, 2}), Of({0, 0})).ratio, 0);
}

}  // namespace
}  // namespace heddle::replay
