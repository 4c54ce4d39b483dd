// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/hostdevice/device_test.h"

namespace {

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

class CaptureTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    stream_ = NewStream();
    data_ = Ints(6);
  }

  void Begin(CUstreamCaptureMode mode = kGlobal) {
    ASSERT_CUDA(cuStreamBeginCapture(stream_, mode));
  }
  CUgraph End() {
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamEndCapture(stream_, &graph));
    return graph;
  }
  // Edges as index pairs with their ports: "0>1:0".
  std::set<std::string> Edges(CUgraph graph) {
    std::vector<CUgraphNode> nodes(32);
    size_t node_count = nodes.size();
    EXPECT_OK(cuGraphGetNodes(graph, nodes.data(), &node_count));
    CUgraphNode from[64];
    CUgraphNode to[64];
    CUgraphEdgeData data[64];
    size_t count = 64;
    EXPECT_OK(cuGraphGetEdges_v2(graph, from, to, data, &count));
    const auto index = [&](CUgraphNode node) {
      for (size_t i = 0; i < node_count; ++i) {
        if (nodes[i] == node) return std::to_string(i);
      }
      return std::string("?");
    };
    std::set<std::string> edges;
    for (size_t i = 0; i < count; ++i) {
      edges.insert(index(from[i]) + ">" + index(to[i]) + ":" +
                   std::to_string(data[i].from_port));
    }
    return edges;
  }
  CUstreamCaptureStatus Status(CUstream stream) {
    CUstreamCaptureStatus status{};
    EXPECT_OK(cuStreamIsCapturing(stream, &status));
    return status;
  }
  // Each misuse invalidates the capture; ending it then fails and frees the
  // stream.
  void ExpectInvalidated() {
    EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                Launch("increment", 1, stream_, data_));
    CUgraph graph = nullptr;
    EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                cuStreamEndCapture(stream_, &graph));
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  }

  CUstream stream_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(CaptureTest, CapturesInsteadOfRunningAndReplays) {
  Begin();
  ASSERT_CUDA(cuMemsetD32Async(data_, 10, 6, stream_));
  ASSERT_CUDA(Launch("increment", 6, stream_, data_));
  ASSERT_CUDA(cuMemcpyDtoDAsync(data_, data_ + 4, 4, stream_));
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  const CUgraph graph = End();
  EXPECT_EQ(Edges(graph), (std::set<std::string>{"0>1:0", "1>2:0"}));
  EXPECT_EQ(Read(data_, 6), std::vector<int>(6, 0));
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CUDA(cuGraphLaunch(exec, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read(data_, 6), std::vector<int>(6, 11));
}

TEST_F(CaptureTest, AForkAndAJoinGiveADiamond) {
  const CUstream side = NewStream();
  const CUevent fork = NewEvent();
  const CUevent join = NewEvent();
  Begin();
  ASSERT_CUDA(Launch("fill", 1, stream_, data_, 1));  // 0
  ASSERT_CUDA(cuEventRecord(fork, stream_));
  ASSERT_CUDA(cuStreamWaitEvent(side, fork, 0));
  EXPECT_EQ(Status(side), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CUDA(Launch("fill", 1, side, data_ + 4, 2));     // 1
  ASSERT_CUDA(Launch("fill", 1, stream_, data_ + 8, 3));  // 2
  ASSERT_CUDA(cuEventRecord(join, side));
  ASSERT_CUDA(cuStreamWaitEvent(stream_, join, 0));
  ASSERT_CUDA(Launch("increment", 3, stream_, data_));  // 3
  EXPECT_EQ(Edges(End()),
            (std::set<std::string>{"0>1:0", "0>2:0", "1>3:0", "2>3:0"}));
  EXPECT_EQ(Status(side), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CaptureTest, AStreamThatIsNotJoinedFailsTheCapture) {
  const CUstream side = NewStream();
  const CUevent fork = NewEvent();
  Begin();
  ASSERT_CUDA(Launch("fill", 1, stream_, data_, 1));
  ASSERT_CUDA(cuEventRecord(fork, stream_));
  ASSERT_CUDA(cuStreamWaitEvent(side, fork, 0));
  ASSERT_CUDA(Launch("fill", 1, side, data_ + 4, 2));
  CUgraph graph = nullptr;
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
              cuStreamEndCapture(side, &graph));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              cuStreamEndCapture(stream_, &graph));
  Begin();
  ASSERT_CUDA(Launch("fill", 1, stream_, data_, 1));
  ASSERT_CUDA(cuEventRecord(fork, stream_));
  ASSERT_CUDA(cuStreamWaitEvent(side, fork, 0));
  ASSERT_CUDA(Launch("fill", 1, side, data_ + 4, 2));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
              cuStreamEndCapture(stream_, &graph));
}

