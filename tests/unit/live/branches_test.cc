// SPDX-License-Identifier: Apache-2.0
// Level 2 in a program: kernels that share no memory run side by side, what
// they leave is what they leave one after another, and what that rests on is
// given up in time.

#include <memory>
#include <set>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

// What the optimizer gave to the driver to launch.
std::vector<CUgraphExec> g_launched;
CUresult WatchedLaunch(CUgraphExec exec, CUstream stream) {
  g_launched.push_back(exec);
  return cuGraphLaunch(exec, stream);
}

class LiveBranchesTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    Watch(Options());
  }
  static LiveOptions Options() {
    LiveOptions options = LiveTest::Options();
    options.level = 2;
    options.styles = {plan::Style::kProgrammatic,
                      plan::Style::kProgrammaticEarly};
    options.branches = {2, 3};
    return options;
  }
  void Watch(LiveOptions options,
             const std::function<void(device::Driver*)>& change = nullptr) {
    StartOptimizer(std::move(options), [&](device::Driver* driver) {
      driver->GraphLaunch = WatchedLaunch;
      if (change != nullptr) change(driver);
    });
  }
  static std::string Notes() {
    const std::vector<nlohmann::json> reports = Reports();
    return reports.empty() ? "no report" : reports.back()["notes"].dump();
  }
  void Make(const Program& program) {
    program_of_test_ = program;
    PlaceApart(program);
    nodes_.clear();
    graph_ = Build(program, &nodes_);
    exec_ = Instantiate(graph_);
    expected_ = program.Start();
  }
  void Unmake() {
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec_));
    EXPECT_OK(LIVE(cuGraphDestroy)(graph_));
    FreeApart();
  }
  // With another input and another order of blocks each time.
  void LaunchAndCheck() {
    heddleHostDeviceSetSeed(++seed_);
    for (unsigned& value : expected_[0]) {
      value = value * 69069 + static_cast<unsigned>(seed_);
    }
    Write(0, expected_[0]);
    g_launched.clear();
    Launch(exec_);
    program_of_test_.RunSerially(&expected_);
    ASSERT_EQ(ReadAll(program_of_test_), expected_) << "seed " << seed_;
  }
  void LaunchAndCheck(int times) {
    for (int i = 0; i < times && !HasFailure(); ++i) LaunchAndCheck();
  }
  // Until a form of level 2 is in use, which is returned.
  CUgraphExec Settle() {
    LaunchAndCheck(4);
    EXPECT_EQ(g_launched.size(), 1u);
    EXPECT_NE(g_launched.back(), exec_) << Reports().back();
    EXPECT_EQ(Reports().back()["level"], "O2") << Reports().back();
    return g_launched.back();
  }

  Program program_of_test_;
  std::vector<CUgraphNode> nodes_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  Memory expected_;
  uint64_t seed_ = 0;
};

TEST_F(LiveBranchesTest, IndependentKernelsRunSideBySide) {
  for (const uint32_t width : {2u, 3u, 4u}) {
    for (const unsigned blocks : {1u, 2u}) {
      Make(Program::Lanes(width, 3, blocks));
      LaunchAndCheck(12);
      ASSERT_FALSE(HasFailure()) << width << " lanes";
      const nlohmann::json report = Reports().back();
      EXPECT_EQ(report["outcome"], "rewritten") << report;
      EXPECT_EQ(report["level"], "O2") << report;
      EXPECT_GT(report["branches"], 1) << report;
      EXPECT_LE(report["branches"], 3) << report;
      EXPECT_GT(report["converted"], 0) << report;
      EXPECT_EQ(std::string(report["style"]).rfind("O2 ", 0), 0u) << report;
      EXPECT_EQ(Notes().find("touch anything"), std::string::npos) << report;
      Unmake();
    }
  }
}

TEST_F(LiveBranchesTest, RandomProgramsGiveWhatTheyGiveInALine) {
  Random random(23);
  constexpr int kPrograms = 120;
  int branched = 0;
  for (int i = 0; i < kPrograms; ++i) {
    Make(i % 3 == 0 ? Program::Any(random, 10)
                    : Program::InLine(random, 12, 4 + Below(random, 6)));
    LaunchAndCheck(8);
    ASSERT_FALSE(HasFailure()) << "program " << i << ": " << Reports().back();
    if (Reports().back()["level"] == "O2") ++branched;
    Unmake();
  }
  EXPECT_GT(branched, kPrograms / 8);
}

