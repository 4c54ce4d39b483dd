// SPDX-License-Identifier: Apache-2.0
// Graphs that must stay as the program made them, with the reason.

#include <thread>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

class LiveLeaveAloneTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    counter_ = Values({0});
    EXPECT_OK(LIVE(cuGraphCreate)(&graph_, 0));
  }
  CUgraphNode Count(CUgraphNode after) {
    return Add(graph_, after, Kernel("count_up"), counter_);
  }
  // Launches `graph_`; `per_launch` is what one adds to the counter.
  void ExpectLeftAlone(unsigned per_launch, const std::string& reason) {
    const CUgraphExec exec = Instantiate(graph_);
    const unsigned start = ReadBack(counter_, 1)[0];
    for (unsigned launch = 1; launch <= 6; ++launch) {
      Launch(exec);
      EXPECT_EQ(ReadBack(counter_, 1), Buffer{start + launch * per_launch});
    }
    ASSERT_EQ(Reports().size(), 1u);
    ExpectOutcome(reason);
    EXPECT_EQ(Reports().back()["verified_launches"], 0);
    EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 0);
  }

  CUdeviceptr counter_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(LiveLeaveAloneTest, HostNode) {
  static int calls = 0;
  calls = 0;
  CUgraphNode node = Count(nullptr);
  CUDA_HOST_NODE_PARAMS params{[](void* data) { ++*static_cast<int*>(data); },
                               &calls};
  CUgraphNode host = nullptr;
  EXPECT_OK(LIVE(cuGraphAddHostNode)(&host, graph_, &node, 1, &params));
  Count(host);
  ExpectLeftAlone(2, "host function");
  EXPECT_EQ(calls, 6);
}

// Of a child graph too.
TEST_F(LiveLeaveAloneTest, HostNodeInAChildGraph) {
  static int calls = 0;
  calls = 0;
  CUgraph child = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&child, 0));
  CUDA_HOST_NODE_PARAMS params{[](void* data) { ++*static_cast<int*>(data); },
                               &calls};
  CUgraphNode host = nullptr;
  EXPECT_OK(LIVE(cuGraphAddHostNode)(&host, child, nullptr, 0, &params));
  CUgraphNode node = Count(nullptr);
  CUgraphNode inner = nullptr;
  EXPECT_OK(LIVE(cuGraphAddChildGraphNode)(&inner, graph_, &node, 1, child));
  Count(inner);
  ExpectLeftAlone(2, "graph with child graphs");
  EXPECT_EQ(calls, 6);
}

TEST_F(LiveLeaveAloneTest, EventNode) {
  const CUevent event = NewEvent();
  CUgraphNode node = Count(nullptr);
  CUgraphNode record = nullptr;
  EXPECT_OK(LIVE(cuGraphAddEventRecordNode)(&record, graph_, &node, 1, event));
  Count(record);
  ExpectLeftAlone(2, "event node");
}

TEST_F(LiveLeaveAloneTest, OneKernel) {
  Count(nullptr);
  ExpectLeftAlone(1, "fewer than two kernels");
}

TEST_F(LiveLeaveAloneTest, NothingInOrder) {
  Count(nullptr);
  const CUdeviceptr other = Values({0});
  Add(graph_, nullptr, Kernel("count_up"), other);
  ExpectLeftAlone(1, "no edge could be converted");
  EXPECT_EQ(ReadBack(other, 1), Buffer{6});
}

TEST_F(LiveLeaveAloneTest, KernelsOfAnUnknownModule) {
  // Loaded past heddle.
  CUfunction unknown = nullptr;
  EXPECT_OK(cuModuleGetFunction(&unknown, module_, "count_up"));
  CUgraphNode node = Add(graph_, nullptr, unknown, counter_);
  Add(graph_, node, unknown, counter_);
  ExpectLeftAlone(2, "no edge could be converted");
}

TEST_F(LiveLeaveAloneTest, MoreMemoryThanMayBeKeptAside) {
  LiveOptions options = Options();
  options.verify_bytes = 1 << 20;
  StartOptimizer(options);
  counter_ = Values(Buffer((2 << 20) / sizeof(unsigned), 0));
  Count(Count(nullptr));
  ExpectLeftAlone(2, "more than can be kept aside");
}

