// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/plan/model.h"

#include <algorithm>

namespace heddle::plan {
namespace {

using cubin::Prologue;

void Append(std::vector<Act>* program, std::vector<Act> acts) {
  program->insert(program->end(), acts.begin(), acts.end());
}

std::vector<Act> ProgramOf(const Node& node, Prologue prologue, OwnPdl own) {
  std::vector<Act> program;
  if (prologue == Prologue::kTriggerWait) program.push_back(Act::kTrigger);
  if (prologue != Prologue::kNone) program.push_back(Act::kWait);
  if (prologue == Prologue::kWaitTrigger) program.push_back(Act::kTrigger);
  program.push_back(Act::kEarly);
  if (node.kernel && node.has_own_pdl) {
    if (own == OwnPdl::kTrigger || own == OwnPdl::kTriggerWait) {
      program.push_back(Act::kTrigger);
    }
    if (own != OwnPdl::kNothing && own != OwnPdl::kTrigger) {
      Append(&program, {Act::kWait, Act::kLate});
    }
    if (own == OwnPdl::kWaitTrigger) program.push_back(Act::kTrigger);
  }
  Append(&program, {Act::kEnd, Act::kComplete});
  return program;
}

}  // namespace

Model::Model(const std::vector<Node>& nodes, std::vector<Edge> edges,
             const std::vector<Prologue>& prologue,
             const std::vector<OwnPdl>& own)
    : edges_(std::move(edges)) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    programs_.push_back(ProgramOf(nodes[i], prologue[i], own[i]));
  }
}

bool Model::Has(const State& state, uint32_t node, Act act) const {
  const auto end = programs_[node].begin() + state[node];
  return std::find(programs_[node].begin(), end, act) != end;
}

bool Model::MayStart(const State& state, uint32_t node) const {
  return std::all_of(edges_.begin(), edges_.end(), [&](const Edge& edge) {
    if (edge.to != node) return true;
    switch (edge.from_port) {
      case kPortDefault:
        return Has(state, edge.from, Act::kComplete);
      case kPortProgrammatic:
        return Has(state, edge.from, Act::kTrigger) ||
               Has(state, edge.from, Act::kEnd);
      default:
        return MayStart(state, edge.from);
    }
  });
}

bool Model::MayStep(const State& state, uint32_t node) const {
  if (state[node] == programs_[node].size()) return false;
  if (state[node] == 0 && !MayStart(state, node)) return false;
  if (programs_[node][state[node]] != Act::kWait) return true;
  return std::all_of(edges_.begin(), edges_.end(), [&](const Edge& edge) {
    return edge.to != node || edge.type != kTypeProgrammatic ||
           Has(state, edge.from, Act::kComplete);
  });
}

std::vector<Model::Point> Model::Accesses() const {
  std::vector<Point> points;
  for (uint32_t node = 0; node < programs_.size(); ++node) {
    for (const Act act : programs_[node]) {
      if (act == Act::kEarly || act == Act::kLate) {
        points.push_back({node, act});
      }
    }
  }
  return points;
}

std::vector<Model::Point> Model::Facts() const {
  std::vector<Point> points = Accesses();
  for (uint32_t node = 0; node < programs_.size(); ++node) {
    points.push_back({node, Act::kComplete});
  }
  return points;
}

Model::Order Model::Always() const {
  Order order;
  for (const Point& fact : Facts()) {
    State state(programs_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t node = 0; node < programs_.size(); ++node) {
        while (MayStep(state, node) &&
               !(node == fact.first &&
                 programs_[node][state[node]] == fact.second)) {
          ++state[node];
          moved = true;
        }
      }
    }
    for (const Point& access : Accesses()) {
      if (access.first != fact.first &&
          !Has(state, access.first, access.second)) {
        order.insert({fact, access});
      }
    }
  }
  return order;
}

Model::Order Model::AlwaysByEnumeration() const {
  const std::vector<Point> facts = Facts();
  Order order;
  for (const Point& fact : facts) {
    for (const Point& access : Accesses()) {
      if (fact.first != access.first) order.insert({fact, access});
    }
  }
  // Which states can be reached says which orders are possible: an act that
  // happens in a state happens before all that has not happened in it.
  std::set<State> seen;
  std::vector<State> stack = {State(programs_.size())};
  while (!stack.empty()) {
    const State state = stack.back();
    stack.pop_back();
    if (!seen.insert(state).second) continue;
    for (uint32_t node = 0; node < programs_.size(); ++node) {
      if (!MayStep(state, node)) continue;
      const Act act = programs_[node][state[node]];
      for (const Point& fact : facts) {
        if (!Has(state, fact.first, fact.second)) {
          order.erase({fact, {node, act}});
        }
      }
      State next = state;
      ++next[node];
      stack.push_back(std::move(next));
    }
  }
  return order;
}

}  // namespace heddle::plan
