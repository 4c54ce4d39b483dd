// SPDX-License-Identifier: Apache-2.0
// CheckOrder against the execution model.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "absl/status/status.h"
#include "runtime/plan/overlap.h"
#include "tests/unit/plan/model.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

std::vector<Prologue> NoPrologues(const Graph& graph) {
  return std::vector<Prologue>(graph.nodes.size(), Prologue::kNone);
}

// Calls `check` for all that the kernels with PDL of their own may be doing, or
// for some of it if that is much.
template <typename Check>
void ForEachOwnPdl(Random& random, const Graph& graph, Check check) {
  std::vector<uint32_t> unknown;
  uint32_t combinations = 1;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].has_own_pdl) continue;
    unknown.push_back(i);
    if (combinations < 1000) combinations *= kOwnPdls;
  }
  std::vector<OwnPdl> own(graph.nodes.size(), OwnPdl::kNothing);
  const uint32_t rounds = std::min(combinations, 125u);
  for (uint32_t round = 0; round < rounds; ++round) {
    uint32_t number = rounds == combinations ? round : random();
    for (const uint32_t i : unknown) {
      own[i] = static_cast<OwnPdl>(number % kOwnPdls);
      number /= kOwnPdls;
    }
    check(own);
  }
}

// Whether the plan keeps all order that programs can rely on.
bool KeepsOrder(Random& random, const Graph& graph, const OverlapPlan& plan) {
  bool keeps = true;
  ForEachOwnPdl(random, graph, [&](const std::vector<OwnPdl>& own) {
    if (!keeps) return;
    const Model::Order before =
        Model(graph.nodes, graph.edges, NoPrologues(graph), own).Always();
    const Model::Order after =
        Model(graph.nodes, plan.edges, plan.prologue, own).Always();
    keeps =
        std::includes(after.begin(), after.end(), before.begin(), before.end());
  });
  return keeps;
}

TEST(ModelTest, HoldingBackOneActIsAsGoodAsEveryInterleaving) {
  Random random(1);
  GraphMix mix;
  mix.max_nodes = 4;
  mix.own_pdl = 2;
  for (int round = 0; round < 1500; ++round) {
    const Graph graph = RandomGraph(random, mix);
    const OverlapPlan plan = RandomPlan(random, graph);
    std::vector<OwnPdl> own(graph.nodes.size());
    for (OwnPdl& pdl : own) pdl = static_cast<OwnPdl>(Below(random, kOwnPdls));
    const Model model(graph.nodes, plan.edges, plan.prologue, own);
    ASSERT_EQ(model.Always(), model.AlwaysByEnumeration()) << round;
  }
}

TEST(CheckOrderTest, AcceptsNoPlanThatLosesOrder) {
  Random random(2);
  int accepted = 0;
  int bad = 0;
  int refused_good = 0;
  int refused_good_without_own = 0;
  for (int round = 0; round < 12000; ++round) {
    GraphMix mix;
    if (round % 2 == 0) mix.own_pdl = 0;
    const Graph graph = RandomGraph(random, mix);
    const OverlapPlan plan = RandomPlan(random, graph);
    const absl::Status status = CheckOrder(graph, plan);
    ASSERT_FALSE(absl::IsInvalidArgument(status)) << status;
    const bool keeps = KeepsOrder(random, graph, plan);
    if (status.ok()) {
      ++accepted;
      ASSERT_TRUE(keeps) << "round " << round;
    } else if (keeps) {
      ++refused_good;
      refused_good_without_own += round % 2 == 0 ? 1 : 0;
    } else {
      ++bad;
    }
  }
  std::printf(
      "accepted %d (all keep order), refused %d that lose it and %d that do "
      "not (%d of these without overlap of the program's own)\n",
      accepted, bad, refused_good, refused_good_without_own);
  RecordProperty("accepted", accepted);
  RecordProperty("refused_bad", bad);
  RecordProperty("refused_good", refused_good);
  // The sample is worth something.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(bad, 1000);
  // What is refused although it happens to be right stays the exception.
  EXPECT_LT(refused_good, accepted / 4);
}

TEST(CheckOrderTest, AcceptsTheGraphItself) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    const Graph graph = RandomGraph(random, {});
    const absl::Status status =
        CheckOrder(graph, {NoPrologues(graph), graph.edges, 0, 0, {}});
    ASSERT_TRUE(status.ok()) << status;
  }
}

