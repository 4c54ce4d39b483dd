// SPDX-License-Identifier: Apache-2.0
// Graphs that have graphs for nodes.

#include <random>
#include <string>
#include <vector>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

class LiveChildGraphTest : public LiveTest {
 protected:
  CUgraph NewGraph() {
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    return graph;
  }
  CUgraphNode AddChild(CUgraph graph, std::vector<CUgraphNode> after,
                       CUgraph child) {
    CUgraphNode node = nullptr;
    EXPECT_OK(LIVE(cuGraphAddChildGraphNode)(&node, graph, after.data(),
                                             after.size(), child));
    return node;
  }
};

// buffer[i+1] = fold(buffer[i]) in a chain of which some links are graphs, of
// kernels or of graphs, and one is empty: whatever order is lost shows.
TEST_F(LiveChildGraphTest, DeepChainsKeepTheirOrder) {
  constexpr int kLinks = 12;
  std::vector<CUdeviceptr> buffers;
  Buffer start(kCount);
  for (unsigned i = 0; i < kCount; ++i) start[i] = 7 * i + 1;
  buffers.push_back(Values(start));
  for (int i = 0; i < kLinks; ++i) buffers.push_back(Values(Buffer(kCount)));
  unsigned next = 0;
  const auto link = [&](CUgraph graph, CUgraphNode after) {
    const unsigned at = next++;
    return AddFold(graph, after, buffers[at + 1], buffers[at], at);
  };
  CUgraph graph = NewGraph();
  CUgraphNode last = link(graph, nullptr);
  CUgraph two = NewGraph();
  link(two, link(two, nullptr));
  last = AddChild(graph, {last}, two);
  last = link(graph, last);
  CUgraph outer = NewGraph();
  CUgraphNode of_outer = link(outer, nullptr);
  CUgraph inner = NewGraph();
  link(inner, link(inner, nullptr));
  of_outer = AddChild(outer, {of_outer}, inner);
  of_outer = AddChild(outer, {of_outer}, NewGraph());
  link(outer, of_outer);
  last = AddChild(graph, {last}, outer);
  last = AddChild(graph, {last}, NewGraph());
  while (next < kLinks) last = link(graph, last);

  const CUgraphExec exec = Instantiate(graph);
  const auto clear = [&] {
    for (int i = 1; i <= kLinks; ++i) {
      EXPECT_OK(cuMemsetD8_v2(buffers[i], 0, kCount * sizeof(unsigned)));
    }
  };
  std::mt19937 random(5);
  Buffer expected;
  for (int launch = 0; launch < 8; ++launch) {
    for (unsigned& value : start) value = static_cast<unsigned>(random());
    EXPECT_OK(LIVE(cuMemcpyHtoD_v2)(buffers[0], start.data(),
                                    kCount * sizeof(unsigned)));
    // The program's own graph, past heddle. (Results are added to.)
    clear();
    EXPECT_OK(cuGraphLaunch(exec, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    const Buffer before = expected;
    expected = ReadBack(buffers[kLinks], kCount);
    ASSERT_NE(expected, before);
    clear();
    Launch(exec);
    EXPECT_EQ(ReadBack(buffers[kLinks], kCount), expected) << launch;
  }
  ExpectRewritten();
  EXPECT_EQ(Reports().back()["kernels"], kLinks);
}

// Nodes of the program's graph have no counterpart in the flat one.
TEST_F(LiveChildGraphTest, AChangeEndsTheUseOfTheFlatGraph) {
  const CUdeviceptr counter = Values(Buffer{0});
  CUgraph child = NewGraph();
  Add(child, nullptr, Kernel("count_up"), counter);
  CUgraph graph = NewGraph();
  CUgraphNode node = Add(graph, nullptr, Kernel("count_up"), counter);
  Add(graph, AddChild(graph, {node}, child), Kernel("count_up"), counter);
  const CUgraphExec exec = Instantiate(graph);
  for (int launch = 0; launch < 4; ++launch) Launch(exec);
  ExpectRewritten();
  EXPECT_EQ(ReadBack(counter, 1), Buffer{12});
  const CUdeviceptr other = Values(Buffer{100});
  CUdeviceptr argument = other;
  void* pointers[] = {&argument};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = Kernel("count_up");
  params.gridDimX = 2;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 32;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = pointers;
  EXPECT_OK(LIVE(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params));
  Launch(exec);
  EXPECT_EQ(ReadBack(counter, 1), Buffer{14});
  EXPECT_EQ(ReadBack(other, 1), Buffer{101});
  EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 0);
}

}  // namespace
}  // namespace heddle::live