TEST_F(CaptureTest, ProgrammaticLaunchesBecomeProgrammaticEdges) {
  Begin();
  ASSERT_CUDA(cuMemsetD32Async(data_, 0, 6, stream_));
  ASSERT_CUDA(LaunchProgrammatic("fill_trigger_first", 6, stream_, data_, 1));
  ASSERT_CUDA(LaunchProgrammatic("sum_wait", 1, stream_, data_, data_, 6));
  ASSERT_CUDA(Launch("increment", 6, stream_, data_));
  // Behind what is no kernel, the edge is a full one.
  EXPECT_EQ(Edges(End()), (std::set<std::string>{"0>1:0", "1>2:1", "2>3:0"}));
}

TEST_F(CaptureTest, LaunchEventsBecomeEdgesFromPorts) {
  const CUstream side = NewStream();
  const CUevent begun = NewEvent();
  const CUevent join = NewEvent();
  Begin();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attribute.value.launchCompletionEvent.event = begun;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream_;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* pointers[] = {&data_};
  ASSERT_CUDA(
      cuLaunchKernelEx(&config, Function("increment"), pointers, nullptr));
  ASSERT_CUDA(cuStreamWaitEvent(side, begun, 0));
  ASSERT_CUDA(Launch("increment", 1, side, data_));
  ASSERT_CUDA(cuEventRecord(join, side));
  ASSERT_CUDA(cuStreamWaitEvent(stream_, join, 0));
  ASSERT_CUDA(Launch("increment", 1, stream_, data_));
  EXPECT_EQ(Edges(End()), (std::set<std::string>{"0>1:2", "0>2:0", "1>2:0"}));
}

TEST_F(CaptureTest, SynchronizingACapturingStreamInvalidatesIt) {
  Begin();
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              cuStreamSynchronize(stream_));
  ExpectInvalidated();
  Begin();
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream_));
  ExpectInvalidated();
  Begin();
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
  ExpectInvalidated();
}

TEST_F(CaptureTest, UnsafeCallsAreRefusedByModeAndThread) {
  CUdeviceptr address = 0;
  Begin(kGlobal);
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, 16));
  ExpectInvalidated();

  // Another thread's call kills a global capture, not a thread-local one.
  const auto elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      EXPECT_OK(cuCtxSetCurrent(context_));
      result = cuMemAlloc(&address, 16);
    }).join();
    return result;
  };
  Begin(kGlobal);
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, elsewhere());
  ExpectInvalidated();
  Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_OK(elsewhere());
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, 16));
  ExpectInvalidated();
  Begin(kRelaxed);
  EXPECT_OK(elsewhere());
  EXPECT_OK(cuMemAlloc(&address, 16));
  End();

  // A thread can relax itself.
  Begin(kGlobal);
  CUstreamCaptureMode mode = kRelaxed;
  ASSERT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kGlobal);
  EXPECT_OK(cuMemAlloc(&address, 16));
  ASSERT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, kRelaxed);
  End();
}

TEST_F(CaptureTest, TheLegacyStreamIsRefusedWhileABlockingStreamCaptures) {
  CUstream blocking = nullptr;
  ASSERT_CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CUDA(Launch("increment", 1, nullptr, data_));
  ASSERT_CUDA(cuStreamBeginCapture(blocking, kRelaxed));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
              Launch("increment", 1, nullptr, data_));
  CUgraph graph = nullptr;
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              cuStreamEndCapture(blocking, &graph));
  // A non-blocking one does not mind.
  Begin(kRelaxed);
  EXPECT_OK(Launch("increment", 1, nullptr, data_));
  End();
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              cuStreamBeginCapture(CU_STREAM_LEGACY, kGlobal));
}