// Every number that is allowed alone, and no level 2 if none is asked for.
TEST_F(LiveBranchesTest, NoMoreBranchesThanAllowed) {
  for (const uint32_t most : {1u, 2u, 3u, 4u}) {
    LiveOptions options = Options();
    options.branches = {most};
    Watch(options);
    Make(Program::Lanes(4, 2, 1));
    LaunchAndCheck(5);
    const nlohmann::json report = Reports().back();
    EXPECT_EQ(report["level"], most == 1 ? "O1" : "O2") << report;
    EXPECT_LE(report["branches"], most) << report;
    Unmake();
  }
  Watch(LiveTest::Options());
  Make(Program::Lanes(4, 2, 1));
  LaunchAndCheck(5);
  EXPECT_EQ(Reports().back()["level"], "O1") << Reports().back();
}

// A chain has no order that nothing needs.
TEST_F(LiveBranchesTest, AChainStaysAtLevel1) {
  Make(Program::Chain(6, 2));
  LaunchAndCheck(6);
  EXPECT_EQ(Reports().back()["outcome"], "rewritten");
  EXPECT_EQ(Reports().back()["level"], "O1") << Reports().back();
  EXPECT_EQ(Reports().back()["branches"], 1);
}

// ---- what it rests on -------------------------------------------------------

// Each change makes a node touch what others touch, so that the order that
// level 2 took out is needed from then on.
class LiveGiveUpTest : public LiveBranchesTest {
 protected:
  enum Change { kKernel, kUpdate, kMemset, kMemory, kDisable, kEnable };

  // Two lanes, of which the second begins with a fill.
  void MakeLanes() {
    Program program = Program::Lanes(2, 4, 2);
    program.steps[1].kernel = false;
    program.steps[1].reads.clear();
    Make(program);
  }
  void Apply(Change change) {
    Program& program = program_of_test_;
    switch (change) {
      case kKernel: {
        // Reads what the other lane just wrote.
        program.steps[3].reads = {0, 3};
        Arguments to;
        Fill(program.steps[3], &to);
        EXPECT_OK(
            LIVE(cuGraphExecKernelNodeSetParams)(exec_, nodes_[3], &to.params));
        return;
      }
      case kUpdate: {
        for (uint32_t i = 3; i < 8; ++i) program.steps[i].reads = {0, i};
        const CUgraph graph = Build(program, nullptr);
        CUgraphExecUpdateResultInfo info{};
        EXPECT_OK(LIVE(cuGraphExecUpdate)(exec_, graph, &info));
        EXPECT_OK(LIVE(cuGraphDestroy)(graph));
        return;
      }
      case kMemset: {
        // What the other lane has read, and is to write.
        program.steps[1].writes = 3;
        const CUDA_MEMSET_NODE_PARAMS params = MemsetOf(program.steps[1]);
        EXPECT_OK(LIVE(cuGraphExecMemsetNodeSetParams)(exec_, nodes_[1],
                                                       &params, context_));
        return;
      }
      case kMemory: {
        // At the same place, so the graph's parameters are right as they are.
        const CUdeviceptr before = At(3);
        EXPECT_OK(LIVE(cuMemFree)(before));
        std::vector<CUdeviceptr> others;
        CUdeviceptr now = Values(expected_[3]);
        while (now != before && others.size() < 1000) {
          others.push_back(now);
          now = Values(expected_[3]);
        }
        ASSERT_EQ(now, before);
        for (const CUdeviceptr other : others) {
          EXPECT_OK(LIVE(cuMemFree)(other));
        }
        return;
      }
      case kDisable:
      case kEnable:
        EXPECT_OK(LIVE(cuGraphNodeSetEnabled)(exec_, nodes_[3],
                                              change == kEnable ? 1 : 0));
        if (change == kDisable) program.steps[3].blocks = 0;
        return;
    }
  }
};

TEST_F(LiveGiveUpTest, WhatAFormRestsOnChanges) {
  for (const Change change :
       {kKernel, kUpdate, kMemset, kMemory, kDisable, kEnable}) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      MakeLanes();
      const CUgraphExec branched = Settle();
      LaunchAndCheck(repeat);
      Apply(change);
      for (int launch = 0; launch < 6; ++launch) {
        LaunchAndCheck();
        ASSERT_FALSE(HasFailure()) << "change " << change;
        ASSERT_EQ(g_launched.size(), 1u);
        EXPECT_NE(g_launched[0], branched) << "change " << change;
        // The order of the program's graph is as good as before, but a disabled
        // kernel does not wait, which early edges count on.
        EXPECT_EQ(g_launched[0] == exec_,
                  change == kDisable || change == kEnable)
            << "change " << change;
      }
      Unmake();
    }
  }
}

// Before or between the trials.
TEST_F(LiveGiveUpTest, ChangesBeforeItIsSettled) {
  for (const Change change :
       {kKernel, kUpdate, kMemset, kMemory, kDisable, kEnable}) {
    for (const int before : {0, 1, 2}) {
      MakeLanes();
      LaunchAndCheck(before);
      Apply(change);
      LaunchAndCheck(8);
      ASSERT_FALSE(HasFailure())
          << "change " << change << " after " << before << " launches";
      const nlohmann::json report = Reports().back();
      if (before > 0) {
        EXPECT_NE(report["level"], "O2")
            << "change " << change << " after " << before << ": " << report;
      } else if (change == kKernel || change == kMemset || change == kMemory) {
        // The first trial sees the graph as it is now.
        EXPECT_EQ(report["outcome"], "rewritten") << report;
      }
      Unmake();
    }
  }
}

