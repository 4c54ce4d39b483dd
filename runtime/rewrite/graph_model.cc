// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/graph_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace heddle::rewrite {
namespace {

// The buffer of a launch that passes its parameters as one block; nullptr if it
// does not (cuda.h, CU_LAUNCH_PARAM_*).
struct ParamBlock {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

ParamBlock BlockOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  ParamBlock block;
  if (params.kernelParams != nullptr || params.extra == nullptr) return block;
  for (void** at = params.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      block.data = static_cast<const uint8_t*>(at[1]);
    } else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      // A pointer to the size, not the size.
      std::memcpy(&block.size, at[1], sizeof(block.size));
    }
  }
  return block;
}

bool HasAttribute(const device::Driver& driver, CUgraphNode node,
                  CUlaunchAttributeID id) {
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof(value));
  if (driver.GraphKernelNodeGetAttribute(node, id, &value) != CUDA_SUCCESS) {
    return false;
  }
  static constexpr uint8_t kZeros[sizeof(value)] = {};
  // Any byte of any member, all of them zero before.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  return std::memcmp(&value, kZeros, sizeof(value)) != 0;
}

uint32_t FunctionAttribute(const device::Driver& driver, CUfunction function,
                           CUfunction_attribute attribute) {
  int value = 0;
  if (driver.FuncGetAttribute(&value, attribute, function) != CUDA_SUCCESS) {
    return 0;
  }
  return static_cast<uint32_t>(std::max(value, 0));
}

uint32_t ClusterBlocks(const device::Driver& driver, CUgraphNode node,
                       CUfunction function) {
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof(value));
  if (driver.GraphKernelNodeGetAttribute(node,
                                         CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                         &value) == CUDA_SUCCESS &&
      value.clusterDim.x != 0) {
    return value.clusterDim.x * value.clusterDim.y * value.clusterDim.z;
  }
  uint32_t blocks = 1;
  for (const CUfunction_attribute attribute :
       {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH}) {
    blocks *= std::max(FunctionAttribute(driver, function, attribute), 1u);
  }
  return blocks;
}

plan::BlockNeeds NeedsOf(const device::Driver& driver, const GraphNode& node) {
  const CUDA_KERNEL_NODE_PARAMS& shape = node.launch.shape();
  plan::BlockNeeds needs;
  needs.blocks = uint64_t{shape.gridDimX} * shape.gridDimY * shape.gridDimZ;
  needs.threads = shape.blockDimX * shape.blockDimY * shape.blockDimZ;
  needs.registers =
      FunctionAttribute(driver, node.function, CU_FUNC_ATTRIBUTE_NUM_REGS);
  needs.shared_bytes = FunctionAttribute(driver, node.function,
                                         CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) +
                       shape.sharedMemBytes;
  needs.cluster_blocks = ClusterBlocks(driver, node.handle, node.function);
  needs.cooperative =
      HasAttribute(driver, node.handle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  return needs;
}

absl::Status ReadKernel(const device::Driver& driver, CodeSource* source,
                        GraphNode* node, plan::Node* planned) {
  CUDA_KERNEL_NODE_PARAMS params{};
  if (absl::Status status =
          driver.Check(driver.GraphKernelNodeGetParams(node->handle, &params),
                       "cuGraphKernelNodeGetParams");
      !status.ok()) {
    return status;
  }
  absl::StatusOr<CUfunction> function = FunctionOf(driver, params);
  if (!function.ok()) return function.status();
  node->function = *function;
  absl::StatusOr<OwnedLaunch> launch =
      OwnedLaunch::Copy(driver, *function, params);
  planned->kernel = true;
  if (!launch.ok()) {
    node->reason = absl::StrCat(launch.status().message());
    return absl::OkStatus();
  }
  node->launch = *std::move(launch);
  planned->needs = NeedsOf(driver, *node);
  planned->has_own_pdl =
      HasAttribute(driver, node->handle,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) ||
      HasAttribute(driver, node->handle,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) ||
      HasAttribute(driver, node->handle,
                   CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
  if (planned->needs.cooperative) {
    node->reason = "a cooperative launch";
    return absl::OkStatus();
  }
  absl::StatusOr<KernelSource> found = source->Find(*function);
  if (!found.ok()) {
    node->reason = absl::StrCat(found.status().message());
    return absl::OkStatus();
  }
  node->source = *std::move(found);
  planned->patchable = true;
  return absl::OkStatus();
}

void ReadPointers(const device::Driver& driver, GraphNode* node) {
  if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    CUDA_MEMCPY3D params{};
    if (driver.GraphMemcpyNodeGetParams(node->handle, &params) ==
        CUDA_SUCCESS) {
      node->pointers = {params.srcDevice, params.dstDevice,
                        reinterpret_cast<uint64_t>(params.srcHost),
                        reinterpret_cast<uint64_t>(params.dstHost)};
    }
  } else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS params{};
    if (driver.GraphMemsetNodeGetParams(node->handle, &params) ==
        CUDA_SUCCESS) {
      node->pointers = {params.dst};
    }
  }
}