TEST_F(CaptureTest, ForeignDependenciesAreRefused) {
  const CUstream other = NewStream();
  const CUevent outside = NewEvent();
  ASSERT_CUDA(cuEventRecord(outside, other));
  Begin();
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
              cuStreamWaitEvent(stream_, outside, 0));
  ExpectInvalidated();

  const CUevent inside = NewEvent();
  Begin(kRelaxed);
  ASSERT_CUDA(cuStreamBeginCapture(other, kRelaxed));
  ASSERT_CUDA(cuEventRecord(inside, other));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_MERGE,
              cuStreamWaitEvent(stream_, inside, 0));
  ExpectInvalidated();
  EXPECT_CUDA(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(inside));
}

TEST_F(CaptureTest, EndingOnTheWrongThreadIsRefused) {
  Begin();
  CUgraph graph = nullptr;
  std::thread([&] {
    EXPECT_OK(cuCtxSetCurrent(context_));
    EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                cuStreamEndCapture(stream_, &graph));
  }).join();
  EXPECT_OK(cuStreamEndCapture(stream_, &graph));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream_, &graph));
}

TEST_F(CaptureTest, TellsAndChangesItsDependencies) {
  Begin();
  ASSERT_CUDA(Launch("increment", 1, stream_, data_));
  ASSERT_CUDA(Launch("increment", 1, stream_, data_));
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  size_t count = 0;
  ASSERT_CUDA(cuStreamGetCaptureInfo_v3(stream_, &status, &id, &graph, &nodes,
                                        nullptr, &count));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  const CUgraphNode second = nodes[0];
  size_t dependency_count = 1;
  CUgraphNode first = nullptr;
  CUgraphEdgeData edge{};
  ASSERT_CUDA(
      cuGraphNodeGetDependencies_v2(second, &first, &edge, &dependency_count));
  // A program may add a node by hand and go on behind it.
  CUgraphNode empty = nullptr;
  ASSERT_CUDA(cuGraphAddEmptyNode(&empty, graph, &first, 1));
  ASSERT_CUDA(cuStreamUpdateCaptureDependencies_v2(
      stream_, &empty, nullptr, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  ASSERT_CUDA(Launch("increment", 1, stream_, data_));
  EXPECT_EQ(Edges(End()),
            (std::set<std::string>{"0>1:0", "0>2:0", "1>3:0", "2>3:0"}));
}

TEST_F(CaptureTest, CapturesIntoAGraphOfTheProgram) {
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  const CUgraphNode root = AddKernel(graph, "fill", 6, data_, 1);
  ASSERT_CUDA(
      cuStreamBeginCaptureToGraph(stream_, graph, &root, nullptr, 1, kGlobal));
  ASSERT_CUDA(Launch("increment", 6, stream_, data_));
  EXPECT_EQ(End(), graph);
  EXPECT_EQ(Edges(graph), std::set<std::string>{"0>1:0"});
}

TEST_F(CaptureTest, ACapturedGraphLaunchIsAChildGraph) {
  CUgraph inner = nullptr;
  ASSERT_CUDA(cuGraphCreate(&inner, 0));
  AddKernel(inner, "increment", 6, data_);
  CUgraphExec inner_exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&inner_exec, inner, 0));
  Begin();
  ASSERT_CUDA(cuGraphLaunch(inner_exec, stream_));
  ASSERT_CUDA(cuGraphLaunch(inner_exec, stream_));
  const CUgraph graph = End();
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CUDA(cuGraphLaunch(exec, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read(data_, 6), std::vector<int>(6, 2));
}

TEST_F(CaptureTest, AllocationsInACaptureBelongToTheGraph) {
  Begin();
  CUdeviceptr scratch = 0;
  ASSERT_CUDA(cuMemAllocAsync(&scratch, 64, stream_));
  ASSERT_CUDA(Launch("fill", 6, stream_, scratch, 3));
  ASSERT_CUDA(Launch("copy", 6, stream_, data_, scratch));
  ASSERT_CUDA(cuMemFreeAsync(scratch, stream_));
  const CUgraph graph = End();
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) {
    ASSERT_CUDA(cuGraphLaunch(exec, stream_));
    ASSERT_CUDA(cuStreamSynchronize(stream_));
    EXPECT_EQ(Read(data_, 6)[5], 8);
  }
}

TEST_F(CaptureTest, AnUnknownStreamIsRefused) {
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_HANDLE,
      cuStreamBeginCapture(reinterpret_cast<CUstream>(0x1234), kGlobal));
}

}  // namespace
