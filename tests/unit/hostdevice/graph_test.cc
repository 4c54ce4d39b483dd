// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "tests/unit/hostdevice/device_test.h"

namespace {

class GraphTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_CUDA(cuGraphCreate(&graph_, 0));
    stream_ = NewStream();
    data_ = Ints(4);
  }

  CUgraphExec Instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph_, 0));
    return exec;
  }
  std::vector<int> LaunchAndRead(CUgraphExec exec, size_t count = 4) {
    EXPECT_OK(cuGraphLaunch(exec, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    return Read(data_, count);
  }
  void Connect(CUgraphNode from, CUgraphNode to) {
    ASSERT_CUDA(cuGraphAddDependencies_v2(graph_, &from, &to, nullptr, 1));
  }

  CUgraph graph_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(GraphTest, RunsEveryKindOfNodeInOrder) {
  struct Host {
    int calls = 0;
  } host;
  const int source = 40;
  const CUevent event = NewEvent();
  CUgraphNode copy = nullptr;
  CUDA_MEMCPY3D copy_params{};
  copy_params.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy_params.srcHost = &source;
  copy_params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy_params.dstDevice = data_;
  copy_params.WidthInBytes = sizeof(int);
  copy_params.Height = copy_params.Depth = 1;
  ASSERT_CUDA(
      cuGraphAddMemcpyNode(&copy, graph_, nullptr, 0, &copy_params, context_));
  CUgraphNode set = nullptr;
  CUDA_MEMSET_NODE_PARAMS set_params{};
  set_params.dst = data_ + 4;
  set_params.elementSize = 4;
  set_params.value = 7;
  set_params.width = 3;
  set_params.height = 1;
  ASSERT_CUDA(
      cuGraphAddMemsetNode(&set, graph_, &copy, 1, &set_params, context_));
  const CUgraphNode kernel = AddKernel(graph_, "increment", 4, data_);
  Connect(set, kernel);
  CUgraphNode function = nullptr;
  CUDA_HOST_NODE_PARAMS host_params{
      [](void* user) { ++static_cast<Host*>(user)->calls; }, &host};
  ASSERT_CUDA(cuGraphAddHostNode(&function, graph_, &kernel, 1, &host_params));
  CUgraphNode record = nullptr;
  ASSERT_CUDA(cuGraphAddEventRecordNode(&record, graph_, &function, 1, event));
  CUgraphNode wait = nullptr;
  ASSERT_CUDA(cuGraphAddEventWaitNode(&wait, graph_, &record, 1, event));

  CUgraph child_graph = nullptr;
  ASSERT_CUDA(cuGraphCreate(&child_graph, 0));
  const CUgraphNode inner = AddKernel(child_graph, "increment", 4, data_);
  const CUgraphNode inner2 = AddKernel(child_graph, "increment", 4, data_);
  ASSERT_CUDA(
      cuGraphAddDependencies_v2(child_graph, &inner, &inner2, nullptr, 1));
  CUgraphNode child = nullptr;
  ASSERT_CUDA(cuGraphAddChildGraphNode(&child, graph_, &wait, 1, child_graph));
  ASSERT_CUDA(cuGraphDestroy(child_graph));
  CUgraphNode empty = nullptr;
  ASSERT_CUDA(cuGraphAddEmptyNode(&empty, graph_, &child, 1));
  const CUgraphNode last = AddKernel(graph_, "increment", 4, data_);
  Connect(empty, last);

  const CUgraphExec exec = Instantiate();
  ASSERT_CUDA(cuGraphDestroy(graph_));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(LaunchAndRead(exec), (std::vector<int>{44, 11, 11, 11}));
    EXPECT_EQ(host.calls, i);
    EXPECT_OK(cuEventQuery(event));
  }
}

TEST_F(GraphTest, ADiamondWaitsForBothSides) {
  const CUdeviceptr other = Ints(4);
  const CUdeviceptr out = Ints(1);
  const CUgraphNode root = AddKernel(graph_, "fill", 4, data_, 10);
  const CUgraphNode left = AddKernel(graph_, "increment", 4, data_);
  const CUgraphNode right = AddKernel(graph_, "copy", 4, other, data_);
  const CUgraphNode end = AddKernel(graph_, "sum", 1, out, other, 4);
  Connect(root, left);
  Connect(left, right);
  Connect(root, end);
  Connect(right, end);
  const CUgraphExec exec = Instantiate();
  const std::set<int> seen = OverSeeds(60, [&] {
    EXPECT_OK(cuGraphLaunch(exec, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    return Read(out, 1)[0];
  });
  EXPECT_EQ(seen, std::set<int>{11 + 12 + 13 + 14});
}

TEST_F(GraphTest, TellsNodesAndEdges) {
  const CUgraphNode a = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphNode b = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphNode c = AddKernel(graph_, "fill", 1, data_, 1);
  Connect(a, b);
  CUgraphEdgeData programmatic{};
  programmatic.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  ASSERT_CUDA(cuGraphAddDependencies_v2(graph_, &b, &c, &programmatic, 1));

  size_t count = 0;
  ASSERT_CUDA(cuGraphGetNodes(graph_, nullptr, &count));
  ASSERT_EQ(count, 3u);
  std::vector<CUgraphNode> nodes(5);
  count = 5;
  ASSERT_CUDA(cuGraphGetNodes(graph_, nodes.data(), &count));
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(nodes, (std::vector<CUgraphNode>{a, b, c, nullptr, nullptr}));

  count = 5;
  ASSERT_CUDA(cuGraphGetRootNodes(graph_, nodes.data(), &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nodes[0], a);

  CUgraphNode from[2];
  CUgraphNode to[2];
  CUgraphEdgeData data[2];
  count = 2;
  ASSERT_CUDA(cuGraphGetEdges_v2(graph_, from, to, data, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(from[1], b);
  EXPECT_EQ(to[1], c);
  EXPECT_EQ(data[0].from_port, 0);
  EXPECT_EQ(data[1].from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  // The data may be left out only if there is none.
  count = 2;
  EXPECT_CUDA(CUDA_ERROR_LOSSY_QUERY,
              cuGraphGetEdges_v2(graph_, from, to, nullptr, &count));

  count = 2;
  ASSERT_CUDA(cuGraphNodeGetDependencies_v2(c, from, data, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(from[0], b);
  count = 2;
  ASSERT_CUDA(cuGraphNodeGetDependentNodes_v2(a, to, data, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(to[0], b);

  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGraphRemoveDependencies_v2(graph_, &b, &c, nullptr, 1));
  EXPECT_OK(cuGraphRemoveDependencies_v2(graph_, &b, &c, &programmatic, 1));
  EXPECT_OK(cuGraphDestroyNode(b));
  ASSERT_CUDA(cuGraphGetEdges_v2(graph_, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 0u);
  CUgraphNodeType type;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(b, &type));
}

TEST_F(GraphTest, ACycleCannotBeInstantiated) {
  const CUgraphNode a = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphNode b = AddKernel(graph_, "fill", 1, data_, 1);
  Connect(a, b);
  Connect(b, a);
  CUgraphExec exec = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGraphInstantiateWithFlags(&exec, graph_, 0));
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
}

TEST_F(GraphTest, ANodeOwnsACopyOfItsParameters) {
  int value = 10;
  void* pointers[] = {&data_, &value};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = Function("fill");
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = pointers;
  CUgraphNode node = nullptr;
  ASSERT_CUDA(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  value = 99;

  CUDA_KERNEL_NODE_PARAMS got{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(node, &got));
  EXPECT_EQ(got.func, params.func);
  EXPECT_EQ(got.extra, nullptr);
  ASSERT_NE(got.kernelParams, nullptr);
  EXPECT_EQ(*static_cast<int*>(got.kernelParams[1]), 10);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(got.kernelParams[0]), data_);

  params.kernelParams = pointers;
  ASSERT_CUDA(cuGraphKernelNodeSetParams(node, &params));
  EXPECT_EQ(LaunchAndRead(Instantiate(), 1), std::vector<int>{99});
}

TEST_F(GraphTest, ParametersGivenAsABufferComeBackAsOne) {
  struct {
    CUdeviceptr out;
    int value;
  } buffer{data_, 33};
  // The layout has no padding after `value`.
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = Function("fill");
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.extra = extra;
  CUgraphNode node = nullptr;
  ASSERT_CUDA(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  CUDA_KERNEL_NODE_PARAMS got{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(node, &got));
  EXPECT_EQ(got.kernelParams, nullptr);
  ASSERT_NE(got.extra, nullptr);
  EXPECT_EQ(got.extra[0], CU_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(std::memcmp(got.extra[1], &buffer, 12), 0);
  EXPECT_EQ(*static_cast<size_t*>(got.extra[3]), 12u);
  EXPECT_EQ(LaunchAndRead(Instantiate(), 1), std::vector<int>{33});
}

TEST_F(GraphTest, ACloneIsIndependentAndItsNodesCanBeFound) {
  const CUgraphNode node = AddKernel(graph_, "fill", 1, data_, 1);
  CUgraph clone = nullptr;
  ASSERT_CUDA(cuGraphClone(&clone, graph_));
  CUgraphNode found = nullptr;
  ASSERT_CUDA(cuGraphNodeFindInClone(&found, node, clone));
  EXPECT_NE(found, node);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGraphNodeFindInClone(&found, found, graph_));
  ASSERT_CUDA(cuGraphDestroyNode(found));
  EXPECT_EQ(LaunchAndRead(Instantiate(), 1), std::vector<int>{1});
}

TEST_F(GraphTest, AnExecutableIsChangedNodeByNode) {
  const CUgraphNode kernel = AddKernel(graph_, "fill", 2, data_, 1);
  CUgraphNode set = nullptr;
  CUDA_MEMSET_NODE_PARAMS set_params{};
  set_params.dst = data_ + 8;
  set_params.elementSize = 4;
  set_params.value = 5;
  set_params.width = 2;
  set_params.height = 1;
  ASSERT_CUDA(
      cuGraphAddMemsetNode(&set, graph_, nullptr, 0, &set_params, context_));
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(LaunchAndRead(exec), (std::vector<int>{1, 2, 5, 5}));

  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(kernel, &params));
  int value = 70;
  void* pointers[] = {&data_, &value};
  params.kernelParams = pointers;
  ASSERT_CUDA(cuGraphExecKernelNodeSetParams(exec, kernel, &params));
  set_params.value = 6;
  ASSERT_CUDA(cuGraphExecMemsetNodeSetParams(exec, set, &set_params, context_));
  EXPECT_EQ(LaunchAndRead(exec), (std::vector<int>{70, 71, 6, 6}));

  // The graph itself is unchanged.
  ASSERT_CUDA(cuGraphKernelNodeGetParams(kernel, &params));
  EXPECT_EQ(*static_cast<int*>(params.kernelParams[1]), 1);

  ASSERT_CUDA(cuGraphNodeSetEnabled(exec, kernel, 0));
  unsigned enabled = 1;
  ASSERT_CUDA(cuGraphNodeGetEnabled(exec, kernel, &enabled));
  EXPECT_EQ(enabled, 0u);
  ASSERT_CUDA(cuMemsetD32(data_, 0, 4));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(LaunchAndRead(exec), (std::vector<int>{0, 0, 6, 6}));
}

TEST_F(GraphTest, UpdateTakesANewGraphOfTheSameShapeOnly) {
  const CUgraphNode a = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphNode b = AddKernel(graph_, "increment", 1, data_);
  Connect(a, b);
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(LaunchAndRead(exec, 1), std::vector<int>{2});

  CUgraph other = nullptr;
  ASSERT_CUDA(cuGraphCreate(&other, 0));
  const CUgraphNode c = AddKernel(other, "fill", 1, data_, 50);
  const CUgraphNode d = AddKernel(other, "increment", 1, data_);
  CUgraphExecUpdateResultInfo info{};
  EXPECT_CUDA(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(LaunchAndRead(exec, 1), std::vector<int>{2});
  ASSERT_CUDA(cuGraphAddDependencies_v2(other, &c, &d, nullptr, 1));
  EXPECT_OK(cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(LaunchAndRead(exec, 1), std::vector<int>{51});

  CUgraph typed = nullptr;
  ASSERT_CUDA(cuGraphCreate(&typed, 0));
  CUgraphNode empty = nullptr;
  ASSERT_CUDA(cuGraphAddEmptyNode(&empty, typed, nullptr, 0));
  const CUgraphNode e = AddKernel(typed, "increment", 1, data_);
  ASSERT_CUDA(cuGraphAddDependencies_v2(typed, &empty, &e, nullptr, 1));
  EXPECT_CUDA(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              cuGraphExecUpdate(exec, typed, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info.errorNode, empty);
}

TEST_F(GraphTest, ALaunchKeepsTheParametersThatItBeganWith) {
  const CUgraphNode kernel = AddKernel(graph_, "fill", 1, data_, 1);
  const CUgraphExec exec = Instantiate();
  ASSERT_CUDA(cuGraphLaunch(exec, stream_));
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(kernel, &params));
  int value = 2;
  void* pointers[] = {&data_, &value};
  params.kernelParams = pointers;
  ASSERT_CUDA(cuGraphExecKernelNodeSetParams(exec, kernel, &params));
  ASSERT_CUDA(cuGraphExecDestroy(exec));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read(data_, 1)[0], 1);
}

TEST_F(GraphTest, TheGenericCallsAddAndChangeNodes) {
  int value = 4;
  void* pointers[] = {&data_, &value};
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = Function("fill");
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ =
      1;
  params.kernel.kernelParams = pointers;
  CUgraphNode first = nullptr;
  ASSERT_CUDA(cuGraphAddNode_v2(&first, graph_, nullptr, nullptr, 0, &params));
  params.kernel.func = Function("increment");
  CUgraphNode second = nullptr;
  ASSERT_CUDA(cuGraphAddNode_v2(&second, graph_, &first, nullptr, 1, &params));
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(LaunchAndRead(exec, 1), std::vector<int>{5});
  value = 8;
  params.kernel.func = Function("fill");
  ASSERT_CUDA(cuGraphNodeSetParams(first, &params));
  ASSERT_CUDA(cuGraphExecNodeSetParams(exec, first, &params));
  EXPECT_EQ(LaunchAndRead(exec, 1), std::vector<int>{9});
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(first, &params));
}

TEST_F(GraphTest, ReplaysOfOneExecutableFollowOneAnother) {
  const CUgraphNode node = AddKernel(graph_, "increment", 4, data_);
  (void)node;
  const CUgraphExec exec = Instantiate();
  const CUstream other = NewStream();
  for (int i = 0; i < 10; ++i) {
    ASSERT_CUDA(cuGraphLaunch(exec, i % 2 == 0 ? stream_ : other));
  }
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(Read(data_, 4), std::vector<int>(4, 10));
}

TEST_F(GraphTest, AllocationNodesHaveAnAddressAndUndefinedContent) {
  CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
  alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  alloc.bytesize = 64;
  CUgraphNode allocation = nullptr;
  ASSERT_CUDA(cuGraphAddMemAllocNode(&allocation, graph_, nullptr, 0, &alloc));
  ASSERT_NE(alloc.dptr, 0u);
  const CUgraphNode use = AddKernel(graph_, "copy", 4, data_, alloc.dptr);
  Connect(allocation, use);
  CUgraphNode free = nullptr;
  ASSERT_CUDA(cuGraphAddMemFreeNode(&free, graph_, &use, 1, alloc.dptr));
  const CUgraphExec exec = Instantiate();
  for (const int value : LaunchAndRead(exec)) EXPECT_NE(value, 0);
}

TEST_F(GraphTest, AttributesOfKernelNodesAreKeptAndCopied) {
  const CUgraphNode a = AddKernel(graph_, "fill", 4, data_, 1);
  const CUgraphNode b = AddKernel(graph_, "fill", 4, data_, 1);
  CUkernelNodeAttrValue value{};
  value.clusterDim.x = 2;
  value.clusterDim.y = value.clusterDim.z = 1;
  ASSERT_CUDA(cuGraphKernelNodeSetAttribute(
      a, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
  value.priority = -3;
  ASSERT_CUDA(
      cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  ASSERT_CUDA(cuGraphKernelNodeCopyAttributes(b, a));
  CUkernelNodeAttrValue got{};
  ASSERT_CUDA(
      cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
  EXPECT_EQ(got.priority, -3);
  ASSERT_CUDA(cuGraphKernelNodeGetAttribute(
      b, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &got));
  EXPECT_EQ(got.clusterDim.x, 2u);
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED,
              cuGraphKernelNodeSetAttribute(
                  a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, &value));
}

TEST_F(GraphTest, AUserObjectLivesAsLongAsAGraphHoldsIt) {
  static int destroyed;
  destroyed = 0;
  CUuserObject object = nullptr;
  ASSERT_CUDA(cuUserObjectCreate(
      &object, nullptr, [](void*) { ++destroyed; }, 1,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ASSERT_CUDA(
      cuGraphRetainUserObject(graph_, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphExec exec = Instantiate();
  ASSERT_CUDA(cuGraphDestroy(graph_));
  EXPECT_EQ(destroyed, 0);
  ASSERT_CUDA(cuGraphExecDestroy(exec));
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