absl::Status ReadEdges(const device::Driver& driver, CUgraph graph,
                       GraphModel* model) {
  if (driver.GraphGetEdges == nullptr) {
    return absl::UnimplementedError("the driver does not tell edge data");
  }
  size_t count = 0;
  absl::Status status = driver.Check(
      driver.GraphGetEdges(graph, nullptr, nullptr, nullptr, &count),
      "cuGraphGetEdges");
  if (!status.ok() || count == 0) return status;
  std::vector<CUgraphNode> from(count);
  std::vector<CUgraphNode> to(count);
  std::vector<CUgraphEdgeData> data(count);
  status = driver.Check(
      driver.GraphGetEdges(graph, from.data(), to.data(), data.data(), &count),
      "cuGraphGetEdges");
  if (!status.ok()) return status;
  for (size_t i = 0; i < count; ++i) {
    const auto a = model->index.find(reinterpret_cast<uint64_t>(from[i]));
    const auto b = model->index.find(reinterpret_cast<uint64_t>(to[i]));
    if (a == model->index.end() || b == model->index.end()) {
      return absl::InternalError("an edge of a node outside of its graph");
    }
    model->graph.edges.push_back({.from = a->second,
                                  .to = b->second,
                                  .type = data[i].type,
                                  .from_port = data[i].from_port,
                                  .to_port = data[i].to_port});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CUfunction> FunctionOf(const device::Driver& driver,
                                      const CUDA_KERNEL_NODE_PARAMS& params) {
  if (params.func != nullptr) return params.func;
  CUfunction function = nullptr;
  if (params.kern == nullptr || driver.KernelGetFunction == nullptr) {
    return absl::InternalError("a kernel node without a kernel");
  }
  if (absl::Status status =
          driver.Check(driver.KernelGetFunction(&function, params.kern),
                       "cuKernelGetFunction");
      !status.ok()) {
    return status;
  }
  return function;
}

absl::StatusOr<OwnedLaunch> OwnedLaunch::Copy(
    const device::Driver& driver, CUfunction function,
    const CUDA_KERNEL_NODE_PARAMS& params) {
  if (driver.FuncGetParamInfo == nullptr) {
    return absl::UnimplementedError(
        "the driver does not tell how large parameters are");
  }
  OwnedLaunch launch;
  launch.shape_ = params;
  launch.shape_.kernelParams = nullptr;
  launch.shape_.extra = nullptr;
  launch.shape_.func = nullptr;
  launch.shape_.kern = nullptr;
  const ParamBlock block = BlockOf(params);
  for (size_t i = 0;; ++i) {
    size_t offset = 0;
    size_t size = 0;
    if (driver.FuncGetParamInfo(function, i, &offset, &size) != CUDA_SUCCESS) {
      break;
    }
    const void* from = nullptr;
    if (block.data != nullptr) {
      if (offset + size > block.size) {
        return absl::FailedPreconditionError(
            "its parameter block is shorter than its parameters");
      }
      from = block.data + offset;
    } else if (params.kernelParams != nullptr) {
      from = params.kernelParams[i];
    }
    if (from == nullptr) {
      return absl::FailedPreconditionError("it has parameters without values");
    }
    const uint64_t at = (launch.bytes_.size() + 15) / 16 * 16;
    launch.bytes_.resize(at + size);
    std::memcpy(launch.bytes_.data() + at, from, size);
    launch.offsets_.push_back(at);
    launch.places_.push_back({offset, size});
  }
  return launch;
}

std::vector<uint8_t> OwnedLaunch::Block() const {
  std::vector<uint8_t> block;
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto [offset, size] = places_[i];
    if (block.size() < offset + size) block.resize(offset + size);
    std::memcpy(block.data() + offset, bytes_.data() + offsets_[i], size);
  }
  return block;
}

CUDA_KERNEL_NODE_PARAMS OwnedLaunch::With(CUfunction function) {
  pointers_.clear();
  for (const uint64_t offset : offsets_) {
    pointers_.push_back(bytes_.data() + offset);
  }
  CUDA_KERNEL_NODE_PARAMS params = shape_;
  params.func = function;
  params.kernelParams = pointers_.empty() ? nullptr : pointers_.data();
  return params;
}

plan::DeviceLimits ReadLimits(const device::Driver& driver, CUdevice device) {
  plan::DeviceLimits limits;
  const auto read = [&](CUdevice_attribute attribute, uint32_t* to) {
    int value = 0;
    if (driver.DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS &&
        value > 0) {
      *to = static_cast<uint32_t>(value);
    }
  };
  read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits.multiprocessors);
  read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &limits.threads_per_sm);
  read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
       &limits.registers_per_sm);
  read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &limits.shared_per_sm);
  read(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
       &limits.blocks_per_sm);
  read(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
       &limits.reserved_shared_per_block);
  read(CU_DEVICE_ATTRIBUTE_WARP_SIZE, &limits.warp_threads);
  return limits;
}

