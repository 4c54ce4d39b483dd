// SPDX-License-Identifier: Apache-2.0
// Whole plans of random steps, and what a damaged one is told.

#include "runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "runtime/plan/explain.h"
#include "tests/unit/plan/random_effects.h"
#include "tests/unit/plan/random_graph.h"
#include "tests/unit/plan/safety.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

constexpr Style kStyles[] = {Style::kProgrammaticEarly, Style::kProgrammatic,
                             Style::kLaunchOrder};

// The program's own graph is a chain with some edges left out, so that it need
// not keep what the accesses need: O2 goes by the order of submission.
PlanInput RandomInput(Random& random, uint32_t max_nodes) {
  GraphMix mix;
  mix.max_nodes = max_nodes;
  mix.own_pdl = 0;
  PlanInput input;
  input.graph = RandomGraph(random, mix);
  const auto count = static_cast<uint32_t>(input.graph.nodes.size());
  input.effects = RandomEffects(random, count, 20);
  for (uint32_t i = 0; i < count; ++i) {
    input.durations_us.push_back(0.5 * Below(random, 20));
  }
  return input;
}

PlanOptions RandomOptions(Random& random) {
  PlanOptions options;
  options.level = OneIn(random, 4) ? Level::kO1 : Level::kO2;
  options.style = kStyles[Below(random, 3)];
  options.branches.max_branches = 1 + Below(random, 3);
  return options;
}

TEST(PlanTest, PlansOfRandomStepsKeepWhatTheirLevelKeeps) {
  Random random(21);
  uint64_t branched = 0;
  uint64_t early = 0;
  for (int round = 0; round < 20000; ++round) {
    const PlanInput input = RandomInput(random, 9);
    const PlanOptions options = RandomOptions(random);
    const auto plan = MakePlan(input, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->nodes.size(), input.graph.nodes.size());
    ASSERT_LE(plan->branches, options.branches.max_branches);
    const OverlapPlan overlap = plan->Overlap();
    if (options.level == Level::kO2) {
      ASSERT_TRUE(IsSafe(input.graph.nodes, overlap, input.effects)) << round;
      branched += plan->branches > 1 ? 1 : 0;
    } else {
      ASSERT_EQ(plan->edges.size(), input.graph.edges.size());
      const Model::Order always = AlwaysIn(input.graph.nodes, overlap);
      for (const Edge& edge : input.graph.edges) {
        ASSERT_TRUE(Completes(always, edge.from, edge.to));
      }
    }
    early += plan->converted;
    for (const PlannedEdge& edge : plan->edges) {
      // Reasons are what forces that edge, in the order of submission.
      ASSERT_EQ(!edge.reasons.empty(), Conflicts(input.effects[edge.edge.from],
                                                 input.effects[edge.edge.to]));
      ASSERT_EQ(MechanismOf(edge.edge) == Mechanism::kFull,
                edge.edge.type == kTypeDefault);
    }
  }
  std::printf("%llu plans with branches, %llu early edges\n",
              static_cast<unsigned long long>(branched),
              static_cast<unsigned long long>(early));
  EXPECT_GT(branched, 1000u);
  EXPECT_GT(early, 5000u);
}

