// SPDX-License-Identifier: Apache-2.0
// Forward progress: FitTogether against every placement, CheckResidency against
// everything that a tiny device might do.

#include "runtime/plan/residency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "runtime/plan/overlap.h"
#include "tests/unit/plan/device_model.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

// Multiprocessors with quarters: a block's warps go to the quarters in turn,
// from any one on.
constexpr uint32_t kQuarters = 2;
struct Multiprocessor {
  uint32_t blocks = 0;
  std::array<uint32_t, kQuarters> warps{};
  std::array<uint32_t, kQuarters> registers{};
  uint32_t shared = 0;
  bool with_shared = false;
  bool idle() const { return blocks == 0; }
};

class Packing {
 public:
  explicit Packing(const DeviceLimits& limits)
      : limits_(limits), all_(limits.multiprocessors) {}

  // Whether there is a placement of `others`, one after the other, after which
  // fewer than `blocks` blocks of `producer` find room, wherever they go.
  bool SomePlacementDenies(const std::vector<BlockNeeds>& others, size_t next,
                           const BlockNeeds& producer, uint64_t blocks) {
    if (next == others.size()) return SomePlacementFails(producer, blocks);
    bool denies = false;
    ForEachPlace(others[next], [&] {
      denies =
          denies || SomePlacementDenies(others, next + 1, producer, blocks);
    });
    return denies;
  }

 private:
  bool SomePlacementFails(const BlockNeeds& producer, uint64_t blocks) {
    if (blocks == 0) return false;
    bool any = false;
    bool fails = false;
    ForEachPlace(producer, [&] {
      any = true;
      fails = fails || SomePlacementFails(producer, blocks - 1);
    });
    return !any || fails;
  }

  template <typename Visit>
  void ForEachPlace(const BlockNeeds& block, Visit visit) {
    for (Multiprocessor& sm : all_) {
      for (uint32_t quarter = 0; quarter < kQuarters; ++quarter) {
        const Multiprocessor before = sm;
        if (Place(block, quarter, &sm)) visit();
        sm = before;
      }
    }
  }

  bool Place(const BlockNeeds& block, uint32_t quarter,
             Multiprocessor* sm) const {
    const bool shared = block.shared_bytes != 0;
    if (!sm->idle() && sm->with_shared != shared) return false;
    sm->with_shared = shared;
    const uint32_t warps = (block.threads + 31) / 32;
    for (uint32_t warp = 0; warp < warps; ++warp) {
      const uint32_t at = (quarter + warp) % kQuarters;
      ++sm->warps[at];
      sm->registers[at] += block.registers * 32;
    }
    ++sm->blocks;
    sm->shared += block.shared_bytes + limits_.reserved_shared_per_block;
    const uint32_t configured =
        shared ? limits_.shared_per_sm : limits_.least_shared_carveout;
    bool fits = sm->blocks <= limits_.blocks_per_sm && sm->shared <= configured;
    for (uint32_t at = 0; at < kQuarters; ++at) {
      fits = fits && sm->warps[at] * kQuarters * 32 <= limits_.threads_per_sm &&
             sm->registers[at] * kQuarters <= limits_.registers_per_sm;
    }
    return fits;
  }

  const DeviceLimits limits_;
  std::vector<Multiprocessor> all_;
};

BlockNeeds RandomNeeds(Random& random, uint64_t blocks) {
  BlockNeeds needs;
  needs.blocks = blocks;
  needs.threads = 32 * (1 + Below(random, 4));
  needs.registers = 8 * (1 + Below(random, 4));
  if (OneIn(random, 4)) needs.shared_bytes = 256 * (1 + Below(random, 3)) - 8;
  return needs;
}