TEST_F(LiveLeaveAloneTest, MemoryThatOthersSee) {
  Optimizer::Get()->SharesMemory("cuIpcGetMemHandle");
  Count(Count(nullptr));
  ExpectLeftAlone(2, "shares memory with others (cuIpcGetMemHandle)");
}

TEST_F(LiveLeaveAloneTest, NothingElseIsLeftAlone) {
  Count(Count(nullptr));
  CUgraphExec exec = nullptr;
  EXPECT_OK(LIVE(cuGraphInstantiateWithFlags)(
      &exec, graph_,
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  for (unsigned launch = 1; launch <= 6; ++launch) {
    Launch(exec);
    EXPECT_EQ(ReadBack(counter_, 1), Buffer{2 * launch});
  }
  ExpectRewritten();
}

// A trial would break a capture; launches go on without.
TEST_F(LiveLeaveAloneTest, WhileAnotherStreamCaptures) {
  Count(Count(nullptr));
  const CUgraphExec exec = Instantiate(graph_);
  const CUstream other = NewStream();
  EXPECT_OK(LIVE(cuStreamBeginCapture)(other, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int launch = 0; launch < 5; ++launch) {
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, stream_));
  }
  CUgraph captured = nullptr;
  EXPECT_OK(LIVE(cuStreamEndCapture)(other, &captured));
  EXPECT_OK(LIVE(cuStreamSynchronize)(stream_));
  EXPECT_EQ(ReadBack(counter_, 1), Buffer{10});
  EXPECT_TRUE(Reports().empty());
  for (int launch = 0; launch < 3; ++launch) Launch(exec);
  EXPECT_EQ(ReadBack(counter_, 1), Buffer{16});
  ExpectRewritten();
}

// A launch that is captured, before and after the graph was rewritten, is the
// program's own graph: it may look inside.
TEST_F(LiveLeaveAloneTest, IntoACapture) {
  Count(Count(nullptr));
  const CUgraphExec exec = Instantiate(graph_);
  for (const int launches : {0, 4}) {
    for (int launch = 0; launch < launches; ++launch) Launch(exec);
    const unsigned start = ReadBack(counter_, 1)[0];
    CUgraph captured = nullptr;
    EXPECT_OK(
        LIVE(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, stream_));
    EXPECT_OK(LIVE(cuStreamEndCapture)(stream_, &captured));
    CUgraphNode node = nullptr;
    size_t count = 1;
    EXPECT_OK(LIVE(cuGraphGetNodes)(captured, &node, &count));
    ASSERT_EQ(count, 1u);
    CUgraph child = nullptr;
    EXPECT_OK(LIVE(cuGraphChildGraphNodeGetGraph)(node, &child));
    CUgraphNode from = nullptr;
    CUgraphNode to = nullptr;
    CUgraphEdgeData data{};
    count = 1;
    EXPECT_OK(cuGraphGetEdges_v2(child, &from, &to, &data, &count));
    EXPECT_EQ(data.type, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
        << "after " << launches << " launches";
    EXPECT_EQ(data.from_port, 0);
    const CUgraphExec outer = Instantiate(captured);
    for (unsigned launch = 1; launch <= 4; ++launch) {
      Launch(outer);
      EXPECT_EQ(ReadBack(counter_, 1), Buffer{start + 2 * launch});
    }
    ExpectRewritten();
  }
}

// Ending a capture in the wrong thread does not end it.
TEST_F(LiveLeaveAloneTest, EndOfACaptureInTheWrongThread) {
  Count(Count(nullptr));
  const CUgraphExec exec = Instantiate(graph_);
  const CUstream other = NewStream();
  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(
        LIVE(cuStreamBeginCapture)(other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    std::thread([&] {
      EXPECT_OK(cuCtxSetCurrent(context_));
      CUgraph none = nullptr;
      EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                  LIVE(cuStreamEndCapture)(other, &none));
    }).join();
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, stream_));
    CUgraph captured = nullptr;
    EXPECT_OK(LIVE(cuStreamEndCapture)(other, &captured));
    EXPECT_TRUE(Reports().empty()) << Reports().back();
  }
  EXPECT_OK(LIVE(cuStreamSynchronize)(stream_));
  EXPECT_EQ(ReadBack(counter_, 1), Buffer{6});
  for (int launch = 0; launch < 3; ++launch) Launch(exec);
  EXPECT_EQ(ReadBack(counter_, 1), Buffer{12});
  ExpectRewritten();
}

}  // namespace
}  // namespace heddle::live
