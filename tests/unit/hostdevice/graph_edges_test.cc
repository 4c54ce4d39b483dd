// SPDX-License-Identifier: Apache-2.0
// The definition of the edge types: each missing wait gives a wrong answer for
// some order, each right use gives the right answer for all.

#include "tests/unit/hostdevice/device_test.h"

namespace {

constexpr unsigned kBlocks = 6;
constexpr int kCount = kBlocks;
constexpr int kFilled = 100 * kBlocks + 15;
constexpr int kSeeds = 120;

CUgraphEdgeData Edge(int port, int type) {
  CUgraphEdgeData data{};
  data.from_port = static_cast<unsigned char>(port);
  data.type = static_cast<unsigned char>(type);
  return data;
}
const CUgraphEdgeData kFull =
    Edge(CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
const CUgraphEdgeData kProgrammatic =
    Edge(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
         CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
const CUgraphEdgeData kLaunchOrder =
    Edge(CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
         CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
const CUgraphEdgeData kLaunchOrderPlain = Edge(
    CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);

class GraphEdgesTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    data_ = Ints(kBlocks);
    middle_ = Ints(kBlocks);
    out_ = Ints(1);
    ASSERT_CUDA(cuGraphCreate(&graph_, 0));
  }

  void Connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data) {
    ASSERT_CUDA(cuGraphAddDependencies_v2(graph_, &from, &to, &data, 1));
  }

  // What the graph leaves in out_, over many orders.
  std::set<int> Run() {
    CUgraphExec exec = nullptr;
    EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph_, 0));
    const CUstream stream = NewStream();
    const std::set<int> seen = OverSeeds(kSeeds, [&] {
      EXPECT_OK(cuMemsetD32(data_, 0, kBlocks));
      EXPECT_OK(cuMemsetD32(middle_, 0, kBlocks));
      EXPECT_OK(cuMemsetD32(out_, 0, 1));
      EXPECT_OK(cuCtxSynchronize());
      EXPECT_OK(cuGraphLaunch(exec, stream));
      EXPECT_OK(cuStreamSynchronize(stream));
      return Read(out_, 1)[0];
    });
    EXPECT_OK(cuGraphExecDestroy(exec));
    return seen;
  }

  // fill → sum over one edge.
  std::set<int> FillThenSum(const char* producer, const CUgraphEdgeData* edge,
                            const char* consumer) {
    const CUgraphNode a = AddKernel(graph_, producer, kBlocks, data_, 100);
    const CUgraphNode b = AddKernel(graph_, consumer, 1, out_, data_, kCount);
    if (edge != nullptr) Connect(a, b, *edge);
    return Run();
  }

  CUdeviceptr data_ = 0;
  CUdeviceptr middle_ = 0;
  CUdeviceptr out_ = 0;
  CUgraph graph_ = nullptr;
};

const std::set<int> kRight{kFilled};

TEST_F(GraphEdgesTest, NoEdgeIsARace) {
  EXPECT_GT(FillThenSum("fill", nullptr, "sum").size(), 2u);
}

TEST_F(GraphEdgesTest, AFullEdgeOrdersKernels) {
  EXPECT_EQ(FillThenSum("fill", &kFull, "sum"), kRight);
}

TEST_F(GraphEdgesTest, AFullEdgeOrdersKernelsThatTrigger) {
  EXPECT_EQ(FillThenSum("fill_trigger_first", &kFull, "sum"), kRight);
}

TEST_F(GraphEdgesTest, AProgrammaticEdgeWithAWaitIsSafe) {
  EXPECT_EQ(FillThenSum("fill_trigger_first", &kProgrammatic, "sum_wait"),
            kRight);
}

TEST_F(GraphEdgesTest, AProgrammaticEdgeWithoutAWaitIsARace) {
  const std::set<int> seen =
      FillThenSum("fill_trigger_first", &kProgrammatic, "sum");
  EXPECT_TRUE(seen.count(kFilled));
  EXPECT_GT(seen.size(), 2u);
}

TEST_F(GraphEdgesTest, AnExitReleasesDependentsBeforeItsWritesAreVisible) {
  // No trigger in the producer: the end of each block is one.
  EXPECT_GT(FillThenSum("fill", &kProgrammatic, "sum").size(), 1u);
}

TEST_F(GraphEdgesTest, AnExitThenAWaitIsSafe) {
  EXPECT_EQ(FillThenSum("fill", &kProgrammatic, "sum_wait"), kRight);
}

TEST_F(GraphEdgesTest, ALaunchOrderEdgeWithAWaitIsSafe) {
  EXPECT_EQ(FillThenSum("fill", &kLaunchOrder, "sum_wait"), kRight);
}