TEST(FitTogetherTest, WhatIsProvedHoldsForEveryPlacement) {
  Random random(4);
  int proved = 0;
  int refused_good = 0;
  int bad = 0;
  for (int round = 0; round < 4000; ++round) {
    DeviceLimits limits;
    limits.multiprocessors = 1 + Below(random, 3);
    limits.threads_per_sm = kQuarters * 32 * (2 + Below(random, 6));
    limits.registers_per_sm = kQuarters * 32 * 8 * (8 + Below(random, 24));
    limits.blocks_per_sm = 1 + Below(random, 5);
    limits.quarters = kQuarters;
    limits.register_unit = 256;
    limits.reserved_shared_per_block = 8 * Below(random, 2);
    limits.least_shared_carveout = 8 * (1 + Below(random, 6));
    limits.shared_per_sm = 256 * (1 + Below(random, 6));
    const BlockNeeds producer = RandomNeeds(random, 1 + Below(random, 4));
    std::vector<BlockNeeds> consumers;
    std::vector<BlockNeeds> blocks;
    for (uint32_t left = Below(random, 4); left > 0;) {
      const uint32_t count = 1 + Below(random, left);
      left -= count;
      consumers.push_back(RandomNeeds(random, count));
      blocks.insert(blocks.end(), count, consumers.back());
    }
    const bool fit = FitTogether(producer, consumers, limits);
    const bool denied = Packing(limits).SomePlacementDenies(blocks, 0, producer,
                                                            producer.blocks);
    ASSERT_FALSE(fit && denied) << "round " << round;
    proved += fit ? 1 : 0;
    bad += denied ? 1 : 0;
    refused_good += !fit && !denied ? 1 : 0;
  }
  std::printf("proved %d; of the others %d do not fit, %d do\n", proved, bad,
              refused_good);
  EXPECT_GT(proved, 300);
  EXPECT_GT(bad, 300);
}

TEST(FitTogetherTest, KnowsTheFigures) {
  BlockNeeds small{.blocks = 1, .threads = 256, .registers = 32};
  BlockNeeds grid = small;
  // Eight blocks of 256 threads on each of 132.
  grid.blocks = 8 * 132;
  EXPECT_TRUE(FitTogether(grid, {}, {}));
  EXPECT_FALSE(FitTogether(grid, {small}, {}));
  grid.blocks -= 1;
  EXPECT_TRUE(FitTogether(grid, {small}, {}));
  EXPECT_FALSE(FitTogether(grid, {small, small}, {}));
  // Shared memory on either side: the whole multiprocessor.
  small.shared_bytes = 1;
  EXPECT_FALSE(FitTogether(grid, {small}, {}));
  grid.blocks = 8 * 131;
  EXPECT_TRUE(FitTogether(grid, {small}, {}));
  // Nothing is proved about what needs several places at once.
  grid.blocks = 2;
  grid.cluster_blocks = 2;
  EXPECT_FALSE(FitTogether(grid, {small}, {}));
  grid.cluster_blocks = 1;
  grid.cooperative = true;
  EXPECT_FALSE(FitTogether(grid, {small}, {}));
  grid.cooperative = false;
  EXPECT_TRUE(FitTogether(grid, {small}, {}));
  // More grids than can be resident.
  EXPECT_FALSE(FitTogether(
      grid, std::vector<BlockNeeds>(128, {.blocks = 0, .threads = 32}), {}));
  // Figures beyond any device do not wrap round.
  small.blocks = UINT64_MAX;
  EXPECT_FALSE(FitTogether(grid, {small, small, small}, {}));
  grid.blocks = UINT64_MAX;
  EXPECT_FALSE(FitTogether(grid, {}, {}));
  // Nor do those of a device that is not known.
  EXPECT_FALSE(FitTogether({}, {}, {.multiprocessors = 0}));
  EXPECT_FALSE(FitTogether({}, {}, {.warp_threads = 0}));
  EXPECT_FALSE(FitTogether({}, {}, {.quarters = 0}));
  EXPECT_FALSE(FitTogether({}, {}, {.register_unit = 0}));
}

TEST(FitTogetherTest, UnknownRegistersCountAsTheMost) {
  const BlockNeeds known{.blocks = 4 * 132, .threads = 256, .registers = 64};
  BlockNeeds unknown = known;
  unknown.registers = 0;
  EXPECT_TRUE(FitTogether(known, {}, {}));
  EXPECT_FALSE(FitTogether(unknown, {}, {}));
}