// The form behind it, level 1, is kept up to date, too.
TEST_F(LiveGiveUpTest, OneChangeAfterAnother) {
  Random random(29);
  for (int round = 0; round < 25; ++round) {
    MakeLanes();
    Settle();
    for (int i = 0; i < 6; ++i) {
      const auto change = static_cast<Change>(Below(random, kMemory + 1));
      Apply(change);
      LaunchAndCheck(2);
      ASSERT_FALSE(HasFailure()) << "round " << round << " change " << change;
      EXPECT_NE(g_launched[0], exec_);
    }
    Unmake();
  }
}

// Memory that the graph does not use may come and go.
TEST_F(LiveGiveUpTest, OtherMemory) {
  const CUdeviceptr other = Values(Buffer(1000, 1));
  MakeLanes();
  const CUgraphExec branched = Settle();
  EXPECT_OK(LIVE(cuMemFree)(other));
  const CUdeviceptr another = Values(Buffer(3000, 1));
  LaunchAndCheck();
  EXPECT_EQ(g_launched, std::vector<CUgraphExec>{branched});
  EXPECT_OK(LIVE(cuMemFree)(another));
  LaunchAndCheck();
  EXPECT_EQ(g_launched, std::vector<CUgraphExec>{branched});
}

// ---- what is not known ------------------------------------------------------

