// SPDX-License-Identifier: Apache-2.0
// PlanOverlap: what holds for every graph, and what the rules come to in the
// shapes that programs have.

#include "runtime/plan/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

constexpr Style kStyles[] = {Style::kProgrammaticEarly, Style::kProgrammatic,
                             Style::kLaunchOrder};
const Edge kProgrammatic01{0, 1, kTypeProgrammatic, kPortProgrammatic};

bool Full(const Edge& edge) {
  return edge.type == kTypeDefault && edge.from_port == kPortDefault;
}

// The rules once more, as what must be true of a plan.
void ExpectRules(const Graph& graph, Style style, const OverlapPlan& plan) {
  const Prologue both = style == Style::kProgrammaticEarly
                            ? Prologue::kTriggerWait
                            : Prologue::kWaitTrigger;
  std::vector<bool> own(graph.nodes.size());
  std::vector<bool> touched(graph.nodes.size());
  ASSERT_EQ(plan.edges.size(), graph.edges.size());
  const auto patchable = [&](uint32_t node) {
    const uint32_t image = graph.nodes[node].shared_image;
    for (uint32_t i = 0; image != 0 && i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].shared_image == image &&
          (own[i] || !graph.nodes[i].patchable)) {
        return false;
      }
    }
    return graph.nodes[node].patchable;
  };
  const bool own_launch_order = std::any_of(
      graph.edges.begin(), graph.edges.end(),
      [](const Edge& edge) { return edge.from_port == kPortLaunchOrder; });
  // Own overlap that a wait in front of the consumer takes over.
  const auto adoptable = [&](const Edge& edge) {
    const Node& from = graph.nodes[edge.from];
    const Node& to = graph.nodes[edge.to];
    return !own_launch_order && edge.type == kTypeProgrammatic &&
           edge.from_port == kPortProgrammatic && from.kernel && to.kernel &&
           !from.needs.cooperative && !to.needs.cooperative &&
           patchable(edge.to) && !own[edge.to];
  };
  for (size_t round = 0; round <= graph.nodes.size(); ++round) {
    for (const Edge& edge : graph.edges) {
      if (!Full(edge) && !adoptable(edge)) own[edge.from] = own[edge.to] = true;
    }
  }
  uint32_t converted = 0;
  uint32_t launch_order = 0;
  for (size_t i = 0; i < plan.edges.size(); ++i) {
    const Edge& before = graph.edges[i];
    const Edge& after = plan.edges[i];
    const Node& from = graph.nodes[before.from];
    const Node& to = graph.nodes[before.to];
    ASSERT_EQ(before.from, after.from);
    ASSERT_EQ(before.to, after.to);
    const bool possible = Full(before) && from.kernel && to.kernel &&
                          patchable(after.to) && !own[before.from] &&
                          !own[before.to] && !from.needs.cooperative &&
                          !to.needs.cooperative;
    if (!Full(before)) {
      EXPECT_EQ(before, after);
      if (!own[before.from] && adoptable(before)) {
        touched[after.to] = true;
        EXPECT_NE(plan.prologue[after.to], Prologue::kNone);
        if (patchable(after.from)) touched[after.from] = true;
      }
      continue;
    }
    if (before == after) {
      EXPECT_FALSE(possible && patchable(after.from))
          << "left full for no reason";
      continue;
    }
    ++converted;
    EXPECT_TRUE(possible);
    EXPECT_EQ(after.type, kTypeProgrammatic);
    EXPECT_NE(plan.prologue[after.to], Prologue::kNone);
    touched[after.to] = true;
    if (after.from_port == kPortLaunchOrder) {
      ++launch_order;
      EXPECT_EQ(style, Style::kLaunchOrder);
    } else {
      EXPECT_EQ(after.from_port, kPortProgrammatic);
      EXPECT_EQ(plan.prologue[after.from], both);
      touched[after.from] = true;
    }
  }
  EXPECT_EQ(plan.converted, converted);
  EXPECT_EQ(plan.launch_order, launch_order);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    // Prologues cost time: none without need.
    const uint32_t image = graph.nodes[i].shared_image;
    bool needed = touched[i];
    for (size_t k = 0; image != 0 && k < graph.nodes.size(); ++k) {
      if (graph.nodes[k].shared_image != image) continue;
      needed = needed || touched[k];
      EXPECT_EQ(plan.prologue[i], plan.prologue[k]);
    }
    EXPECT_EQ(plan.prologue[i] != Prologue::kNone, needed);
    if (plan.prologue[i] != Prologue::kNone) {
      EXPECT_TRUE(graph.nodes[i].kernel && graph.nodes[i].patchable && !own[i]);
    }
  }
}