class ChainTest : public testing::Test {
 protected:
  ChainTest() {
    Node node;
    node.kernel = node.patchable = true;
    graph_.nodes = {node, node, node};
    graph_.edges = {{0, 1}, {1, 2}};
    plan_.edges = {{0, 1, kTypeProgrammatic, kPortProgrammatic},
                   {1, 2, kTypeProgrammatic, kPortProgrammatic}};
    plan_.prologue = {Prologue::kTriggerWait, Prologue::kTriggerWait,
                      Prologue::kWait};
  }
  bool Accepted() const { return CheckOrder(graph_, plan_).ok(); }

  Graph graph_;
  OverlapPlan plan_;
};

TEST_F(ChainTest, EveryKernelWaitsIsAccepted) { EXPECT_TRUE(Accepted()); }

TEST_F(ChainTest, AMiddleThatDoesNotWaitIsRefused) {
  plan_.prologue[1] = Prologue::kNone;
  EXPECT_FALSE(Accepted());
  // Whatever comes behind it.
  plan_.edges[1] = graph_.edges[1];
  EXPECT_FALSE(Accepted());
  plan_.edges[0] = graph_.edges[0];
  EXPECT_TRUE(Accepted());
}

TEST_F(ChainTest, ALostEdgeIsRefused) {
  plan_.edges.pop_back();
  EXPECT_FALSE(Accepted());
}

TEST_F(ChainTest, ATransitiveEdgeMayGo) {
  graph_.edges.push_back({0, 2});
  EXPECT_TRUE(Accepted());
  plan_.prologue[1] = Prologue::kNone;
  EXPECT_FALSE(Accepted());
}

TEST_F(ChainTest, AWaitDoesNotSeeALaunchOrderEdgeOfDefaultType) {
  plan_.edges[1] = {1, 2, kTypeDefault, kPortLaunchOrder};
  EXPECT_FALSE(Accepted());
  plan_.edges[1] = {1, 2, kTypeProgrammatic, kPortLaunchOrder};
  EXPECT_TRUE(Accepted());
}

TEST_F(ChainTest, APrologueThatCannotBeIsRefused) {
  graph_.nodes[1].patchable = false;
  EXPECT_FALSE(Accepted());
}

TEST_F(ChainTest, TheProgramsOwnOverlapMustStayAsItIs) {
  const Edge own{1, 2, kTypeProgrammatic, kPortProgrammatic};
  graph_.edges[1] = own;
  graph_.nodes[1].has_own_pdl = graph_.nodes[2].has_own_pdl = true;
  EXPECT_TRUE(Accepted());  // all of its consumer waits
  plan_.prologue[2] = Prologue::kNone;
  EXPECT_FALSE(Accepted());  // a trigger in its producer
  plan_.prologue[1] = Prologue::kWait;
  EXPECT_FALSE(Accepted());  // its producer starts early
  plan_.prologue[1] = Prologue::kNone;
  plan_.edges[0] = graph_.edges[0];
  EXPECT_TRUE(Accepted());
  plan_.edges[1].from_port = kPortLaunchOrder;
  EXPECT_FALSE(Accepted());
  plan_.edges[1] = {1, 2};
  EXPECT_FALSE(Accepted());
}

TEST_F(ChainTest, WhatIsNoGraphIsAnError) {
  const auto invalid = [&] {
    return absl::IsInvalidArgument(CheckOrder(graph_, plan_));
  };
  EXPECT_FALSE(invalid());
  const OverlapPlan good = plan_;
  plan_.prologue.pop_back();
  EXPECT_TRUE(invalid());
  plan_ = good;
  plan_.edges[1].to = 3;
  EXPECT_TRUE(invalid());
  plan_ = good;
  plan_.edges.push_back({2, 0});
  EXPECT_TRUE(invalid());
  plan_ = good;
  plan_.edges.push_back({0, 1});
  EXPECT_TRUE(invalid());
  for (const Edge& wrong :
       {Edge{0, 1, 1, 0}, Edge{0, 1, 0, 1}, Edge{0, 1, 2, 1}, Edge{0, 1, 1, 3},
        Edge{0, 1, 0, 0, 1}, Edge{1, 1}}) {
    plan_ = good;
    plan_.edges[0] = wrong;
    EXPECT_TRUE(invalid());
  }
}

}  // namespace
}  // namespace heddle::plan