// The same launches of the program's own graph, past heddle, on the same
// memory.
class LiveUnknownTest : public LiveBranchesTest {
 protected:
  void Make(CUgraph graph, const std::vector<CUdeviceptr>& buffers) {
    graph_ = graph;
    buffers_ = buffers;
    ASSERT_CUDA(cuGraphInstantiateWithFlags(&own_, graph, 0));
    exec_ = Instantiate(graph);
  }
  // Whether both left the same, on all buffers of kCount values.
  bool LaunchBoth() {
    Memory before;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      Buffer values(kCount);
      for (unsigned& value : values) value = value_ = value_ * 69069 + 1;
      before.push_back(std::move(values));
    }
    const auto put = [&] {
      for (size_t i = 0; i < buffers_.size(); ++i) {
        EXPECT_OK(cuMemcpyHtoD(buffers_[i], before[i].data(), kCount * 4));
      }
      EXPECT_OK(cuCtxSynchronize());
    };
    const auto get = [&] {
      Memory after;
      for (const CUdeviceptr buffer : buffers_) {
        after.push_back(ReadBack(buffer, kCount));
      }
      return after;
    };
    put();
    heddleHostDeviceSetSeed(++seed_);
    g_launched.clear();
    Launch(exec_);
    const Memory live = get();
    put();
    EXPECT_OK(cuGraphLaunch(own_, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    return live == get();
  }
  CUdeviceptr NewBuffer() { return Values(Buffer(kCount, 0)); }

  std::vector<CUdeviceptr> buffers_;
  CUgraphExec own_ = nullptr;
  unsigned value_ = 1;
};

// `follow` goes to an address that it finds in memory: only the order says that
// the kernels around it use the same.
TEST_F(LiveUnknownTest, KernelsOfUnknownAccessKeepTheirPlace) {
  for (int round = 0; round < 8; ++round) {
    const CUdeviceptr shared = NewBuffer();
    const CUdeviceptr table = Reserve(sizeof(shared));
    EXPECT_OK(LIVE(cuMemcpyHtoD)(table, &shared, sizeof(shared)));
    EXPECT_OK(LIVE(cuCtxSynchronize)());
    std::vector<CUdeviceptr> lanes;
    for (int i = 0; i < 8; ++i) lanes.push_back(NewBuffer());
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    CUgraphNode node = AddFold(graph, nullptr, shared, lanes[0], 1);
    node = AddFold(graph, node, lanes[1], lanes[2], 2);
    node = Add(graph, node, Kernel("follow"), table, 0u);
    node = AddFold(graph, node, lanes[3], shared, 3);
    node = AddFold(graph, node, lanes[4], lanes[5], 4);
    node = Add(graph, node, Kernel("follow"), table, 0u);
    node = AddFold(graph, node, lanes[6], shared, 5);
    AddFold(graph, node, lanes[7], lanes[5], 6);
    lanes.push_back(shared);
    Make(graph, lanes);
    for (int launch = 0; launch < 12; ++launch) {
      ASSERT_TRUE(LaunchBoth()) << "launch " << launch;
    }
    EXPECT_EQ(Reports().back()["outcome"], "rewritten") << Reports().back();
    // The trials would not let a wrong form be used. There must be none.
    EXPECT_EQ(Notes().find("gave another result"), std::string::npos)
        << Notes();
    EXPECT_NE(Notes().find("2 of 8 nodes may touch anything; follow: "),
              std::string::npos)
        << Notes();
  }
}

// Two addresses of the same bytes.
TEST_F(LiveUnknownTest, MemoryThatIsMappedTwiceKeepsItsOrder) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t size = 0;
  ASSERT_CUDA(LIVE(cuMemGetAllocationGranularity)(
      &size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CUDA(LIVE(cuMemCreate)(&handle, size, &prop, 0));
  CUmemAccessDesc access{};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUdeviceptr twice[2] = {};
  for (CUdeviceptr& address : twice) {
    ASSERT_CUDA(LIVE(cuMemAddressReserve)(&address, size, 0, 0, 0));
    ASSERT_CUDA(LIVE(cuMemMap)(address, size, 0, handle, 0));
    ASSERT_CUDA(LIVE(cuMemSetAccess)(address, size, &access, 1));
  }
  std::vector<CUdeviceptr> lanes = {twice[0]};
  for (int i = 0; i < 6; ++i) lanes.push_back(NewBuffer());
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = nullptr;
  for (unsigned i = 0; i < 3; ++i) {
    node = AddFold(graph, node, twice[0], lanes[1], i);
  }
  node = AddFold(graph, node, lanes[2], twice[1], 3);
  node = AddFold(graph, node, lanes[3], lanes[4], 4);
  AddFold(graph, node, lanes[5], lanes[6], 5);
  Make(graph, lanes);
  for (int launch = 0; launch < 12; ++launch) {
    ASSERT_TRUE(LaunchBoth()) << "launch " << launch;
  }
  EXPECT_EQ(Notes().find("gave another result"), std::string::npos) << Notes();
  EXPECT_NE(Notes().find("mapped at two addresses"), std::string::npos)
      << Notes();
}

// Two fills of one buffer with one value, in no order: right in any order, but
// the program may have others that count on running at once.
TEST_F(LiveBranchesTest, AGraphWithUnorderedSharingIsLeftToLevel1) {
  Program program = Program::Lanes(2, 3, 2);
  Step fill;
  fill.kernel = false;
  fill.salt = 5;
  fill.writes = program.buffers++;
  program.steps.push_back(fill);
  program.steps.push_back(fill);
  Make(program);
  LaunchAndCheck(8);
  const nlohmann::json report = Reports().back();
  EXPECT_EQ(report["outcome"], "rewritten") << report;
  EXPECT_EQ(report["level"], "O1") << report;
  EXPECT_NE(Notes().find("level 2 leaves it alone"), std::string::npos)
      << report;
}

// The driver lies about what a copy between two kernels touches, so order is
// missing: the trials find that out, and what they were asked for is right.
TEST_F(LiveUnknownTest, AMissingOrderIsFound) {
  static CUdeviceptr scratch = 0;
  int caught = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    LiveOptions options = Options();
    options.verify_launches = 6;
    Watch(options, [](device::Driver* driver) {
      driver->GraphMemcpyNodeGetParams = [](CUgraphNode node,
                                            CUDA_MEMCPY3D* params) {
        const CUresult result = cuGraphMemcpyNodeGetParams(node, params);
        params->srcDevice = scratch;
        params->dstDevice = scratch + kCount * sizeof(unsigned);
        return result;
      };
    });
    scratch = Values(Buffer(2 * kCount, 0));
    std::vector<CUdeviceptr> lanes;
    for (int i = 0; i < 6; ++i) lanes.push_back(NewBuffer());
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    CUgraphNode node = nullptr;
    for (unsigned i = 0; i < 3; ++i) {
      node = AddFold(graph, node, lanes[0], lanes[1], i);
    }
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = lanes[0];
    copy.dstDevice = lanes[2];
    copy.WidthInBytes = kCount * sizeof(unsigned);
    copy.Height = copy.Depth = 1;
    CUgraphNode copy_node = nullptr;
    EXPECT_OK(LIVE(cuGraphAddMemcpyNode)(&copy_node, graph, &node, 1, &copy,
                                         context_));
    node = AddFold(graph, copy_node, lanes[3], lanes[2], 7);
    AddFold(graph, node, lanes[4], lanes[5], 8);
    Make(graph, lanes);
    for (int launch = 0; launch < options.verify_launches; ++launch) {
      ASSERT_TRUE(LaunchBoth()) << "round " << round << " launch " << launch;
    }
    const std::string notes = Notes();
    if (notes.find("gave another result") != std::string::npos) ++caught;
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec_));
  }
  EXPECT_GT(caught, kRounds / 2);
}

}  // namespace
}  // namespace heddle::live
