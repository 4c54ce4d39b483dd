// SPDX-License-Identifier: Apache-2.0
// PlanBranches against what it promises, on random graphs, by brute force.

#include "runtime/plan/branches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

struct Problem {
  std::vector<bool> early;
  std::vector<double> durations;
  std::vector<Dependency> dependencies;

  absl::StatusOr<BranchPlan> Plan(uint32_t branches) const {
    return PlanBranches(early, dependencies, durations,
                        {.max_branches = branches, .costs = {}});
  }
};

Problem RandomProblem(Random& random, uint32_t max_nodes) {
  Problem problem;
  const uint32_t count = 1 + Below(random, max_nodes);
  const uint32_t density = 1 + Below(random, 8);
  for (uint32_t to = 0; to < count; ++to) {
    problem.early.push_back(!OneIn(random, 4));
    problem.durations.push_back(
        OneIn(random, 5) ? 0 : 0.25 * static_cast<double>(Below(random, 40)));
    for (uint32_t from = 0; from < to; ++from) {
      if (OneIn(random, density)) problem.dependencies.push_back({from, to});
    }
  }
  std::shuffle(problem.dependencies.begin(), problem.dependencies.end(),
               random);
  return problem;
}

using Matrix = std::vector<std::vector<bool>>;

Matrix Closure(size_t count, absl::Span<const Dependency> edges) {
  Matrix before(count, std::vector<bool>(count));
  for (const auto& [from, to] : edges) before[from][to] = true;
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < count; ++i) {
      if (!before[i][k]) continue;
      for (size_t j = 0; j < count; ++j) {
        if (before[k][j]) before[i][j] = true;
      }
    }
  }
  return before;
}

// The most nodes no two of which are ordered; tries all sets, up to 20 nodes.
uint32_t WidthByTrial(const Matrix& before) {
  uint32_t width = 0;
  for (uint32_t set = 1; set < (1u << before.size()); ++set) {
    bool antichain = true;
    uint32_t members = 0;
    for (size_t i = 0; i < before.size() && antichain; ++i) {
      if ((set >> i & 1) == 0) continue;
      ++members;
      for (size_t j = 0; j < before.size() && antichain; ++j) {
        antichain = (set >> j & 1) == 0 || !before[i][j];
      }
    }
    if (antichain) width = std::max(width, members);
  }
  return width;
}

// The estimate from the edges alone.
double EstimateOf(const Problem& problem, const BranchPlan& plan) {
  const EdgeCosts costs;
  std::vector<double> end(problem.early.size(), -1);
  double latest = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t node = 0; node < end.size(); ++node) {
      if (end[node] >= 0) continue;
      double start = 0;
      bool ready = true;
      for (const auto& [from, to] : plan.edges) {
        if (to != node) continue;
        ready &= end[from] >= 0;
        start = std::max(
            start,
            end[from] + costs.Of(problem.early[from] && problem.early[to],
                                 plan.branch[from] == plan.branch[to]));
      }
      if (!ready) continue;
      EXPECT_NEAR(start, plan.start_us[node], 1e-9);
      end[node] = start + problem.durations[node];
      latest = std::max(latest, end[node]);
      changed = true;
    }
  }
  return latest;
}

TEST(BranchesTest, KeepEveryDependencyAndBoundWhatRunsAtOnce) {
  Random random(1);
  uint64_t faster = 0;
  uint64_t widths = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t branches = 1 + Below(random, 4);
    const bool small = round % 4 == 0;
    const Problem problem = RandomProblem(random, small ? 11 : 45);
    const size_t count = problem.early.size();
    const auto plan = problem.Plan(branches);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_LE(plan->order.size(), branches);
    // Each node is in one place, that of its branch.
    std::vector<Dependency> required = problem.dependencies;
    size_t placed = 0;
    for (uint32_t b = 0; b < plan->order.size(); ++b) {
      for (size_t i = 0; i < plan->order[b].size(); ++i) {
        ASSERT_EQ(plan->branch[plan->order[b][i]], b);
        if (i > 0) {
          required.push_back({plan->order[b][i - 1], plan->order[b][i]});
        }
      }
      placed += plan->order[b].size();
    }
    ASSERT_EQ(placed, count);
    // The graph orders what dependencies and branches order, and no more.
    const Matrix before = Closure(count, plan->edges);
    ASSERT_EQ(before, Closure(count, required)) << round;
    for (size_t i = 0; i < count; ++i) ASSERT_FALSE(before[i][i]);
    // No edge is implied by the others.
    for (size_t e = 0; small && e < plan->edges.size(); ++e) {
      std::vector<Dependency> others = plan->edges;
      others.erase(others.begin() + static_cast<ptrdiff_t>(e));
      ASSERT_NE(Closure(count, others), before) << round;
    }
    if (small) {
      const uint32_t width = WidthByTrial(before);
      ASSERT_LE(width, branches);
      widths += width;
    }
    ASSERT_LE(plan->estimate_us, plan->chain_us + 1e-9);
    ASSERT_NEAR(plan->estimate_us, EstimateOf(problem, *plan), 1e-9);
    faster += plan->estimate_us < plan->chain_us - 1e-6 ? 1 : 0;
    if (plan->estimate_us > plan->chain_us - 1e-6) {
      ASSERT_EQ(plan->order.size(), 1u) << "branches that gain nothing";
    }
    const auto again = problem.Plan(branches);
    ASSERT_EQ(again->edges, plan->edges);
    ASSERT_EQ(again->order, plan->order);
  }
  std::printf("%llu of %d graphs got faster, widths sum up to %llu\n",
              static_cast<unsigned long long>(faster), kRounds,
              static_cast<unsigned long long>(widths));
  EXPECT_GT(faster, 1000u);
}

