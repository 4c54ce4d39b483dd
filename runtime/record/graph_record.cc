// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/graph_record.h"

#include <dlfcn.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/record/copy_record.h"
#include "runtime/record/launch_record.h"

namespace heddle::record {
namespace {

// Attributes that a kernel node can carry and a replay must give back. The
// memory-sync-domain ones only concern several communicating domains.
constexpr CUlaunchAttributeID kNodeAttributes[] = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
};

// The node's attributes that differ from their defaults (all zero bytes).
std::vector<fb::LaunchAttribute> AttributesOfNode(const device::Driver& driver,
                                                  CUgraphNode node,
                                                  bool* cooperative) {
  std::vector<fb::LaunchAttribute> attributes;
  for (const CUlaunchAttributeID id : kNodeAttributes) {
    CUlaunchAttributeValue value;
    std::memset(&value, 0, sizeof(value));
    if (driver.GraphKernelNodeGetAttribute(node, id, &value) != CUDA_SUCCESS) {
      continue;
    }
    uint8_t bytes[64] = {};
    std::memcpy(bytes, &value, sizeof(value));
    const bool is_default =
        bytes[0] == 0 && std::memcmp(bytes, bytes + 1, sizeof(bytes) - 1) == 0;
    if (is_default) continue;
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) *cooperative = true;
    attributes.emplace_back(static_cast<uint32_t>(id), 0,
                            flatbuffers::make_span(bytes));
  }
  return attributes;
}

class GraphReader {
 public:
  explicit GraphReader(Recorder& recorder)
      : recorder_(recorder), driver_(recorder.driver()) {}

  GraphSummary Write(CUgraph graph) {
    GraphSummary summary;
    size_t count = 0;
    if (driver_.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
      return summary;
    }
    std::vector<CUgraphNode> nodes(count);
    if (count > 0 &&
        driver_.GraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) {
      return summary;
    }
    fb::GraphT record;
    for (size_t i = 0; i < nodes.size(); ++i) {
      summary.node_index[reinterpret_cast<uint64_t>(nodes[i])] =
          static_cast<uint32_t>(i);
      record.nodes.push_back(ReadNode(nodes[i], &summary.kernels));
    }
    if (!ReadEdges(graph, summary, &record)) return GraphSummary();
    record.stamp = recorder_.StampPtr();
    record.id = summary.id = recorder_.NextGraphId();
    record.handle = reinterpret_cast<uint64_t>(graph);
    recorder_.writer().AppendObject(record);
    return summary;
  }

 private:
  bool ReadEdges(CUgraph graph, const GraphSummary& summary,
                 fb::GraphT* record) {
    if (driver_.GraphGetEdges == nullptr) return false;
    size_t count = 0;
    if (driver_.GraphGetEdges(graph, nullptr, nullptr, nullptr, &count) !=
        CUDA_SUCCESS) {
      return false;
    }
    std::vector<CUgraphNode> from(count);
    std::vector<CUgraphNode> to(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count > 0 &&
        driver_.GraphGetEdges(graph, from.data(), to.data(), data.data(),
                              &count) != CUDA_SUCCESS) {
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      const auto a =
          summary.node_index.find(reinterpret_cast<uint64_t>(from[i]));
      const auto b = summary.node_index.find(reinterpret_cast<uint64_t>(to[i]));
      if (a == summary.node_index.end() || b == summary.node_index.end()) {
        return false;
      }
      record->edges.emplace_back(a->second, b->second, data[i].from_port,
                                 data[i].to_port, data[i].type, 0);
    }
    return true;
  }

  std::unique_ptr<fb::GraphNodeT> ReadNode(CUgraphNode node,
                                           uint32_t* kernels) {
    auto record = std::make_unique<fb::GraphNodeT>();
    CUgraphNodeType type;
    if (driver_.GraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      record->understood = false;
      return record;
    }
    record->type = static_cast<uint32_t>(type);
    record->understood = ReadParams(node, type, record.get(), kernels);
    if (!record->understood) {
      recorder_.Unsupported(absl::StrCat("graph node of type ", type),
                            "only its existence is recorded");
    }
    return record;
  }