TEST(PlanOverlapTest, EveryPlanKeepsOrderAndMakesProgress) {
  Random random(6);
  uint64_t converted = 0;
  uint64_t launch_order = 0;
  for (int round = 0; round < 10000; ++round) {
    GraphMix mix;
    mix.max_nodes = round % 50 == 0 ? 120 : 12;
    mix.max_blocks = 30;
    mix.shared_image = round % 3 == 0 ? 3 : 0;
    const Graph graph = RandomGraph(random, mix);
    DeviceLimits limits;
    limits.multiprocessors = 1 + Below(random, 20);
    for (const Style style : kStyles) {
      const auto plan = PlanOverlap(graph, style, limits);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const absl::Status order = CheckOrder(graph, *plan);
      ASSERT_TRUE(order.ok()) << "round " << round << ": " << order;
      const absl::Status residency = CheckResidency(graph, *plan, limits);
      ASSERT_TRUE(residency.ok()) << "round " << round << ": " << residency;
      ExpectRules(graph, style, *plan);
      ASSERT_FALSE(HasFailure()) << "round " << round;
      converted += plan->converted;
      launch_order += plan->launch_order;
    }
  }
  EXPECT_GT(converted, 100000u);
  EXPECT_GT(launch_order, 10000u);
}

class ShapesTest : public testing::Test {
 protected:
  void Nodes(uint32_t count) {
    Node node;
    node.kernel = node.patchable = true;
    node.needs = {.blocks = 8, .threads = 128, .registers = 32};
    graph_.nodes.assign(count, node);
  }
  void Chain(uint32_t count) {
    Nodes(count);
    for (uint32_t i = 1; i < count; ++i) graph_.edges.push_back({i - 1, i});
  }
  OverlapPlan Plan(Style style) {
    auto plan = PlanOverlap(graph_, style, limits_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(CheckOrder(graph_, *plan).ok());
    EXPECT_TRUE(CheckResidency(graph_, *plan, limits_).ok());
    return *std::move(plan);
  }
  static std::vector<int> Ports(const OverlapPlan& plan) {
    std::vector<int> ports;
    for (const Edge& edge : plan.edges) ports.push_back(edge.from_port);
    return ports;
  }

  Graph graph_;
  DeviceLimits limits_;
};

TEST_F(ShapesTest, AChainIsConvertedWhole) {
  Chain(4);
  const OverlapPlan early = Plan(Style::kProgrammaticEarly);
  EXPECT_EQ(Ports(early), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(early.edges[0], kProgrammatic01);
  EXPECT_EQ(early.prologue, (std::vector<Prologue>{
                                Prologue::kTriggerWait, Prologue::kTriggerWait,
                                Prologue::kTriggerWait, Prologue::kWait}));
  const OverlapPlan later = Plan(Style::kProgrammatic);
  EXPECT_EQ(later.prologue, (std::vector<Prologue>{
                                Prologue::kWaitTrigger, Prologue::kWaitTrigger,
                                Prologue::kWaitTrigger, Prologue::kWait}));
  const OverlapPlan launch = Plan(Style::kLaunchOrder);
  EXPECT_EQ(Ports(launch), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(launch.prologue,
            (std::vector<Prologue>{Prologue::kNone, Prologue::kWait,
                                   Prologue::kWait, Prologue::kWait}));
}

TEST_F(ShapesTest, FullEdgesStayBeforeAKernelThatCannotBePatched) {
  Chain(5);
  graph_.nodes[2].patchable = false;
  EXPECT_EQ(Ports(Plan(Style::kProgrammaticEarly)),
            (std::vector<int>{1, 0, 0, 1}));
  EXPECT_EQ(Ports(Plan(Style::kLaunchOrder)), (std::vector<int>{2, 0, 2, 2}));
}

TEST_F(ShapesTest, FullEdgesStayAroundACopy) {
  Chain(5);
  graph_.nodes[2].kernel = false;
  for (const Style style : kStyles) {
    const OverlapPlan plan = Plan(style);
    EXPECT_EQ(plan.converted, 2u);
    EXPECT_EQ(plan.edges[1], graph_.edges[1]);
    EXPECT_EQ(plan.edges[2], graph_.edges[2]);
    EXPECT_EQ(absl::StrJoin(plan.notes, "\n"),
              "2 edges stay full: one end is no kernel");
  }
}

TEST_F(ShapesTest, AJoinMayMixEdges) {
  Nodes(3);
  graph_.nodes[1].kernel = false;
  graph_.edges = {{0, 2}, {1, 2}};
  EXPECT_EQ(Ports(Plan(Style::kProgrammaticEarly)), (std::vector<int>{1, 0}));
}

TEST_F(ShapesTest, OverlapOfTheProgramsOwnIsTakenOver) {
  Chain(6);
  graph_.edges[2] = {2, 3, kTypeProgrammatic, kPortProgrammatic};
  graph_.nodes[2].has_own_pdl = graph_.nodes[3].has_own_pdl = true;
  const OverlapPlan plan = Plan(Style::kProgrammatic);
  EXPECT_EQ(plan.converted, 4u);
  EXPECT_EQ(plan.edges[2], graph_.edges[2]);
  EXPECT_EQ(plan.prologue[2], Prologue::kWaitTrigger);
  EXPECT_EQ(plan.prologue[3], Prologue::kWaitTrigger);
}

TEST_F(ShapesTest, OwnOverlapIntoAKernelThatCannotWaitIsNotTouched) {
  Chain(6);
  graph_.edges[2] = {2, 3, kTypeProgrammatic, kPortProgrammatic};
  graph_.nodes[2].has_own_pdl = graph_.nodes[3].has_own_pdl = true;
  graph_.nodes[3].patchable = false;
  for (const Style style : kStyles) {
    const OverlapPlan plan = Plan(style);
    EXPECT_EQ(plan.converted, 2u);
    for (const size_t i : {1, 2, 3}) EXPECT_EQ(plan.edges[i], graph_.edges[i]);
    EXPECT_EQ(plan.prologue[2], Prologue::kNone);
    EXPECT_EQ(plan.prologue[3], Prologue::kNone);
  }
}

TEST_F(ShapesTest, PdlInstructionsWithoutEdgesOfTheirKindAreNoObstacle) {
  Chain(3);
  for (Node& node : graph_.nodes) node.has_own_pdl = true;
  EXPECT_EQ(Plan(Style::kProgrammaticEarly).converted, 2u);
}

TEST_F(ShapesTest, NodesOfOneImageGetOnePrologue) {
  Chain(4);
  for (const uint32_t i : {1, 3}) graph_.nodes[i].shared_image = 7;
  const OverlapPlan plan = Plan(Style::kProgrammaticEarly);
  EXPECT_EQ(plan.converted, 3u);
  EXPECT_EQ(plan.prologue[3], Prologue::kTriggerWait);
  // One that must stay as it is leaves the others unpatched.
  graph_.nodes[3].patchable = false;
  EXPECT_EQ(Ports(Plan(Style::kProgrammaticEarly)),
            (std::vector<int>{0, 0, 0}));
}

TEST_F(ShapesTest, LaunchOrderWindowsEndWhereTheBlocksDoNotFit) {
  // Shared memory: a block may deny a whole multiprocessor, so windows of four
  // kernels fill 32 of them, and one of five would need more.
  Chain(12);
  for (Node& node : graph_.nodes) node.needs.shared_bytes = 200 << 10;
  limits_.multiprocessors = 32;
  const OverlapPlan plan = Plan(Style::kLaunchOrder);
  EXPECT_EQ(Ports(plan), (std::vector<int>{2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2}));
  // The last of a window triggers when what it waited for is complete.
  EXPECT_EQ(plan.prologue[3], Prologue::kWaitTrigger);
  EXPECT_EQ(plan.prologue[4], Prologue::kWait);
  limits_.multiprocessors = 15;
  EXPECT_EQ(Plan(Style::kLaunchOrder).launch_order, 0u);
}

TEST_F(ShapesTest, WindowsOfParallelBranchesCountTogether) {
  // Two branches of two, from one root.
  Nodes(5);
  graph_.nodes[0].needs.blocks = 1;
  graph_.edges = {{0, 1}, {1, 2}, {0, 3}, {3, 4}};
  for (Node& node : graph_.nodes) node.needs.shared_bytes = 200 << 10;
  limits_.multiprocessors = 64;
  EXPECT_EQ(Plan(Style::kLaunchOrder).launch_order, 4u);
  // Room for the 16 blocks of one branch and those of a consumer in the other.
  limits_.multiprocessors = 24;
  EXPECT_LT(Plan(Style::kLaunchOrder).launch_order, 4u);
}

TEST_F(ShapesTest, NoLaunchOrderEdgesBesideThoseOfTheProgram) {
  Chain(4);
  graph_.edges[0] = {0, 1, kTypeProgrammatic, kPortLaunchOrder};
  auto plan = PlanOverlap(graph_, Style::kLaunchOrder, limits_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->launch_order, 0u);
  EXPECT_EQ(plan->converted, 1u);
  EXPECT_EQ(plan->edges[2].from_port, kPortProgrammatic);
}

TEST_F(ShapesTest, GraphsOfProgramsTakeNoTime) {
  Random random(7);
  Chain(4000);
  for (Node& node : graph_.nodes) node.needs.blocks = 1 + Below(random, 40);
  // Two long branches beside each other, with a link now and then.
  for (uint32_t i = 2; i < 4000; ++i) {
    graph_.edges[i - 1].from = i - 2;
    if (OneIn(random, 40)) graph_.edges.push_back({i - 1, i});
  }
  const auto start = std::chrono::steady_clock::now();
  const auto plan = PlanOverlap(graph_, Style::kLaunchOrder, limits_);
  const auto time = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(CheckOrder(graph_, *plan).ok());
  EXPECT_GT(plan->launch_order, 1000u);
  RecordProperty(
      "ms",
      static_cast<int>(
          std::chrono::duration_cast<std::chrono::milliseconds>(time).count()));
  EXPECT_LT(time, std::chrono::seconds(20));
}

TEST_F(ShapesTest, WhatIsNoGraphIsAnError) {
  Chain(3);
  graph_.edges.push_back({2, 0});
  EXPECT_TRUE(absl::IsInvalidArgument(
      PlanOverlap(graph_, Style::kProgrammatic, limits_).status()));
  graph_.edges.back() = {0, 7};
  EXPECT_TRUE(absl::IsInvalidArgument(
      PlanOverlap(graph_, Style::kProgrammatic, limits_).status()));
  graph_ = {};
  EXPECT_TRUE(PlanOverlap(graph_, Style::kLaunchOrder, limits_).ok());
}

}  // namespace
}  // namespace heddle::plan