TEST(BranchesTest, OneBranchIsTheChainInTheOrderOfSubmission) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = RandomProblem(random, 30);
    const auto plan = problem.Plan(1);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->edges.size() + 1, problem.early.size());
    for (uint32_t i = 0; i < plan->edges.size(); ++i) {
      ASSERT_EQ(plan->edges[i], Dependency(i, i + 1));
    }
    ASSERT_EQ(plan->estimate_us, plan->chain_us);
  }
}

TEST(BranchesTest, MoreBranchesFindTheBestOfAWideGraph) {
  // Four independent kernels of 10 us: one after another, two at a time, all.
  Problem problem{std::vector<bool>(4, true), std::vector<double>(4, 10.0), {}};
  EXPECT_NEAR(problem.Plan(1)->estimate_us, 40 + 3 * 0.58, 1e-9);
  EXPECT_NEAR(problem.Plan(2)->estimate_us, 20 + 0.58, 1e-9);
  EXPECT_NEAR(problem.Plan(4)->estimate_us, 10, 1e-9);
  EXPECT_TRUE(problem.Plan(4)->edges.empty());
}

TEST(BranchesTest, AShortSideTrackIsNotWorthAForkAndAJoin) {
  // 0 → {1, 2} → 3, where 1 is long.
  const auto plan_with = [](double side_us) {
    Problem problem{std::vector<bool>(4, true),
                    {10, 10, side_us, 10},
                    {{0, 1}, {0, 2}, {1, 3}, {2, 3}}};
    return *problem.Plan(2);
  };
  // Beside the other it costs nothing but an edge that is waited for in time;
  // in the chain its time and an edge.
  EXPECT_EQ(plan_with(5).order.size(), 2u);
  // One that the join would be late for.
  Problem problem{std::vector<bool>(3, true), {1, 1, 1}, {{0, 2}, {1, 2}}};
  // In the chain: 3 + 2 x 0.58. Apart: 1 + (0.58 + 1) + 1.
  EXPECT_NEAR(problem.Plan(2)->estimate_us, 3.58, 1e-9);
  problem.durations = {1, 0.2, 1};
  // In the chain: 2.2 + 2 x 0.58 = 3.36; apart: the join alone is 3.58, but
  // from the short one's branch nothing has to be waited for: 0.2 + 1.58 + 1
  // against 1 + 0.58 + 1.
  EXPECT_NEAR(problem.Plan(2)->estimate_us, 2.78, 1e-9);
  problem.durations = {1, 1, 1};
  problem.dependencies = {{0, 1}, {1, 2}, {0, 2}};
  EXPECT_EQ(problem.Plan(2)->order.size(), 1u) << "a chain stays one";
}

TEST(BranchesTest, FiftyThousandNodesAreNotTooMany) {
  Random random(3);
  Problem problem;
  constexpr uint32_t kNodes = 50000;
  for (uint32_t i = 0; i < kNodes; ++i) {
    problem.early.push_back(true);
    problem.durations.push_back(1 + Below(random, 5));
    for (uint32_t d = 1; d < 12 && d <= i; d += 3) {
      if (OneIn(random, 2)) problem.dependencies.push_back({i - d, i});
    }
  }
  const auto plan = problem.Plan(8);
  ASSERT_TRUE(plan.ok());
  EXPECT_LT(plan->estimate_us, 0.8 * plan->chain_us);
}

TEST(BranchesTest, RefuseWhatIsNoProblem) {
  Problem problem{{true, true}, {1, 1}, {{1, 0}}};
  EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(2).status()));
  problem.dependencies = {{0, 2}};
  EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(2).status()));
  problem.dependencies = {};
  EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(kMaxBranches + 1).status()));
  for (const double us :
       {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    problem.durations[1] = us;
    EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(2).status())) << us;
  }
  problem.durations.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(problem.Plan(2).status()));
  const Problem none;
  ASSERT_TRUE(none.Plan(2).ok());
  EXPECT_EQ(none.Plan(2)->estimate_us, 0);
}

}  // namespace
}  // namespace heddle::plan
