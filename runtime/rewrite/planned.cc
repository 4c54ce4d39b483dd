// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/planned.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace heddle::rewrite {
namespace {

struct EdgeArrays {
  EdgeArrays(const std::vector<CUgraphNode>& nodes,
             const std::vector<plan::Edge>& edges) {
    for (const plan::Edge& edge : edges) {
      from.push_back(nodes[edge.from]);
      to.push_back(nodes[edge.to]);
      CUgraphEdgeData entry{};
      entry.type = edge.type;
      entry.from_port = edge.from_port;
      entry.to_port = edge.to_port;
      data.push_back(entry);
    }
  }
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  std::vector<CUgraphEdgeData> data;
};

// The edges of the driver's graph and of the model, replaced by full ones.
absl::Status ReplaceEdges(const device::Driver& driver, CUgraph graph,
                          GraphModel* model, std::vector<plan::Edge> edges) {
  std::vector<CUgraphNode> nodes;
  for (const GraphNode& node : model->nodes) nodes.push_back(node.handle);
  if (absl::Status status =
          RemoveEdges(driver, graph, nodes, model->graph.edges);
      !status.ok()) {
    return status;
  }
  model->graph.edges = std::move(edges);
  const EdgeArrays arrays(nodes, model->graph.edges);
  if (arrays.from.empty()) return absl::OkStatus();
  return driver.Check(
      driver.GraphAddDependencies(graph, arrays.from.data(), arrays.to.data(),
                                  arrays.data.data(), arrays.from.size()),
      "cuGraphAddDependencies");
}

using Ends = std::pair<uint32_t, uint32_t>;

// The plan's edges by their ends in the model.
absl::flat_hash_map<Ends, plan::Edge> EdgesByEnds(
    const plan::Plan& plan, const std::vector<uint32_t>& node_of) {
  absl::flat_hash_map<Ends, plan::Edge> by_ends;
  for (const plan::PlannedEdge& planned : plan.edges) {
    plan::Edge edge = planned.edge;
    edge.from = node_of[edge.from];
    edge.to = node_of[edge.to];
    by_ends[{edge.from, edge.to}] = edge;
  }
  return by_ends;
}

bool HasTheseEnds(const GraphModel& model,
                  const absl::flat_hash_map<Ends, plan::Edge>& by_ends) {
  if (by_ends.size() != model.graph.edges.size()) return false;
  for (const plan::Edge& edge : model.graph.edges) {
    if (!by_ends.contains(Ends{edge.from, edge.to})) return false;
  }
  return true;
}

plan::OperationIdentity IdentityOf(const GraphModel& model, uint32_t index) {
  const GraphNode& node = model.nodes[index];
  plan::OperationIdentity identity;
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS& shape = node.launch.shape();
      identity.kind = plan::OperationKind::kKernel;
      identity.name = node.source.name;
      if (node.source.code != nullptr) {
        identity.image = node.source.code->image_hash;
      }
      identity.grid = {shape.gridDimX, shape.gridDimY, shape.gridDimZ};
      identity.block = {shape.blockDimX, shape.blockDimY, shape.blockDimZ};
      identity.shared_bytes = shape.sharedMemBytes;
      identity.param_bytes = static_cast<uint32_t>(node.launch.Block().size());
      return identity;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      identity.kind = plan::OperationKind::kCopy;
      identity.name = "a copy";
      return identity;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      identity.kind = plan::OperationKind::kFill;
      identity.name = "a fill";
      return identity;
    default:
      identity.name = "a node that is no kernel, copy or fill";
      return identity;
  }
}

}  // namespace

absl::Status RemoveEdges(const device::Driver& driver, CUgraph graph,
                         const std::vector<CUgraphNode>& nodes,
                         const std::vector<plan::Edge>& edges) {
  if (driver.GraphRemoveDependencies == nullptr ||
      driver.GraphAddDependencies == nullptr) {
    return absl::UnimplementedError(
        "the driver has no edges with data (needs CUDA 12.3 or newer)");
  }
  const EdgeArrays arrays(nodes, edges);
  if (arrays.from.empty()) return absl::OkStatus();
  return driver.Check(driver.GraphRemoveDependencies(
                          graph, arrays.from.data(), arrays.to.data(),
                          arrays.data.data(), arrays.from.size()),
                      "cuGraphRemoveDependencies");
}

absl::StatusOr<std::vector<uint32_t>> SubmissionOrder(const GraphModel& model) {
  const size_t count = model.nodes.size();
  std::vector<uint32_t> open(count, 0);
  std::vector<std::vector<uint32_t>> out(count);
  for (const plan::Edge& edge : model.graph.edges) {
    ++open[edge.to];
    out[edge.from].push_back(edge.to);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (open[i] == 0) ready.push(i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const uint32_t next : out[node]) {
      if (--open[next] == 0) ready.push(next);
    }
  }
  if (order.size() != count) {
    return absl::InvalidArgumentError("the graph has a cycle");
  }
  return order;
}

