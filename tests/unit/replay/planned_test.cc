// SPDX-License-Identifier: Apache-2.0
//
// Plans of random programs, on the host device: right ones leave the memory
// that the program leaves, in every order; wrong ones are refused, or found out
// by verification.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "runtime/cubin/elf_view.h"
#include "runtime/replay/order_executor.h"
#include "runtime/replay/plan_step.h"
#include "runtime/replay/planned_executor.h"
#include "runtime/rewrite/graph_model.h"
#include "tests/unit/replay/rewritten_replay.h"

namespace heddle::replay {
namespace {

const device::Driver& HostDevice() {
  static const device::Driver* const driver = [] {
    setenv("HEDDLE_HOSTDEVICE_KERNELS", HEDDLE_REPLAY_HOST_KERNELS, 1);
    auto loaded = device::Driver::Load(HEDDLE_HOSTDEVICE_LIBRARY);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new device::Driver(*std::move(loaded));
  }();
  return *driver;
}

std::vector<uint8_t> PlainImage() {
  std::ifstream file(HEDDLE_REPLAY_PLAIN_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The image with another first instruction of `kernel`: a relative branch, of
// which the patcher cannot make a copy elsewhere. Host devices run no code.
std::vector<uint8_t> Spoil(std::vector<uint8_t> image,
                           const std::string& kernel) {
  const auto elf = cubin::ElfView::Create(image);
  EXPECT_TRUE(elf.ok()) << elf.status();
  const cubin::ElfSection* text = elf->Find(".text." + kernel);
  EXPECT_NE(text, nullptr);
  const uint16_t branch = 0x7947;
  std::memcpy(image.data() + text->header.sh_offset, &branch, sizeof(branch));
  return image;
}

class PlannedTest : public testing::Test {
 protected:
  // A program in one stream: what the planner makes of it is the point.
  void Open(std::mt19937& random, uint32_t operations, Replay* replay) {
    replay->UseImage(PlainImage());
    replay->Start();
    const auto buffer = [&] { return kA + 0x1000 * (random() % 4); };
    for (uint32_t i = 0; i < operations; ++i) {
      if (random() % 3 == 0) {
        replay->Scale(buffer(), 0.75F);
      } else {
        replay->Add(buffer(), buffer(), buffer());
      }
    }
    ASSERT_TRUE(replay->Open(HostDevice()).ok());
  }

  // What the kernels do, by their definition.
  static std::vector<plan::Effects> TrueEffects(const Program& program) {
    std::vector<plan::Effects> effects;
    for (const Operation& operation : program.step.operations) {
      plan::Effects& e = effects.emplace_back();
      const LaunchWork& launch = *operation.launch();
      const auto pointer = [&](size_t at) {
        uint64_t address = 0;
        std::memcpy(&address, launch.params.data() + at, 8);
        return access::ExtentSet({{address, 4 * kN}});
      };
      e.writes = pointer(0);
      if (program.kernels[launch.kernel].name == "test_scale") {
        e.reads = pointer(0);
      } else {
        e.reads = pointer(8);
        e.reads.Add(pointer(16));
      }
    }
    return effects;
  }

  static plan::PlanInput InputOf(const Replay& replay,
                                 const trace::Reader& reader,
                                 std::vector<plan::Effects> effects) {
    plan::PlanInput input =
        DescribeStep(reader, replay.program(), StepBounds{}).input;
    input.effects = std::move(effects);
    input.durations_us.assign(input.effects.size(), 10);
    return input;
  }
};

constexpr plan::Style kStyles[] = {plan::Style::kProgrammatic,
                                   plan::Style::kProgrammaticEarly,
                                   plan::Style::kLaunchOrder};

TEST_F(PlannedTest, PlansOfRandomProgramsLeaveTheSameMemoryInEveryOrder) {
  std::mt19937 random(1);
  uint32_t branched = 0;
  uint32_t converted = 0;
  uint32_t launch_order = 0;
  for (int round = 0; round < 24; ++round) {
    Replay replay;
    Open(random, 4 + random() % 12, &replay);
    const auto effects = TrueEffects(replay.program());
    plan::PlanOptions options;
    options.style = kStyles[round % 3];
    options.level = round % 6 == 5 ? plan::Level::kO1 : plan::Level::kO2;
    options.branches.max_branches = 2 + round % 2;
    options.limits = rewrite::ReadLimits(HostDevice(), 0);
    const auto plan = plan::MakePlan(
        InputOf(replay, replay.session().reader(), effects), options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto made = replay.session().NewPlanned(*plan, effects);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->executor->name(), PlannedName(*plan));
    EXPECT_EQ(made->summary.converted, plan->converted);
    EXPECT_EQ(replay.Judge(*made, 6).verdict, Verdict::kIdentical) << round;
    auto orders = replay.session().NewOrders(*plan, 7);
    ASSERT_TRUE(orders.ok()) << orders.status();
    RewrittenExecutor form{*std::move(orders), {}};
    EXPECT_EQ(replay.Judge(form, 20).verdict, Verdict::kIdentical) << round;
    branched += plan->branches > 1 ? 1 : 0;
    converted += plan->converted;
    launch_order += plan->launch_order;
  }
  std::printf("%u plans with branches, %u early edges, %u by launch order\n",
              branched, converted, launch_order);
  EXPECT_GT(branched, 10u);
  EXPECT_GT(converted, 100u);
}

TEST_F(PlannedTest, APlanWithoutOneOfItsEdgesIsRefused) {
  std::mt19937 random(2);
  uint32_t refused = 0;
  for (int round = 0; round < 6; ++round) {
    Replay replay;
    Open(random, 10, &replay);
    const auto effects = TrueEffects(replay.program());
    const auto plan =
        plan::MakePlan(InputOf(replay, replay.session().reader(), effects), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (size_t e = 0; e < plan->edges.size(); ++e) {
      if (plan->edges[e].reasons.empty()) continue;
      plan::Plan less = *plan;
      less.edges.erase(less.edges.begin() + static_cast<ptrdiff_t>(e));
      const auto made = replay.session().NewPlanned(less, effects);
      EXPECT_TRUE(absl::IsFailedPrecondition(made.status())) << made.status();
      EXPECT_TRUE(absl::StrContains(made.status().message(), "could begin"))
          << made.status();
      ++refused;
    }
    // One without its waits, too.
    for (size_t i = 0; i < plan->nodes.size(); ++i) {
      if (plan->nodes[i].prologue == cubin::Prologue::kNone) continue;
      plan::Plan bare = *plan;
      bare.nodes[i].prologue = cubin::Prologue::kNone;
      const auto made = replay.session().NewPlanned(bare, effects);
      if (made.ok()) continue;  // nothing of it had to wait
      EXPECT_TRUE(absl::IsFailedPrecondition(made.status())) << made.status();
      ++refused;
    }
    plan::Plan shorter = *plan;
    shorter.nodes.pop_back();
    EXPECT_TRUE(absl::IsInvalidArgument(
        replay.session().NewPlanned(shorter, effects).status()));
  }
  EXPECT_GT(refused, 60u);
}

TEST_F(PlannedTest, WrongAccessesAreFoundOutByVerification) {
  std::mt19937 random(3);
  int found_by_graph = 0;
  int found_by_orders = 0;
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    Replay replay;
    Open(random, 12, &replay);
    // As if nobody read anything.
    auto effects = TrueEffects(replay.program());
    for (plan::Effects& e : effects) e.reads = {};
    plan::PlanOptions options;
    options.branches.max_branches = 4;
    const auto plan = plan::MakePlan(
        InputOf(replay, replay.session().reader(), effects), options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto made = replay.session().NewPlanned(*plan, effects);
    ASSERT_TRUE(made.ok()) << made.status();
    found_by_graph +=
        replay.Judge(*made, 12).verdict == Verdict::kDifferent ? 1 : 0;
    auto orders = replay.session().NewOrders(*plan, 7);
    ASSERT_TRUE(orders.ok());
    RewrittenExecutor form{*std::move(orders), {}};
    found_by_orders +=
        replay.Judge(form, 30).verdict == Verdict::kDifferent ? 1 : 0;
    // With the truth the plan is refused before it runs.
    EXPECT_TRUE(absl::IsFailedPrecondition(
        replay.session()
            .NewPlanned(*plan, TrueEffects(replay.program()))
            .status()));
  }
  EXPECT_EQ(found_by_orders, kRounds);
  EXPECT_GE(found_by_graph, kRounds / 2);
}

TEST_F(PlannedTest, AKernelThatCannotHaveItsPrologueHereIsNamed) {
  Replay replay;
  replay.UseImage(Spoil(PlainImage(), "test_scale"));
  replay.Start();
  replay.Add(kB, kC, kD);
  replay.Scale(kB, 2);
  ASSERT_TRUE(replay.Open(HostDevice()).ok());
  const auto input =
      InputOf(replay, replay.session().reader(), TrueEffects(replay.program()));
  EXPECT_TRUE(input.graph.nodes[0].patchable);
  EXPECT_FALSE(input.graph.nodes[1].patchable);
  plan::Plan plan;
  plan.level = plan::Level::kO1;
  plan.nodes.resize(2);
  plan.edges = {{{0, 1}, {}}};
  EXPECT_TRUE(replay.session().NewPlanned(plan, {}).ok());
  plan.nodes[1].prologue = cubin::Prologue::kWait;
  const auto made = replay.session().NewPlanned(plan, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(made.status())) << made.status();
  EXPECT_TRUE(absl::StrContains(made.status().message(), "test_scale"))
      << made.status();
  // O1 keeps the program's edges, all of them and no others.
  plan.nodes[1].prologue = cubin::Prologue::kNone;
  plan.edges.clear();
  EXPECT_TRUE(
      absl::IsInvalidArgument(replay.session().NewPlanned(plan, {}).status()));
}

TEST(RandomOrdersTest, KeepAllEdgesAndLeaveNoOrderOut) {
  // 0 before 1 and 2; 3 free: 0 1 2 with 3 anywhere, and 0 2 1: 8 orders.
  RandomOrders orders(4, {{0, 1}, {0, 2}}, 5);
  std::map<std::vector<uint32_t>, int> seen;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<uint32_t> order = orders.Next();
    ASSERT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 4u);
    std::vector<size_t> at(4);
    for (size_t p = 0; p < 4; ++p) at[order[p]] = p;
    ASSERT_LT(at[0], at[1]);
    ASSERT_LT(at[0], at[2]);
    ++seen[order];
  }
  EXPECT_EQ(seen.size(), 8u);
  for (const auto& [order, count] : seen) EXPECT_GT(count, 60);
  // The same seed, the same orders.
  RandomOrders a(4, {{0, 1}}, 9);
  RandomOrders b(4, {{0, 1}}, 9);
  RandomOrders c(4, {{0, 1}}, 10);
  int different = 0;
  for (int i = 0; i < 20; ++i) {
    const auto next = a.Next();
    EXPECT_EQ(next, b.Next());
    different += next == c.Next() ? 0 : 1;
  }
  EXPECT_GT(different, 5);
}

}  // namespace
}  // namespace heddle::replay