  bool ReadParams(CUgraphNode node, CUgraphNodeType type,
                  fb::GraphNodeT* record, uint32_t* kernels) {
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS params;
        std::memset(&params, 0, sizeof(params));
        if (driver_.GraphKernelNodeGetParams(node, &params) != CUDA_SUCCESS) {
          return false;
        }
        ++*kernels;
        record->launch = LaunchOfNode(recorder_, params);
        record->launch->attributes =
            AttributesOfNode(driver_, node, &record->launch->cooperative);
        return true;
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY: {
        CUDA_MEMCPY3D params;
        std::memset(&params, 0, sizeof(params));
        if (driver_.GraphMemcpyNodeGetParams(node, &params) != CUDA_SUCCESS) {
          return false;
        }
        record->memcpy = MemcpyOfNode(recorder_, params);
        return true;
      }
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS params;
        std::memset(&params, 0, sizeof(params));
        if (driver_.GraphMemsetNodeGetParams(node, &params) != CUDA_SUCCESS) {
          return false;
        }
        record->memset = MemsetOfNode(recorder_, params);
        return true;
      }
      case CU_GRAPH_NODE_TYPE_EMPTY:
        return true;
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        CUgraph child = nullptr;
        if (driver_.GraphChildGraphNodeGetGraph == nullptr ||
            driver_.GraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) {
          return false;
        }
        const GraphSummary summary = Write(child);
        record->child = summary.id;
        *kernels += summary.kernels;
        return summary.id != 0;
      }
      case CU_GRAPH_NODE_TYPE_HOST:
        return ReadHost(node, record);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return ReadEvent(node, type, record);
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return ReadMemOp(node, record);
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return ReadAllocation(node, type, record);
      default:
        return false;
    }
  }

  bool ReadHost(CUgraphNode node, fb::GraphNodeT* record) {
    CUDA_HOST_NODE_PARAMS params;
    if (driver_.GraphHostNodeGetParams == nullptr ||
        driver_.GraphHostNodeGetParams(node, &params) != CUDA_SUCCESS) {
      return false;
    }
    record->host = std::make_unique<fb::HostFuncT>();
    record->host->function = reinterpret_cast<uint64_t>(params.fn);
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(params.fn), &info) != 0 &&
        info.dli_sname != nullptr) {
      record->host->symbol = info.dli_sname;
    }
    return true;
  }

  bool ReadEvent(CUgraphNode node, CUgraphNodeType type,
                 fb::GraphNodeT* record) {
    const auto get = type == CU_GRAPH_NODE_TYPE_EVENT_RECORD
                         ? driver_.GraphEventRecordNodeGetEvent
                         : driver_.GraphEventWaitNodeGetEvent;
    CUevent event = nullptr;
    if (get == nullptr || get(node, &event) != CUDA_SUCCESS) return false;
    record->event = reinterpret_cast<uint64_t>(event);
    return true;
  }

  bool ReadMemOp(CUgraphNode node, fb::GraphNodeT* record) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS params;
    if (driver_.GraphBatchMemOpNodeGetParams == nullptr ||
        driver_.GraphBatchMemOpNodeGetParams(node, &params) != CUDA_SUCCESS) {
      return false;
    }
    record->memop = std::make_unique<fb::MemOpT>();
    record->memop->count = params.count;
    const auto* bytes = reinterpret_cast<const uint8_t*>(params.paramArray);
    record->memop->operations.assign(
        bytes, bytes + params.count * sizeof(*params.paramArray));
    return true;
  }

  bool ReadAllocation(CUgraphNode node, CUgraphNodeType type,
                      fb::GraphNodeT* record) {
    record->alloc = std::make_unique<fb::AllocT>();
    record->alloc->kind = fb::MemoryKind::kGraph;
    if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      CUdeviceptr address = 0;
      if (driver_.GraphMemFreeNodeGetParams == nullptr ||
          driver_.GraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS) {
        return false;
      }
      record->alloc->address = address;
      return true;
    }
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    if (driver_.GraphMemAllocNodeGetParams == nullptr ||
        driver_.GraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS) {
      return false;
    }
    record->alloc->address = params.dptr;
    record->alloc->size = params.bytesize;
    return true;
  }

  Recorder& recorder_;
  const device::Driver& driver_;
};

}  // namespace

GraphSummary WriteGraph(Recorder& recorder, CUgraph graph) {
  GraphSummary summary = GraphReader(recorder).Write(graph);
  if (summary.id == 0) {
    recorder.Unsupported("cuGraphGetNodes",
                         "a graph could not be read back from the driver: its "
                         "launches cannot be replayed");
  }
  return summary;
}

std::unique_ptr<fb::LaunchT> LaunchOfNode(Recorder& recorder,
                                          const CUDA_KERNEL_NODE_PARAMS& node) {
  LaunchCall call;
  call.function = node.func;
  if (call.function == nullptr) {
    recorder.kernels().RegisterKernel(recorder, node.kern);
    call.function = reinterpret_cast<CUfunction>(node.kern);
  }
  call.grid[0] = node.gridDimX;
  call.grid[1] = node.gridDimY;
  call.grid[2] = node.gridDimZ;
  call.block[0] = node.blockDimX;
  call.block[1] = node.blockDimY;
  call.block[2] = node.blockDimZ;
  call.shared_bytes = node.sharedMemBytes;
  call.params = node.kernelParams;
  call.extra = node.extra;
  std::unique_ptr<fb::LaunchT> launch = MakeLaunch(recorder, call);
  // Always: an instantiated graph is launched many times, any of which may be
  // the step whose memory is kept.
  if (recorder.options().memory == MemoryPolicy::kSmall) {
    recorder.memory().CollectPointers(launch->params);
  }
  return launch;
}

std::unique_ptr<fb::MemcpyT> MemcpyOfNode(Recorder& recorder,
                                          const CUDA_MEMCPY3D& node) {
  CopyCall call = FromCopy3D(node);
  call.kind = ResolveKind(recorder, call);
  return std::make_unique<fb::MemcpyT>(MakeCopy(recorder, call));
}

std::unique_ptr<fb::MemsetT> MemsetOfNode(Recorder& recorder,
                                          const CUDA_MEMSET_NODE_PARAMS& node) {
  auto record = std::make_unique<fb::MemsetT>();
  record->stamp = recorder.StampPtr();
  record->dst = node.dst;
  record->value = node.value;
  record->element_size = node.elementSize;
  record->width = node.width;
  record->height = node.height;
  record->pitch = node.pitch;
  return record;
}

}  // namespace heddle::record