absl::StatusOr<GraphModel> ReadGraph(const device::Driver& driver,
                                     CUgraph graph, CodeSource* source) {
  size_t count = 0;
  absl::Status status = driver.Check(
      driver.GraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  if (!status.ok()) return status;
  std::vector<CUgraphNode> handles(count);
  if (count > 0) {
    status = driver.Check(driver.GraphGetNodes(graph, handles.data(), &count),
                          "cuGraphGetNodes");
    if (!status.ok()) return status;
  }
  GraphModel model;
  model.nodes.resize(handles.size());
  model.graph.nodes.resize(handles.size());
  for (uint32_t i = 0; i < handles.size(); ++i) {
    GraphNode& node = model.nodes[i];
    node.handle = handles[i];
    model.index[reinterpret_cast<uint64_t>(handles[i])] = i;
    status = driver.Check(driver.GraphNodeGetType(handles[i], &node.type),
                          "cuGraphNodeGetType");
    if (!status.ok()) return status;
    if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) {
      ReadPointers(driver, &node);
      continue;
    }
    ++model.kernels;
    status = ReadKernel(driver, source, &node, &model.graph.nodes[i]);
    if (!status.ok()) return status;
  }
  status = ReadEdges(driver, graph, &model);
  if (!status.ok()) return status;
  return model;
}

std::string WhyUntouchable(const device::Driver& driver,
                           const GraphModel& model) {
  for (const GraphNode& node : model.nodes) {
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        if (HasAttribute(driver, node.handle,
                         CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)) {
          return "a kernel node that the device may update";
        }
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET:
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      // Running these a second time, which verification does, is something
      // that the program, another stream or another device could notice.
      case CU_GRAPH_NODE_TYPE_HOST:
        return "a host function, which must run once a launch";
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return "a child graph";
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "an event node";
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return "a memory allocation node";
      default:
        return absl::StrCat("a node of kind ", static_cast<int>(node.type));
    }
  }
  return "";
}

}  // namespace heddle::rewrite
