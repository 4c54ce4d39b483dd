// SPDX-License-Identifier: Apache-2.0
// Graphs give what their kernels give one after another, whatever form runs.

#include <set>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

// What the optimizer gave to the driver to launch, and the program's own.
std::vector<CUgraphExec> g_launched;
CUresult WatchedLaunch(CUgraphExec exec, CUstream stream) {
  g_launched.push_back(exec);
  return cuGraphLaunch(exec, stream);
}

class LiveGraphsTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    Watch(Options());
  }
  void Watch(LiveOptions options) {
    StartOptimizer(std::move(options), [](device::Driver* driver) {
      driver->GraphLaunch = WatchedLaunch;
    });
  }

  // Launches `program` eight times with changing input. Returns whether its
  // rewritten form was in use in the end.
  bool Check(const Program& program, bool captured, uint64_t seed) {
    Place(program);
    const CUgraph graph = captured ? Capture(program) : Build(program, nullptr);
    const CUgraphExec exec = Instantiate(graph);
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
    Memory expected = program.Start();
    bool rewritten = false;
    for (unsigned launch = 0; launch < 8; ++launch) {
      heddleHostDeviceSetSeed(seed * 100 + launch);
      for (unsigned& value : expected[0]) value = value * 69069 + launch;
      Write(0, expected[0]);
      g_launched.clear();
      Launch(exec);
      program.RunSerially(&expected);
      EXPECT_EQ(ReadAll(program), expected)
          << "launch " << launch << ", seed " << seed
          << (captured ? ", captured" : ", built");
      if (testing::Test::HasFailure()) return false;
      rewritten = g_launched == std::vector<CUgraphExec>{g_launched.back()} &&
                  g_launched.back() != exec;
      // Not before it was verified often enough.
      EXPECT_FALSE(launch < 3 && rewritten);
    }
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec));
    EXPECT_OK(LIVE(cuMemFree)(memory_));
    const std::vector<nlohmann::json> reports = Reports();
    EXPECT_EQ(reports.back()["outcome"] == "rewritten", rewritten)
        << reports.back();
    return rewritten;
  }
};

TEST_F(LiveGraphsTest, Chain) {
  for (const bool captured : {false, true}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      const unsigned blocks = seed % 2 == 0 ? 2 : kCount;
      EXPECT_TRUE(Check(Program::Chain(6, blocks), captured, seed));
      ExpectRewritten();
      EXPECT_EQ(Reports().back()["kernels"], 6);
      EXPECT_EQ(Reports().back()["patched"], 6);
      EXPECT_EQ(Reports().back()["converted"], 5);
      EXPECT_EQ(Reports().back()["edges"], 5);
    }
  }
}

TEST_F(LiveGraphsTest, ForkAndJoin) {
  for (const bool captured : {false, true}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      const unsigned blocks = seed % 2 == 0 ? 2 : kCount;
      EXPECT_TRUE(Check(Program::ForkJoin(3, blocks), captured, seed));
      ExpectRewritten();
    }
  }
}

TEST_F(LiveGraphsTest, EachStyleAlone) {
  for (const plan::Style style : Options().styles) {
    LiveOptions options = Options();
    options.styles = {style};
    Watch(options);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      EXPECT_TRUE(Check(Program::Chain(5, 2), seed % 2 == 0, seed));
      ExpectRewritten();
      EXPECT_EQ(Reports().back()["launch_order"] > 0,
                style == plan::Style::kLaunchOrder);
      EXPECT_TRUE(Check(Program::ForkJoin(4, kCount), seed % 2 == 0, seed));
    }
  }
}

TEST_F(LiveGraphsTest, Random) {
  Random random(17);
  constexpr int kGraphs = 150;
  int rewritten = 0;
  std::set<std::string> styles;
  for (int i = 0; i < kGraphs; ++i) {
    const Program program = Program::Any(random, 9);
    rewritten += Check(program, i % 2 == 0, static_cast<uint64_t>(i)) ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "graph " << i;
    styles.insert(std::string(Reports().back()["style"]));
  }
  // Some have no edge between two kernels.
  EXPECT_GT(rewritten, kGraphs / 2);
  EXPECT_GE(styles.size(), 3u);
}

// A form that is not faster is not used.
TEST_F(LiveGraphsTest, NotFaster) {
  LiveOptions options = Options();
  options.least_gain = 100;
  Watch(options);
  EXPECT_FALSE(Check(Program::Chain(4, 2), false, 1));
  ExpectOutcome("not faster");
}

TEST_F(LiveGraphsTest, OwnGraphsForMeasurement) {
  const Program program = Program::Chain(4, 2);
  Place(program);
  const CUgraphExec exec = Instantiate(Build(program, nullptr));
  Memory expected = program.Start();
  for (int launch = 0; launch < 8; ++launch) {
    EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(launch % 2 == 0),
              launch < 3 ? 0 : 1);
    g_launched.clear();
    Launch(exec);
    program.RunSerially(&expected);
    EXPECT_EQ(ReadAll(program), expected);
    if (launch >= 3) {
      EXPECT_EQ(g_launched.back() == exec, launch % 2 == 0);
    }
  }
}

// Launched too seldom, the graph is reported all the same.
TEST_F(LiveGraphsTest, SeldomLaunched) {
  const Program program = Program::Chain(4, 2);
  Place(program);
  const CUgraphExec once = Instantiate(Build(program, nullptr));
  Launch(once);
  EXPECT_TRUE(Reports().empty());
  EXPECT_OK(LIVE(cuGraphExecDestroy)(once));
  ExpectOutcome("launched too seldom");
  const CUgraphExec never = Instantiate(Build(program, nullptr));
  Optimizer::Get()->Finish();
  ASSERT_EQ(Reports().size(), 2u);
  ExpectOutcome("launched too seldom");
  // Not a second time.
  EXPECT_OK(LIVE(cuGraphExecDestroy)(never));
  EXPECT_EQ(Reports().size(), 2u);
}

TEST_F(LiveGraphsTest, ManyShortLivedGraphsAreGivenUp) {
  const Program program = Program::Chain(3, 2);
  Place(program);
  const CUgraph graph = Build(program, nullptr);
  Memory expected = program.Start();
  for (int i = 0; i < 40; ++i) {
    const CUgraphExec exec = Instantiate(graph);
    Launch(exec);
    program.RunSerially(&expected);
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec));
  }
  EXPECT_EQ(ReadAll(program), expected);
  EXPECT_EQ(Reports().size(), 32u);
  g_launched.clear();
  const CUgraphExec left_alone = Instantiate(graph);
  for (int launch = 0; launch < 5; ++launch) {
    Launch(left_alone);
    program.RunSerially(&expected);
  }
  EXPECT_EQ(g_launched, std::vector<CUgraphExec>(5, left_alone));
  EXPECT_EQ(ReadAll(program), expected);
}

}  // namespace
}  // namespace heddle::live