TEST(PlanTest, DamagedPlansAreRefusedOrHarmless) {
  Random random(22);
  int refused = 0;
  int harmless = 0;
  for (int round = 0; round < 20000; ++round) {
    const PlanInput input = RandomInput(random, 7);
    PlanOptions options = RandomOptions(random);
    options.level = Level::kO2;
    auto plan = MakePlan(input, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const size_t kind = Below(random, 3);
    if (kind == 0) {
      plan->nodes[Below(random, static_cast<uint32_t>(plan->nodes.size()))]
          .prologue = static_cast<Prologue>(Below(random, 4));
    } else if (plan->edges.empty()) {
      continue;
    } else {
      const auto at = static_cast<ptrdiff_t>(
          Below(random, static_cast<uint32_t>(plan->edges.size())));
      Edge& edge = plan->edges[static_cast<size_t>(at)].edge;
      if (kind == 1) {
        plan->edges.erase(plan->edges.begin() + at);
      } else {
        edge.type = static_cast<uint8_t>(Below(random, 3));
        edge.from_port = static_cast<uint8_t>(Below(random, 4));
      }
    }
    const absl::Status status = CheckPlan(input, *plan, options.limits);
    if (status.ok()) {
      ASSERT_TRUE(IsSafe(input.graph.nodes, plan->Overlap(), input.effects));
      ++harmless;
    } else {
      ASSERT_TRUE(absl::IsFailedPrecondition(status) ||
                  absl::IsInvalidArgument(status))
          << status;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(harmless, 500);
}

// 0 writes a, which 1 and 2 read; 3 reads what those wrote.
PlanInput Diamond() {
  PlanInput input;
  Node kernel;
  kernel.kernel = kernel.patchable = true;
  input.graph.nodes.assign(4, kernel);
  input.graph.edges = {{0, 1}, {1, 2}, {2, 3}};
  const auto buffer = [](uint64_t number) {
    return access::ExtentSet({{number * 0x1000, 0x800}});
  };
  input.effects.resize(4);
  input.effects[0].writes = buffer(1);
  input.effects[1].reads = input.effects[2].reads = buffer(1);
  input.effects[1].writes = buffer(2);
  input.effects[2].writes = buffer(3);
  input.effects[3].reads = buffer(2);
  input.effects[3].reads.Add(buffer(3));
  input.durations_us = {4, 10, 10, 4};
  input.names = {"embed", "query", "key", "attention"};
  return input;
}

TEST(PlanTest, ADiamondGetsTwoBranchesThatStartEarly) {
  const PlanInput input = Diamond();
  PlanOptions options;
  const auto plan = MakePlan(input, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->branches, 2u);
  ASSERT_EQ(plan->edges.size(), 4u);
  EXPECT_EQ(plan->converted, 4u) << "across fork and join too";
  for (const PlannedEdge& edge : plan->edges) {
    ASSERT_EQ(edge.reasons.size(), 1u);
    EXPECT_EQ(edge.reasons[0].hazard, Hazard::kReadAfterWrite);
    EXPECT_EQ(edge.reasons[0].bytes, 0x800u);
  }
  EXPECT_NEAR(plan->graph_us, 28 + 3 * 0.93, 1e-9);
  EXPECT_NEAR(plan->estimate_us, 18 + 2 * 0.58 + 1.0, 1.0 + 1e-9);

  const auto boundaries = ExplainPlan(input, *plan, options.branches.costs);
  ASSERT_TRUE(boundaries.ok());
  ASSERT_EQ(boundaries->size(), 3u);
  EXPECT_EQ((*boundaries)[0].relation, Relation::kEdge);
  EXPECT_EQ((*boundaries)[0].mechanism, Mechanism::kProgrammatic);
  EXPECT_EQ((*boundaries)[1].relation, Relation::kUnordered);
  EXPECT_TRUE((*boundaries)[1].reasons.empty());
  EXPECT_GT((*boundaries)[1].gain_us, 9);
  EXPECT_EQ((*boundaries)[2].relation, Relation::kEdge);
}

TEST(PlanTest, NothingKnownMeansOneChain) {
  PlanInput input = Diamond();
  for (Effects& e : input.effects) e.reads_anything = e.writes_anything = true;
  const auto plan = MakePlan(input, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->branches, 1u);
  EXPECT_EQ(plan->edges.size(), 3u);
  ASSERT_FALSE(plan->notes.empty());
  EXPECT_TRUE(absl::StrContains(plan->notes.back(), "4 of 4 operations"))
      << plan->notes.back();
}

TEST(PlanTest, O2WithoutAccessesIsRefused) {
  PlanInput input = Diamond();
  input.effects.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(MakePlan(input, {}).status()));
  PlanOptions options;
  options.level = Level::kO1;
  const auto plan = MakePlan(input, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->converted, 3u);
  input.durations_us.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(MakePlan(input, options).status()));
}

}  // namespace
}  // namespace heddle::plan
