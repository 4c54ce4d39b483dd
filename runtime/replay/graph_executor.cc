// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/graph_executor.h"

#include "absl/strings/str_cat.h"
#include "runtime/replay/launcher.h"
#include "runtime/replay/plan_step.h"

namespace heddle::replay {

GraphExecutor::~GraphExecutor() {
  if (stream_ != nullptr) driver_.StreamSynchronize(stream_);
  if (exec_ != nullptr) driver_.GraphExecDestroy(exec_);
  if (graph_ != nullptr) driver_.GraphDestroy(graph_);
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
}

absl::Status GraphExecutor::Run() {
  return driver_.Check(driver_.GraphLaunch(exec_, stream_), "cuGraphLaunch");
}

absl::Status GraphExecutor::AddKernel(const LaunchWork& launch,
                                      CUgraphNode* node) {
  const BoundProgram::Arguments arguments = program_.arguments(launch);
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = arguments.function;
  params.gridDimX = launch.grid[0];
  params.gridDimY = launch.grid[1];
  params.gridDimZ = launch.grid[2];
  params.blockDimX = launch.block[0];
  params.blockDimY = launch.block[1];
  params.blockDimZ = launch.block[2];
  params.sharedMemBytes = launch.shared_bytes;
  params.kernelParams = arguments.params;
  params.extra = arguments.extra;
  if (absl::Status s = driver_.Check(
          driver_.GraphAddKernelNode(node, graph_, nullptr, 0, &params),
          "cuGraphAddKernelNode");
      !s.ok()) {
    return s;
  }
  for (const CUlaunchAttribute& attribute : KeptAttributes(launch)) {
    if (absl::Status s =
            driver_.Check(driver_.GraphKernelNodeSetAttribute(
                              *node, attribute.id, &attribute.value),
                          absl::StrCat("cuGraphKernelNodeSetAttribute(",
                                       static_cast<int>(attribute.id), ")"));
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status GraphExecutor::AddNode(const Operation& operation,
                                    CUgraphNode* node) {
  if (const LaunchWork* launch = operation.launch()) {
    return AddKernel(*launch, node);
  }
  if (const CopyWork* copy = operation.copy()) {
    const CUDA_MEMCPY3D params = ToMemcpy3D(program_, *copy);
    return driver_.Check(
        driver_.GraphAddMemcpyNode(node, graph_, nullptr, 0, &params, context_),
        "cuGraphAddMemcpyNode");
  }
  if (const FillWork* fill = operation.fill()) {
    CUDA_MEMSET_NODE_PARAMS params = {};
    params.dst = fill->address;
    params.pitch =
        fill->height > 1 ? fill->pitch : fill->width * fill->element_size;
    params.value = fill->value;
    params.elementSize = fill->element_size;
    params.width = fill->width;
    params.height = fill->height;
    return driver_.Check(
        driver_.GraphAddMemsetNode(node, graph_, nullptr, 0, &params, context_),
        "cuGraphAddMemsetNode");
  }
  return driver_.Check(driver_.GraphAddEmptyNode(node, graph_, nullptr, 0),
                       "cuGraphAddEmptyNode");
}

absl::Status GraphExecutor::AddEdges(const GraphOptions& options) {
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  std::vector<CUgraphEdgeData> data;
  const std::vector<plan::Edge> edges =
      options.edges != nullptr ? *options.edges : EdgesOf(program_.step());
  int64_t number = 0;
  for (const plan::Edge& edge : edges) {
    if (number++ == options.drop_dependency) continue;
    from.push_back(nodes_[edge.from]);
    to.push_back(nodes_[edge.to]);
    CUgraphEdgeData added = {};
    added.from_port = edge.from_port;
    added.to_port = edge.to_port;
    added.type = edge.type;
    data.push_back(added);
  }
  if (from.empty()) return absl::OkStatus();
  if (driver_.GraphAddDependencies == nullptr) {
    return absl::UnimplementedError(
        "this driver has no cuGraphAddDependencies_v2: heddle needs a 12.4 "
        "driver or newer");
  }
  return driver_.Check(
      driver_.GraphAddDependencies(graph_, from.data(), to.data(), data.data(),
                                   from.size()),
      absl::StrCat("cuGraphAddDependencies of ", from.size(), " edges"));
}

absl::Status GraphExecutor::Build(const GraphOptions& options) {
  if (absl::Status s =
          driver_.Check(driver_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate");
      !s.ok()) {
    return s;
  }
  if (absl::Status s =
          driver_.Check(driver_.GraphCreate(&graph_, 0), "cuGraphCreate");
      !s.ok()) {
    return s;
  }
  for (const Operation& operation : program_.step().operations) {
    CUgraphNode node = nullptr;
    if (absl::Status s = AddNode(operation, &node); !s.ok()) {
      return absl::Status(s.code(),
                          absl::StrCat("record ", operation.record, " (",
                                       operation.label, "): ", s.message()));
    }
    nodes_.push_back(node);
  }
  return AddEdges(options);
}

absl::Status GraphExecutor::Instantiate() {
  if (absl::Status s =
          driver_.Check(driver_.GraphInstantiateWithFlags(&exec_, graph_, 0),
                        absl::StrCat("cuGraphInstantiateWithFlags of ",
                                     nodes_.size(), " nodes"));
      !s.ok()) {
    return s;
  }
  if (driver_.GraphUpload == nullptr) return absl::OkStatus();
  if (absl::Status s =
          driver_.Check(driver_.GraphUpload(exec_, stream_), "cuGraphUpload");
      !s.ok()) {
    return s;
  }
  return driver_.Check(driver_.StreamSynchronize(stream_),
                       "cuStreamSynchronize after cuGraphUpload");
}

absl::StatusOr<std::unique_ptr<Executor>> CreateGraphExecutor(
    const device::Driver& driver, CUcontext context,
    const BoundProgram& program, const GraphOptions& options) {
  auto executor =
      std::make_unique<GraphExecutor>(driver, context, program, "graph");
  if (absl::Status s = executor->Build(options); !s.ok()) return s;
  if (absl::Status s = executor->Instantiate(); !s.ok()) return s;
  return executor;
}

}  // namespace heddle::replay
