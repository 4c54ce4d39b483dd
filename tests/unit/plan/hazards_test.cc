// SPDX-License-Identifier: Apache-2.0
// CheckHazards against the execution model: no graph is accepted in which two
// operations that share a byte, of which one writes, can run in the wrong
// order; and none is refused without that if all of its edges are strong. (An
// edge that is not orders what its producer's start had to wait for; the check
// makes no use of that.)

#include "runtime/plan/hazards.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/happens_before.h"
#include "tests/unit/plan/random_effects.h"
#include "tests/unit/plan/random_graph.h"
#include "tests/unit/plan/safety.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

constexpr Style kStyles[] = {Style::kProgrammaticEarly, Style::kProgrammatic,
                             Style::kLaunchOrder};

// What both searches say, which must be the same.
bool Accepts(const std::vector<Node>& nodes, const OverlapPlan& plan,
             absl::Span<const Effects> effects) {
  const absl::Status pairs =
      CheckHazards(nodes, plan, effects, {}, HazardSearch::kPairs);
  const absl::Status sweep =
      CheckHazards(nodes, plan, effects, {}, HazardSearch::kSweep);
  EXPECT_EQ(pairs.code(), sweep.code()) << pairs << sweep;
  EXPECT_TRUE(pairs.ok() || absl::IsFailedPrecondition(pairs)) << pairs;
  EXPECT_EQ(CheckHazards(nodes, plan, effects), pairs);
  return pairs.ok();
}

OverlapPlan PlainPlan(const Graph& graph) {
  OverlapPlan plan;
  plan.edges = graph.edges;
  plan.prologue.resize(graph.nodes.size());
  return plan;
}

// The graph of a branch plan.
Graph BranchGraph(const std::vector<Node>& nodes,
                  absl::Span<const Effects> effects, uint32_t branches) {
  std::vector<bool> early;
  for (const Node& node : nodes) early.push_back(node.kernel);
  const auto plan = PlanBranches(early, BuildDependencies(effects).Pairs(),
                                 std::vector<double>(nodes.size(), 3.0),
                                 {.max_branches = branches, .costs = {}});
  EXPECT_TRUE(plan.ok()) << plan.status();
  Graph graph{nodes, {}};
  for (const auto& [from, to] : plan->edges) graph.edges.push_back({from, to});
  return graph;
}

std::vector<Node> RandomNodes(Random& random, uint32_t count) {
  GraphMix mix;
  mix.min_nodes = mix.max_nodes = count;
  mix.own_pdl = 0;
  return RandomGraph(random, mix).nodes;
}

TEST(HappensBeforeTest, IsWhatAlwaysHappensInTheExecutionModel) {
  Random random(11);
  uint64_t ordered = 0;
  uint64_t strong = 0;
  for (int round = 0; round < 4000; ++round) {
    GraphMix mix;
    mix.max_nodes = 8;
    mix.own_pdl = 0;
    const Graph graph = RandomGraph(random, mix);
    const OverlapPlan plan = RandomPlan(random, graph);
    const auto order =
        HappensBefore::Create(graph.nodes, plan.edges, plan.prologue);
    ASSERT_TRUE(order.ok()) << order.status();
    const Model::Order always = AlwaysIn(graph.nodes, plan);
    for (uint32_t a = 0; a < graph.nodes.size(); ++a) {
      for (uint32_t b = 0; b < graph.nodes.size(); ++b) {
        if (a == b) continue;
        const bool completes = Completes(always, a, b);
        ASSERT_LE(order->Before(a, b), completes)
            << round << ": " << a << ", " << b;
        if (AllStrong(plan)) {
          ASSERT_EQ(order->Before(a, b), completes);
          ++strong;
        }
        ordered += order->Before(a, b) ? 1 : 0;
      }
    }
    for (const auto& chain : order->chains()) {
      for (size_t i = 1; i < chain.size(); ++i) {
        ASSERT_TRUE(order->Before(chain[i - 1], chain[i]));
      }
    }
  }
  EXPECT_GT(ordered, 1000u);
  EXPECT_GT(strong, 1000u);
}

TEST(HazardsTest, NoRandomPlanIsAcceptedThatIsNotSafe) {
  Random random(12);
  uint64_t accepted = 0;
  uint64_t refused_strong = 0;
  constexpr int kRounds = 100000;
  for (int round = 0; round < kRounds; ++round) {
    GraphMix mix;
    mix.max_nodes = 7;
    mix.own_pdl = 0;
    const Graph graph = RandomGraph(random, mix);
    const OverlapPlan plan = RandomPlan(random, graph);
    const auto count = static_cast<uint32_t>(graph.nodes.size());
    const auto effects = RandomEffects(random, count, 10);
    const bool safe = IsSafe(graph.nodes, plan, effects);
    const bool accepts = Accepts(graph.nodes, plan, effects);
    ASSERT_LE(accepts, safe) << round;
    if (AllStrong(plan)) {
      ASSERT_EQ(accepts, safe) << round;
      refused_strong += safe ? 0 : 1;
    }
    accepted += accepts ? 1 : 0;
  }
  std::printf("%llu of %d accepted\n",
              static_cast<unsigned long long>(accepted), kRounds);
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(refused_strong, 1000u);
}

