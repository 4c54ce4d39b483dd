// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/kernel_runs.h"

namespace heddle::trace {
namespace {

// A damaged file may nest graphs so that they expand without end.
constexpr size_t kMaxKernels = 1 << 20;

}  // namespace

void GraphState::Follow(const Record& record) {
  if (const auto* graph = record.As<fb::Graph>(); graph != nullptr) {
    graphs_[graph->id()] = graph;
    return;
  }
  const auto* event = record.As<fb::GraphExec>();
  if (event == nullptr || event->status() != 0) return;
  const std::pair<uint32_t, uint32_t> node(event->graph(), event->node());
  switch (event->op()) {
    case fb::GraphExecOp::kInstantiate:
    case fb::GraphExecOp::kUpdate:
      execs_[event->handle()] = Exec();
      break;
    case fb::GraphExecOp::kDestroy:
      execs_.erase(event->handle());
      break;
    case fb::GraphExecOp::kNodeUpdate:
      if (event->update() != nullptr) {
        execs_[event->handle()].updates[node] = event->update();
      }
      break;
    case fb::GraphExecOp::kNodeEnable:
      execs_[event->handle()].enabled[node] = event->enabled();
      break;
    case fb::GraphExecOp::kUpload:
      break;
  }
}

const fb::Graph* GraphState::Find(uint32_t graph_id) const {
  const auto found = graphs_.find(graph_id);
  return found == graphs_.end() ? nullptr : found->second;
}

std::vector<const fb::Launch*> GraphState::Kernels(
    const fb::GraphLaunch& launch) const {
  static const Exec kUnchanged;
  const auto exec = execs_.find(launch.exec());
  std::vector<const fb::Launch*> kernels;
  Expand(launch.graph(), exec == execs_.end() ? kUnchanged : exec->second,
         &kernels);
  return kernels;
}

void GraphState::Expand(uint32_t graph_id, const Exec& exec,
                        std::vector<const fb::Launch*>* kernels) const {
  const fb::Graph* graph = Find(graph_id);
  if (graph == nullptr || graph->nodes() == nullptr) return;
  for (uint32_t i = 0; i < graph->nodes()->size(); ++i) {
    if (kernels->size() >= kMaxKernels) return;
    const std::pair<uint32_t, uint32_t> key(graph_id, i);
    if (const auto on = exec.enabled.find(key);
        on != exec.enabled.end() && !on->second) {
      continue;
    }
    const fb::GraphNode* node = graph->nodes()->Get(i);
    if (const auto update = exec.updates.find(key);
        update != exec.updates.end()) {
      node = update->second;
    }
    if (node->launch() != nullptr) {
      kernels->push_back(node->launch());
    } else if (node->child() != 0 && node->child() < graph_id) {
      // A child is written before its parent, so ids end the recursion.
      Expand(node->child(), exec, kernels);
    }
  }
}

}  // namespace heddle::trace