plan::PlanInput PlanInputOf(const GraphModel& model,
                            const std::vector<uint32_t>& node_of) {
  plan::PlanInput input;
  std::vector<uint32_t> operation_of(model.nodes.size(), 0);
  for (uint32_t i = 0; i < node_of.size(); ++i) {
    operation_of[node_of[i]] = i;
    input.graph.nodes.push_back(model.graph.nodes[node_of[i]]);
    input.names.push_back(model.nodes[node_of[i]].source.name);
  }
  for (plan::Edge edge : model.graph.edges) {
    edge.from = operation_of[edge.from];
    edge.to = operation_of[edge.to];
    input.graph.edges.push_back(edge);
  }
  return input;
}

absl::StatusOr<Rewritten> RewriteAsPlanned(const device::Driver& driver,
                                           CUgraph graph, GraphModel* model,
                                           const plan::Plan& plan,
                                           const std::vector<uint32_t>& node_of,
                                           plan::PlanInput input,
                                           const plan::DeviceLimits& limits,
                                           PatchedModules* modules) {
  if (plan.nodes.size() != model->nodes.size() ||
      node_of.size() != model->nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan for ", plan.nodes.size(),
                     " operations, and the graph has ", model->nodes.size()));
  }
  const auto by_ends = EdgesByEnds(plan, node_of);
  if (!HasTheseEnds(*model, by_ends)) {
    if (plan.level == plan::Level::kO1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the plan has ", by_ends.size(), " edges, and the program's graph ",
          model->graph.edges.size(), " or others: O1 keeps all of them"));
    }
    std::vector<plan::Edge> full;
    for (const plan::PlannedEdge& planned : plan.edges) {
      full.push_back({node_of[planned.edge.from], node_of[planned.edge.to]});
    }
    if (absl::Status status =
            ReplaceEdges(driver, graph, model, std::move(full));
        !status.ok()) {
      return status;
    }
  }
  plan::OverlapPlan overlap;
  overlap.converted = plan.converted;
  overlap.launch_order = plan.launch_order;
  overlap.prologue.resize(model->nodes.size());
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    overlap.prologue[node_of[i]] = plan.nodes[i].prologue;
  }
  for (const plan::Edge& edge : model->graph.edges) {
    overlap.edges.push_back(by_ends.at(Ends{edge.from, edge.to}));
  }
  absl::StatusOr<Rewritten> rewritten =
      RewriteAs(driver, graph, model, std::move(overlap), limits, modules);
  if (!rewritten.ok()) return rewritten.status();
  rewritten->summary.style = plan.style;
  // The final check, of what was made of the plan here.
  plan::Plan made = plan;
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    input.graph.nodes[i] = model->graph.nodes[node_of[i]];
    made.nodes[i].prologue = rewritten->prologue[node_of[i]];
  }
  input.durations_us.assign(plan.nodes.size(), 0);
  if (absl::Status status = plan::CheckPlan(input, made, limits);
      !status.ok()) {
    return status;
  }
  return rewritten;
}

absl::Status CheckPlanFits(const plan::PlanFile& file, const std::string& name,
                           const GraphModel& model,
                           const std::vector<uint32_t>& node_of,
                           const device::Driver& driver, CUdevice device) {
  const absl::StatusOr<plan::PlanBinding> here =
      BindToDevice(file.binding, driver, device);
  if (!here.ok()) return here.status();
  if (absl::Status status = plan::CheckBinding(file.binding, *here, name);
      !status.ok()) {
    return status;
  }
  std::vector<plan::OperationIdentity> identities;
  for (const uint32_t i : node_of) identities.push_back(IdentityOf(model, i));
  // Traces have names for copies and fills, graphs of the driver do not.
  for (size_t i = 0; i < identities.size() && i < file.operations.size(); ++i) {
    plan::OperationIdentity& identity = identities[i];
    if (identity.kind == file.operations[i].kind &&
        identity.kind != plan::OperationKind::kKernel) {
      identity.name = file.operations[i].name;
    }
  }
  return plan::CheckOperations(file.operations, identities, name);
}

absl::StatusOr<plan::PlanBinding> BindToDevice(const plan::PlanBinding& binding,
                                               const device::Driver& driver,
                                               CUdevice device) {
  plan::PlanBinding here = binding;
  char name[256] = {};
  int values[3] = {};
  int version = 0;
  CUresult result = driver.DeviceGetName(name, sizeof(name) - 1, device);
  const CUdevice_attribute attributes[] = {
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT};
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    result = driver.DeviceGetAttribute(&values[i], attributes[i], device);
  }
  if (result == CUDA_SUCCESS) result = driver.DriverGetVersion(&version);
  if (absl::Status s = driver.Check(result, "cuDeviceGetAttribute"); !s.ok()) {
    return s;
  }
  here.device_name = name;
  here.compute_major = values[0];
  here.compute_minor = values[1];
  here.multiprocessors = static_cast<uint32_t>(std::max(values[2], 0));
  here.driver_version = version;
  return here;
}

}  // namespace heddle::rewrite