TEST_F(GraphEdgesTest, ALaunchOrderEdgeWithoutAWaitIsARace) {
  EXPECT_GT(FillThenSum("fill", &kLaunchOrder, "sum").size(), 2u);
}

TEST_F(GraphEdgesTest, TheWaitDoesNotSeeADefaultTypeLaunchOrderEdge) {
  EXPECT_GT(FillThenSum("fill", &kLaunchOrderPlain, "sum_wait").size(), 2u);
}

TEST_F(GraphEdgesTest, AChainInWhichEveryKernelWaitsIsSafe) {
  for (const CUgraphEdgeData& edge : {kProgrammatic, kLaunchOrder}) {
    ASSERT_CUDA(cuGraphDestroy(graph_));
    ASSERT_CUDA(cuGraphCreate(&graph_, 0));
    const CUgraphNode a =
        AddKernel(graph_, "fill_trigger_first", kBlocks, data_, 100);
    const CUgraphNode b =
        AddKernel(graph_, "copy_trigger_wait", kBlocks, middle_, data_);
    const CUgraphNode c =
        AddKernel(graph_, "sum_wait", 1, out_, middle_, kCount);
    Connect(a, b, edge);
    Connect(b, c, edge);
    EXPECT_EQ(Run(), kRight);
  }
}

TEST_F(GraphEdgesTest, AMiddleThatDoesNotWaitLetsTheEndOutrunTheStart) {
  // A→B→C: C waits, but for B alone, and B has not waited for A.
  const CUgraphNode a =
      AddKernel(graph_, "fill_trigger_first", kBlocks, data_, 100);
  const CUgraphNode b =
      AddKernel(graph_, "idle_trigger", kBlocks, CUdeviceptr{0});
  const CUgraphNode c = AddKernel(graph_, "sum_wait", 1, out_, data_, kCount);
  Connect(a, b, kProgrammatic);
  Connect(b, c, kProgrammatic);
  EXPECT_GT(Run().size(), 2u);
}

TEST_F(GraphEdgesTest, AFullEdgeBehindAMiddleThatDoesNotWaitDoesNotHelp) {
  const CUgraphNode a =
      AddKernel(graph_, "fill_trigger_first", kBlocks, data_, 100);
  const CUgraphNode b =
      AddKernel(graph_, "idle_trigger", kBlocks, CUdeviceptr{0});
  const CUgraphNode c = AddKernel(graph_, "sum", 1, out_, data_, kCount);
  Connect(a, b, kProgrammatic);
  Connect(b, c, kFull);
  EXPECT_GT(Run().size(), 2u);
}

TEST_F(GraphEdgesTest, AllWorkOfALaunchIsDoneAtItsEnd) {
  // Nothing depends on the end of the producer but the launch itself.
  const CUgraphNode a =
      AddKernel(graph_, "fill_trigger_first", kBlocks, data_, 100);
  const CUgraphNode b =
      AddKernel(graph_, "idle_trigger", kBlocks, CUdeviceptr{0});
  Connect(a, b, kProgrammatic);
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph_, 0));
  const CUstream stream = NewStream();
  const std::set<int> seen = OverSeeds(kSeeds, [&] {
    EXPECT_OK(cuMemsetD32(data_, 0, kBlocks));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuGraphLaunch(exec, stream));
    EXPECT_OK(Launch("sum", 1, stream, out_, data_, kCount));
    EXPECT_OK(cuStreamSynchronize(stream));
    return Read(out_, 1)[0];
  });
  EXPECT_EQ(seen, kRight);
}

TEST_F(GraphEdgesTest, RefusesEdgeDataThatMeansNothing) {
  const CUgraphNode a = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphNode b = AddKernel(graph_, "fill", 1, data_, 1);
  CUgraphNode empty = nullptr;
  ASSERT_CUDA(cuGraphAddEmptyNode(&empty, graph_, nullptr, 0));
  const auto add = [&](CUgraphNode from, CUgraphNode to, CUgraphEdgeData data) {
    return cuGraphAddDependencies_v2(graph_, &from, &to, &data, 1);
  };
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, Edge(1, 0)));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, Edge(0, 1)));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, Edge(3, 1)));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, Edge(1, 2)));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, empty, kProgrammatic));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(empty, a, kProgrammatic));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(empty, a, kLaunchOrderPlain));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, a, kFull));
  CUgraphEdgeData reserved = kFull;
  reserved.reserved[0] = 1;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, reserved));
  EXPECT_OK(add(a, b, kProgrammatic));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, add(a, b, kProgrammatic));
  EXPECT_OK(add(a, empty, kLaunchOrderPlain));
}

