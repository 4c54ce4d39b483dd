// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/flatten.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::rewrite {
namespace {

constexpr int kMostDepth = 16;

// What stands for a node in the flat graph: those of its nodes that nothing in
// it comes before, and those that nothing comes after.
struct Part {
  std::vector<CUgraphNode> first;
  std::vector<CUgraphNode> last;
};

class Flattener {
 public:
  Flattener(const device::Driver& driver, CodeSource* source, CUgraph flat)
      : driver_(driver), source_(source), flat_(flat) {}

  absl::StatusOr<Part> Add(CUgraph graph, int depth) {
    if (depth > kMostDepth) {
      return absl::UnimplementedError("child graphs of child graphs of ...");
    }
    absl::StatusOr<GraphModel> model = ReadGraph(driver_, graph, source_);
    if (!model.ok()) return model.status();
    std::vector<Part> parts;
    for (size_t i = 0; i < model->nodes.size(); ++i) {
      absl::StatusOr<Part> part = AddNode(&model->nodes[i], depth);
      if (!part.ok()) return part.status();
      parts.push_back(*std::move(part));
    }
    std::vector<bool> has_in(parts.size(), false);
    std::vector<bool> has_out(parts.size(), false);
    for (const plan::Edge& edge : model->graph.edges) {
      has_in[edge.to] = true;
      has_out[edge.from] = true;
      if (absl::Status status =
              Join(parts[edge.from], parts[edge.to], edge,
                   model->nodes[edge.from].type == CU_GRAPH_NODE_TYPE_GRAPH ||
                       model->nodes[edge.to].type == CU_GRAPH_NODE_TYPE_GRAPH);
          !status.ok()) {
        return status;
      }
    }
    Part whole;
    const auto append = [](const std::vector<CUgraphNode>& from,
                           std::vector<CUgraphNode>* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!has_in[i]) append(parts[i].first, &whole.first);
      if (!has_out[i]) append(parts[i].last, &whole.last);
    }
    if (!whole.first.empty() || depth == 0) return whole;
    // A graph without nodes still has its place.
    CUgraphNode node = nullptr;
    if (absl::Status status =
            driver_.Check(driver_.GraphAddEmptyNode(&node, flat_, nullptr, 0),
                          "cuGraphAddEmptyNode");
        !status.ok()) {
      return status;
    }
    return Part{{node}, {node}};
  }

 private:
  absl::StatusOr<Part> AddNode(GraphNode* node, int depth) {
    CUgraphNode made = nullptr;
    absl::Status status;
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        CUgraph child = nullptr;
        if (driver_.GraphChildGraphNodeGetGraph == nullptr) {
          return absl::UnimplementedError("the driver tells no child graphs");
        }
        status = driver_.Check(
            driver_.GraphChildGraphNodeGetGraph(node->handle, &child),
            "cuGraphChildGraphNodeGetGraph");
        if (!status.ok()) return status;
        return Add(child, depth + 1);
      }
      case CU_GRAPH_NODE_TYPE_KERNEL:
        status = AddKernel(node, &made);
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY: {
        CUDA_MEMCPY3D params{};
        CUcontext context = nullptr;
        CUresult result =
            driver_.GraphMemcpyNodeGetParams(node->handle, &params);
        if (result == CUDA_SUCCESS) result = driver_.CtxGetCurrent(&context);
        if (result == CUDA_SUCCESS) {
          result = driver_.GraphAddMemcpyNode(&made, flat_, nullptr, 0, &params,
                                              context);
        }
        status = driver_.Check(result, "cuGraphAddMemcpyNode");
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS params{};
        CUcontext context = nullptr;
        CUresult result =
            driver_.GraphMemsetNodeGetParams(node->handle, &params);
        if (result == CUDA_SUCCESS) result = driver_.CtxGetCurrent(&context);
        if (result == CUDA_SUCCESS) {
          result = driver_.GraphAddMemsetNode(&made, flat_, nullptr, 0, &params,
                                              context);
        }
        status = driver_.Check(result, "cuGraphAddMemsetNode");
        break;
      }
      case CU_GRAPH_NODE_TYPE_EMPTY:
        status =
            driver_.Check(driver_.GraphAddEmptyNode(&made, flat_, nullptr, 0),
                          "cuGraphAddEmptyNode");
        break;
      default:
        return absl::UnimplementedError(
            absl::StrCat("a node of kind ", static_cast<int>(node->type),
                         " in a graph with child graphs"));
    }
    if (!status.ok()) return status;
    return Part{{made}, {made}};
  }

  absl::Status AddKernel(GraphNode* node, CUgraphNode* made) {
    if (node->launch.shape().gridDimX == 0) {  // could not be read
      return absl::UnimplementedError(node->reason);
    }
    if (driver_.GraphKernelNodeCopyAttributes == nullptr) {
      return absl::UnimplementedError("the driver copies no attributes");
    }
    const CUDA_KERNEL_NODE_PARAMS params = node->launch.With(node->function);
    if (absl::Status status = driver_.Check(
            driver_.GraphAddKernelNode(made, flat_, nullptr, 0, &params),
            "cuGraphAddKernelNode");
        !status.ok()) {
      return status;
    }
    return driver_.Check(
        driver_.GraphKernelNodeCopyAttributes(*made, node->handle),
        "cuGraphKernelNodeCopyAttributes");
  }

  absl::Status Join(const Part& from, const Part& to, const plan::Edge& edge,
                    bool of_child) {
    CUgraphEdgeData data{};
    data.type = edge.type;
    data.from_port = edge.from_port;
    data.to_port = edge.to_port;
    if (of_child && (edge.type != plan::kTypeDefault ||
                     edge.from_port != plan::kPortDefault)) {
      return absl::UnimplementedError(
          "a child graph with an edge that is not full");
    }
    for (CUgraphNode a : from.last) {
      for (CUgraphNode b : to.first) {
        if (absl::Status status = driver_.Check(
                driver_.GraphAddDependencies(flat_, &a, &b, &data, 1),
                "cuGraphAddDependencies");
            !status.ok()) {
          return status;
        }
      }
    }
    return absl::OkStatus();
  }

  const device::Driver& driver_;
  CodeSource* const source_;
  const CUgraph flat_;
};

}  // namespace

bool HasChildGraphs(const device::Driver& driver, CUgraph graph) {
  size_t count = 0;
  if (driver.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    return false;
  }
  std::vector<CUgraphNode> nodes(count);
  if (count == 0 ||
      driver.GraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) {
    return false;
  }
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver.GraphNodeGetType(node, &type) == CUDA_SUCCESS &&
        type == CU_GRAPH_NODE_TYPE_GRAPH) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<CUgraph> Flatten(const device::Driver& driver, CUgraph graph,
                                CodeSource* source) {
  if (driver.GraphAddDependencies == nullptr) {
    return absl::UnimplementedError(
        "the driver has no edges with data (needs CUDA 12.3 or newer)");
  }
  CUgraph flat = nullptr;
  if (absl::Status status =
          driver.Check(driver.GraphCreate(&flat, 0), "cuGraphCreate");
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<Part> whole =
      Flattener(driver, source, flat).Add(graph, 0);
  if (!whole.ok()) {
    driver.GraphDestroy(flat);
    return whole.status();
  }
  return flat;
}

}  // namespace heddle::rewrite