TEST(HazardsTest, AcceptBranchPlansInEveryStyleAndMissEachEdgeThatTheyNeed) {
  Random random(13);
  uint64_t dropped = 0;
  uint64_t needed = 0;
  uint64_t early = 0;
  for (int round = 0; round < 1200; ++round) {
    const uint32_t count = 2 + Below(random, 9);
    const std::vector<Node> nodes = RandomNodes(random, count);
    const auto effects = RandomEffects(random, count, 20);
    const Graph graph = BranchGraph(nodes, effects, 1 + Below(random, 3));
    std::vector<OverlapPlan> plans = {PlainPlan(graph)};
    for (const Style style : kStyles) {
      plans.push_back(*PlanOverlap(graph, style, {}));
      early += plans.back().converted;
    }
    for (const OverlapPlan& plan : plans) {
      ASSERT_TRUE(CheckOrder(graph, plan).ok());
      ASSERT_TRUE(Accepts(nodes, plan, effects)) << round;
      for (size_t e = 0; e < plan.edges.size(); ++e) {
        OverlapPlan less = plan;
        less.edges.erase(less.edges.begin() + static_cast<ptrdiff_t>(e));
        const bool safe = IsSafe(nodes, less, effects);
        ASSERT_EQ(Accepts(nodes, less, effects), safe) << round;
        ++dropped;
        needed += safe ? 0 : 1;
      }
      // Without its wait a kernel follows nothing that it waited for.
      for (uint32_t node = 0; node < count; ++node) {
        if (!Waits(plan.prologue[node])) continue;
        OverlapPlan bare = plan;
        bare.prologue[node] = Prologue::kNone;
        ASSERT_LE(Accepts(nodes, bare, effects), IsSafe(nodes, bare, effects));
      }
    }
  }
  std::printf("%llu edges dropped, %llu of them needed; %llu converted\n",
              static_cast<unsigned long long>(dropped),
              static_cast<unsigned long long>(needed),
              static_cast<unsigned long long>(early));
  EXPECT_GT(needed, 5000u);
  EXPECT_GT(dropped - needed, 100u);
  EXPECT_GT(early, 5000u);
}

// A program of layers that use the same buffers again and again.
std::vector<Effects> Layers(uint32_t count) {
  constexpr uint64_t kBuffer = 4096;
  std::vector<Effects> effects(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto buffer = [](uint64_t number) {
      return access::ExtentSet({{kBuffer * (1 + number), kBuffer}});
    };
    // Weights of its own, and one of six activations after another.
    effects[i].reads = buffer(100 + i);
    effects[i].reads.Add(buffer(i % 6));
    effects[i].writes = buffer((i + 1 + i / 7 % 2) % 6);
  }
  return effects;
}

TEST(HazardsTest, LargePlansAreCheckedAndOneMissingEdgeIsFoundInThem) {
  Random random(14);
  for (const uint32_t count : {5000u, 60000u}) {
    Node kernel;
    kernel.kernel = kernel.patchable = true;
    const std::vector<Node> nodes(count, kernel);
    const std::vector<Effects> effects = Layers(count);
    const Graph graph = BranchGraph(nodes, effects, 3);
    OverlapPlan plan = *PlanOverlap(graph, Style::kProgrammatic, {});
    ASSERT_TRUE(CheckHazards(nodes, plan, effects).ok());
    // An edge that bytes force, and that nothing else implies.
    const Dependencies dependencies = BuildDependencies(effects);
    for (size_t e = plan.edges.size() / 2;; ++e) {
      ASSERT_LT(e, plan.edges.size());
      const Edge edge = plan.edges[e];
      if (ReasonsBetween(effects[edge.from], effects[edge.to]).empty())
        continue;
      OverlapPlan less = plan;
      less.edges.erase(less.edges.begin() + static_cast<ptrdiff_t>(e));
      const absl::Status status = CheckHazards(nodes, less, effects);
      ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
      break;
    }
  }
}

TEST(HazardsTest, TheMessageNamesBothOperationsAndTheBytes) {
  std::vector<Effects> effects(2);
  effects[0].writes = access::ExtentSet({{0x1000, 0x100}, {0x2000, 0x80}});
  effects[1].reads = access::ExtentSet({{0x1080, 0x1000}});
  const std::vector<Node> nodes(2);
  const OverlapPlan plan = PlainPlan({nodes, {}});
  const absl::Status status =
      CheckHazards(nodes, plan, effects, {"gemm", "softmax"});
  EXPECT_EQ(status.message(),
            "operation 1 (softmax) could begin before operation 0 (gemm) is "
            "complete: read-after-write of 256 bytes, 128 of them at 0x1080");
  EXPECT_TRUE(absl::IsInvalidArgument(
      CheckHazards(nodes, plan, absl::MakeSpan(effects).subspan(1))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(CheckHazards(nodes, plan, effects, {"one"})));
}

TEST(HazardsTest, AnOrderAgainstThatOfSubmissionIsRefused) {
  std::vector<Effects> effects(2);
  effects[0].writes = effects[1].writes = access::ExtentSet({{0x1000, 1}});
  const std::vector<Node> nodes(2);
  EXPECT_TRUE(CheckHazards(nodes, PlainPlan({nodes, {{0, 1}}}), effects).ok());
  EXPECT_FALSE(CheckHazards(nodes, PlainPlan({nodes, {{1, 0}}}), effects).ok());
}

}  // namespace
}  // namespace heddle::plan