class ResidencyTest : public testing::Test {
 protected:
  // A device on which a few blocks are many.
  void NewDevice() {
    limits_ = {};
    limits_.multiprocessors = 1 + Below(random_, 3);
    limits_.blocks_per_sm = 1 + Below(random_, 3);
    limits_.threads_per_sm = 32 * (1 + Below(random_, 4));
    limits_.shared_per_sm = 256 * (1 + Below(random_, 2));
    limits_.quarters = 1;
    limits_.registers_per_sm = 1 << 20;
    limits_.reserved_shared_per_block = 0;
  }
  Graph NewGraph() {
    GraphMix mix;
    mix.max_nodes = 4;
    mix.max_blocks = 3;
    mix.own_pdl = 0;
    mix.cooperative = 0;
    Graph graph = RandomGraph(random_, mix);
    for (Node& node : graph.nodes) {
      node.needs.threads =
          32 * (1 + Below(random_, limits_.threads_per_sm / 32));
      if (OneIn(random_, 5)) node.needs.shared_bytes = 100;
    }
    return graph;
  }

  static void MakeAllWait(OverlapPlan* plan, const Graph& graph) {
    for (Edge& edge : plan->edges) {
      Prologue& prologue = plan->prologue[edge.to];
      if (!graph.nodes[edge.to].patchable || edge.type != kTypeProgrammatic) {
        edge.type = kTypeDefault;
        edge.from_port = kPortDefault;
      } else if (prologue == Prologue::kNone) {
        prologue = Prologue::kWait;
      }
    }
  }

  Random random_{5};
  DeviceLimits limits_;
};

TEST_F(ResidencyTest, WhatIsAcceptedNeverGetsStuck) {
  int accepted = 0;
  int stuck = 0;
  int refused_good = 0;
  for (int round = 0; round < 6000; ++round) {
    NewDevice();
    const Graph graph = NewGraph();
    OverlapPlan plan = RandomPlan(random_, graph);
    const bool any = std::any_of(
        plan.edges.begin(), plan.edges.end(),
        [](const Edge& edge) { return edge.from_port == kPortLaunchOrder; });
    if (!any) continue;
    // So that forward progress alone is judged.
    MakeAllWait(&plan, graph);
    if (!CheckOrder(graph, plan).ok()) continue;
    const bool ok = CheckResidency(graph, plan, limits_).ok();
    const Outcome outcome = Explore(graph.nodes, plan, limits_);
    if (outcome == Outcome::kTooLarge) continue;
    ASSERT_FALSE(ok && outcome == Outcome::kMayGetStuck) << "round " << round;
    accepted += ok ? 1 : 0;
    stuck += outcome == Outcome::kMayGetStuck ? 1 : 0;
    refused_good += !ok && outcome == Outcome::kAlwaysEnds ? 1 : 0;
  }
  std::printf("accepted %d; of the others %d can get stuck, %d cannot\n",
              accepted, stuck, refused_good);
  EXPECT_GT(accepted, 300);
  EXPECT_GT(stuck, 100);
}

TEST_F(ResidencyTest, WithoutLaunchOrderEdgesNothingEverGetsStuck) {
  for (int round = 0; round < 1500; ++round) {
    NewDevice();
    const Graph graph = NewGraph();
    OverlapPlan plan = RandomPlan(random_, graph);
    for (Edge& edge : plan.edges) {
      if (edge.from_port != kPortLaunchOrder) continue;
      edge.from_port =
          edge.type == kTypeProgrammatic ? kPortProgrammatic : kPortDefault;
    }
    if (CheckOrder(graph, plan).ok()) {
      ASSERT_TRUE(CheckResidency(graph, plan, limits_).ok());
    }
    ASSERT_NE(Explore(graph.nodes, plan, limits_), Outcome::kMayGetStuck)
        << "round " << round;
  }
}

TEST_F(ResidencyTest, PlansNeverGetStuckAndUseTheLaunchOrderPort) {
  uint32_t launch_order = 0;
  for (int round = 0; round < 3000; ++round) {
    NewDevice();
    const Graph graph = NewGraph();
    const auto plan = PlanOverlap(graph, Style::kLaunchOrder, limits_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    launch_order += plan->launch_order;
    ASSERT_NE(Explore(graph.nodes, *plan, limits_), Outcome::kMayGetStuck)
        << "round " << round;
  }
  std::printf("%u launch-order edges\n", launch_order);
  EXPECT_GT(launch_order, 300u);
}

}  // namespace
}  // namespace heddle::plan
