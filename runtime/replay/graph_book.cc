// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/graph_book.h"

#include <cuda.h>

#include <queue>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

struct InEdge {
  uint32_t from;
  uint8_t port;
  uint8_t type;
};

// Node indices, dependencies first, lower indices first among the ready.
absl::StatusOr<std::vector<uint32_t>> TopologicalOrder(
    uint32_t graph_id, const std::vector<std::vector<InEdge>>& in) {
  std::vector<std::vector<uint32_t>> out(in.size());
  std::vector<uint32_t> missing(in.size());
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t to = 0; to < in.size(); ++to) {
    missing[to] = static_cast<uint32_t>(in[to].size());
    if (missing[to] == 0) ready.push(to);
    for (const InEdge& edge : in[to]) out[edge.from].push_back(to);
  }
  std::vector<uint32_t> order;
  order.reserve(in.size());
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const uint32_t to : out[node]) {
      if (--missing[to] == 0) ready.push(to);
    }
  }
  if (order.size() != in.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph ", graph_id, " has a cycle: the trace is damaged"));
  }
  return order;
}

}  // namespace

std::vector<Dependency> LastNodes(const std::vector<ExpandedNode>& nodes,
                                  size_t first) {
  std::vector<bool> waited(nodes.size(), false);
  for (size_t i = first; i < nodes.size(); ++i) {
    for (const Dependency& d : nodes[i].dependencies) {
      if (d.full()) waited[d.from] = true;
    }
  }
  std::vector<Dependency> last;
  for (size_t i = first; i < nodes.size(); ++i) {
    if (!waited[i]) last.push_back({static_cast<uint32_t>(i), 0, 0});
  }
  return last;
}

void GraphBook::Observe(const fb::Graph& graph) {
  graphs_[graph.id()] = &graph;
}

void GraphBook::Observe(const fb::GraphExec& exec) {
  if (exec.status() != 0) return;
  switch (exec.op()) {
    case fb::GraphExecOp::kInstantiate:
      execs_[exec.handle()] = Exec{exec.graph(), exec.graph(), {}, {}};
      break;
    case fb::GraphExecOp::kUpdate:
      // Every parameter now comes from the other graph.
      execs_[exec.handle()].current = exec.graph();
      execs_[exec.handle()].updates.clear();
      break;
    case fb::GraphExecOp::kDestroy:
      execs_.erase(exec.handle());
      break;
    case fb::GraphExecOp::kNodeUpdate:
      if (exec.update() != nullptr) {
        execs_[exec.handle()].updates[{exec.graph(), exec.node()}] =
            exec.update();
      }
      break;
    case fb::GraphExecOp::kNodeEnable:
      execs_[exec.handle()].enabled[{exec.graph(), exec.node()}] =
          exec.enabled();
      break;
    default:  // uploads change nothing
      break;
  }
}

absl::StatusOr<std::vector<ExpandedNode>> GraphBook::Expand(
    uint64_t exec, uint32_t hint) const {
  const auto it = execs_.find(exec);
  const Exec* state = it == execs_.end() ? nullptr : &it->second;
  const uint32_t graph_id =
      state != nullptr && state->current != 0 ? state->current : hint;
  std::vector<ExpandedNode> nodes;
  if (absl::Status s = ExpandInto(graph_id, state, 0, nullptr, nodes);
      !s.ok()) {
    return s;
  }
  return nodes;
}

absl::Status GraphBook::ExpandInto(uint32_t graph_id, const Exec* exec,
                                   int depth, const Dependency* entry,
                                   std::vector<ExpandedNode>& out) const {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat(
        "graph ", graph_id, ": child graphs nest deeper than ", kMaxDepth));
  }
  const auto found = graphs_.find(graph_id);
  if (found == graphs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the trace does not hold graph ", graph_id,
                     ": it was instantiated before recording began"));
  }
  const fb::Graph& graph = *found->second;
  const size_t count = graph.nodes() == nullptr ? 0 : graph.nodes()->size();
  if (out.size() + count > kMaxNodes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "graph ", graph_id, " expands to more than ", kMaxNodes, " nodes"));
  }
  std::vector<std::vector<InEdge>> in(count);
  const size_t edges = graph.edges() == nullptr ? 0 : graph.edges()->size();
  for (size_t i = 0; i < edges; ++i) {
    const fb::GraphEdge& edge = *graph.edges()->Get(i);
    if (edge.from() >= count || edge.to() >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph ", graph_id, ": edge ", i,
                       " names a node that it does not have"));
    }
    in[edge.to()].push_back({edge.from(), edge.from_port(), edge.type()});
  }
  absl::StatusOr<std::vector<uint32_t>> order = TopologicalOrder(graph_id, in);
  if (!order.ok()) return order.status();

  // Updates and switches name the graph that was instantiated, even after an
  // update from another one of the same shape.
  const bool top = depth == 0;
  const auto keys = [&](uint32_t index) {
    std::vector<NodeKey> result = {{graph_id, index}};
    if (top && exec != nullptr && exec->instantiated != graph_id) {
      result.push_back({exec->instantiated, index});
    }
    return result;
  };

  std::vector<uint32_t> last(count);  // index in `out` that stands for its end
  for (const uint32_t index : *order) {
    const fb::GraphNode* node = graph.nodes()->Get(index);
    if (exec != nullptr) {
      for (const NodeKey& key : keys(index)) {
        if (const auto u = exec->updates.find(key); u != exec->updates.end()) {
          node = u->second;
        }
        if (const auto e = exec->enabled.find(key);
            e != exec->enabled.end() && !e->second) {
          node = nullptr;
        }
      }
    }
    ExpandedNode expanded;
    expanded.index = static_cast<int32_t>(index);
    for (const InEdge& edge : in[index]) {
      expanded.dependencies.push_back({last[edge.from], edge.port, edge.type});
    }
    if (expanded.dependencies.empty() && entry != nullptr) {
      expanded.dependencies.push_back(*entry);
    }
    if (node != nullptr && node->type() == CU_GRAPH_NODE_TYPE_GRAPH) {
      if (node->child() == 0) {
        return absl::NotFoundError(
            absl::StrCat("graph ", graph_id, ", node ", index,
                         ": the trace does not hold its child graph"));
      }
      out.push_back(std::move(expanded));
      const Dependency inside{static_cast<uint32_t>(out.size() - 1), 0, 0};
      const size_t first = out.size();
      if (absl::Status s =
              ExpandInto(node->child(), exec, depth + 1, &inside, out);
          !s.ok()) {
        return s;
      }
      ExpandedNode exit;
      exit.index = static_cast<int32_t>(index);
      exit.dependencies = LastNodes(out, first);
      if (exit.dependencies.empty()) exit.dependencies.push_back(inside);
      out.push_back(std::move(exit));
    } else {
      expanded.node = node;
      out.push_back(std::move(expanded));
    }
    last[index] = static_cast<uint32_t>(out.size() - 1);
  }
  return absl::OkStatus();
}

}  // namespace heddle::replay