// A consumer that may begin early takes the slots that its producer needs, and
// holds them while it waits.
TEST_F(GraphEdgesTest, WaitingConsumersThatFillTheDeviceAreFoundAsADeadlock) {
  const unsigned many = 64;
  const CUdeviceptr wide = Ints(many);
  const CUdeviceptr wide_out = Ints(many);
  const CUgraphNode a = AddKernel(graph_, "fill", many, wide, 1);
  const CUgraphNode b = AddKernel(graph_, "sum_wait", many, wide_out, wide, 1);
  Connect(a, b, kLaunchOrder);
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph_, 0));
  const CUstream stream = NewStream();
  CUresult result = CUDA_SUCCESS;
  testing::internal::CaptureStderr();
  for (uint64_t seed = 1; seed < 500 && result == CUDA_SUCCESS; ++seed) {
    heddleHostDeviceSetSeed(seed);
    ASSERT_CUDA(cuGraphLaunch(exec, stream));
    result = cuStreamSynchronize(stream);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_TIMEOUT, result);
  EXPECT_NE(text.find("DEADLOCK"), std::string::npos) << text;
  EXPECT_NE(text.find("sum_wait"), std::string::npos) << text;
  EXPECT_NE(text.find("wait for fill"), std::string::npos) << text;
  // The error stays until the context goes.
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_TIMEOUT, cuCtxSynchronize());
  CUdeviceptr address = 0;
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_TIMEOUT, cuMemAlloc(&address, 4));
  Restart();
  const CUdeviceptr after = Ints(1);
  EXPECT_OK(Launch("fill", 1, nullptr, after, 5));
  EXPECT_EQ(Read(after, 1)[0], 5);
}

// The trigger as the first instruction gives what the launch-order port does
// not: the consumer begins when every block of the producer has.
TEST_F(GraphEdgesTest, ATriggerFirstProgrammaticEdgeNeverDeadlocks) {
  const unsigned many = 64;
  const CUdeviceptr wide = Ints(many);
  const CUdeviceptr wide_out = Ints(many);
  const CUgraphNode a = AddKernel(graph_, "fill_trigger_first", many, wide, 1);
  const CUgraphNode b =
      AddKernel(graph_, "copy_trigger_wait", many, wide_out, wide);
  const CUgraphNode c = AddKernel(graph_, "sum_wait", many, wide, wide_out,
                                  static_cast<int>(many));
  Connect(a, b, kProgrammatic);
  Connect(b, c, kProgrammatic);
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph_, 0));
  const CUstream stream = NewStream();
  const std::set<int> seen = OverSeeds(kSeeds, [&] {
    EXPECT_OK(cuGraphLaunch(exec, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
    return Read(wide, many)[many - 1];
  });
  EXPECT_EQ(seen, (std::set<int>{static_cast<int>(many * (many + 1) / 2)}));
}

// The same rules for launches in a stream.
TEST_F(GraphEdgesTest, ProgrammaticLaunchesInAStreamRaceUnlessTheyWait) {
  const CUstream stream = NewStream();
  const auto run = [&](const char* consumer) {
    return OverSeeds(kSeeds, [&] {
      EXPECT_OK(cuMemsetD32(data_, 0, kBlocks));
      EXPECT_OK(cuCtxSynchronize());
      EXPECT_OK(Launch("fill_trigger_first", kBlocks, stream, data_, 100));
      EXPECT_OK(LaunchProgrammatic(consumer, 1, stream, out_, data_, kCount));
      EXPECT_OK(cuStreamSynchronize(stream));
      return Read(out_, 1)[0];
    });
  };
  EXPECT_EQ(run("sum_wait"), kRight);
  EXPECT_GT(run("sum").size(), 2u);
}

TEST_F(GraphEdgesTest, AnOrdinaryLaunchWaitsForAllBeforeIt) {
  const CUstream stream = NewStream();
  const std::set<int> seen = OverSeeds(kSeeds, [&] {
    EXPECT_OK(cuMemsetD32(data_, 0, kBlocks));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(Launch("fill_trigger_first", kBlocks, stream, data_, 100));
    EXPECT_OK(
        LaunchProgrammatic("idle_trigger", kBlocks, stream, CUdeviceptr{0}));
    EXPECT_OK(Launch("sum", 1, stream, out_, data_, kCount));
    EXPECT_OK(cuStreamSynchronize(stream));
    return Read(out_, 1)[0];
  });
  EXPECT_EQ(seen, kRight);
}

}  // namespace
