// SPDX-License-Identifier: Apache-2.0
// When a consumer grid may start before all blocks of a producer have, its
// waiting blocks may take the places that the producer needs, and nothing goes
// on any more (PITFALLS 40). The rule that excludes it:
//
// Y may *wait for* X if a path of edges that are not full leads from X to Y:
// where Y has started, what a full edge leads from is complete. Call a grid Y a
// *holder* of such an X if Y's blocks can be resident while X has blocks that
// have not begun. For every X that has a holder, all blocks of X must fit on
// the device beside all blocks of all grids that may then be resident and
// waiting: the holders (of X or of others) that are neither complete whenever
// X's direct producers are, nor bound to start after all of X's blocks have
// begun.
//
// Proof. Suppose nothing can happen any more although nodes are left. Blocks
// whose wait is over end by themselves, so all resident blocks wait. If there
// are none, the device is empty: a node that is left and has no producer left
// runs, if it is no kernel, or has room, as any kernel that can be launched. So
// let Y be the grid of a resident block, and follow producers that are not
// complete, up to a node X whose producers all are. Y has started, so these
// edges are not full: the start of Y means that its producer P has started or
// may start, so P's full in-edges are over, and so on. X may start, and none of
// its blocks is resident, because such a block would not wait; and not all have
// ended. So X has blocks that have not begun while Y's are resident: Y is a
// holder of X, and X has room by the rule, if the rule counts every resident
// block. It does: its grid is a holder of some node by the same argument, is
// not complete while X's producers are, and started although X has blocks that
// have not begun. One of X's blocks can begin, a contradiction. The rule asks
// for room for all of X, where one block would do for the proof, so that
// nothing depends on the order in which a device serves several grids that have
// blocks to place.
//
// What bounds a window of kernels that count together. Y's start implies that
// all blocks of P have begun if the edge P→Y is full or comes from the
// programmatic port: a block that has triggered or ended has begun. If P's
// trigger comes after its wait, it also implies that what P waited for is
// complete: the window ends at P. If it comes first (kTriggerWait), P's blocks
// may be waiting themselves for grids that have not begun, if P came by a
// launch-order edge; so windows reach through such edges. A launch-order edge
// implies only what the start of P implied (best effort, cuda.h). Without any
// launch-order edge, by induction, all ancestors of a started grid have begun:
// there are no holders, and nothing to prove.
//
// Not all holders can be resident at once: one that starts only after another
// is complete takes its place. Holders are put into chains of that kind, and of
// each chain only the most demanding grid counts; it is a bound on the true
// maximum, which would be a search over antichains.

#include "runtime/plan/residency.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/graph_shape.h"

namespace heddle::plan {

using cubin::Prologue;

std::vector<uint32_t> ResidencyProof::Bits::Without(const Bits& other) const {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t left = words_[i] & ~other.words_[i]; left != 0;
         left &= left - 1) {
      out.push_back(static_cast<uint32_t>(i * 64) +
                    static_cast<uint32_t>(__builtin_ctzll(left)));
    }
  }
  return out;
}

ResidencyProof::ResidencyProof(const std::vector<Node>& nodes,
                               const DeviceLimits& limits)
    : nodes_(nodes), limits_(limits), facts_(nodes.size()) {}

ResidencyProof::Facts ResidencyProof::FactsOf(
    Prologue prologue, absl::Span<const Edge> in_edges) const {
  const size_t size = nodes_.size();
  const Bits none(size);
  Facts facts{none, none, none, none, none, none, prologue};
  for (const Edge& edge : in_edges) {
    const Facts& producer = facts_[edge.from];
    facts.settled.Add(producer.complete_at_ready);
    facts.settled.Add(edge.from);
    if (!IsFull(edge)) {
      facts.pending.Add(producer.pending);
      facts.pending.Add(edge.from);
    }
    switch (edge.from_port) {
      case kPortDefault:
        facts.begun_at_start.Add(producer.begun_at_ready);
        facts.begun_at_start.Add(edge.from);
        facts.complete_at_start.Add(producer.complete_at_ready);
        facts.complete_at_start.Add(edge.from);
        break;
      case kPortProgrammatic:
        facts.begun_at_start.Add(edge.from);
        // Without a trigger of ours, the program's own or the end of the block
        // comes at the earliest where the body begins.
        if (producer.prologue == Prologue::kTriggerWait) {
          facts.begun_at_start.Add(producer.begun_at_start);
          facts.complete_at_start.Add(producer.complete_at_start);
        } else {
          facts.begun_at_start.Add(producer.begun_at_ready);
          facts.complete_at_start.Add(producer.complete_at_ready);
        }
        break;
      default:
        facts.begun_at_start.Add(producer.begun_at_start);
        facts.complete_at_start.Add(producer.complete_at_start);
        break;
    }
  }
  facts.begun_at_ready = facts.begun_at_start;
  facts.complete_at_ready = facts.complete_at_start;
  if (!Waits(prologue)) return facts;
  for (const Edge& edge : in_edges) {
    if (edge.type != kTypeProgrammatic) continue;
    const Facts& producer = facts_[edge.from];
    facts.begun_at_ready.Add(producer.begun_at_ready);
    facts.begun_at_ready.Add(edge.from);
    facts.complete_at_ready.Add(producer.complete_at_ready);
    facts.complete_at_ready.Add(edge.from);
  }
  return facts;
}

// Whether blocks of `holder` can be resident and waiting when `producer` has
// blocks that have not begun and all that precedes it is complete.
bool ResidencyProof::MayBeResidentBefore(const Holder& holder,
                                         const Facts& facts,
                                         uint32_t producer) const {
  return holder.node != producer && !facts.begun_at_start.Has(producer) &&
         !facts_[producer].settled.Has(holder.node);
}

void ResidencyProof::Deny(Producer* producer, size_t chain,
                          uint32_t holder) const {
  if (producer->denied.size() <= chain) producer->denied.resize(chain + 1);
  uint64_t& denied = producer->denied[chain];
  const uint64_t now = producer->bound.Denied(nodes_[holder].needs);
  // A grid that denies nothing still is one.
  if (denied == 0) ++producer->grids;
  if (now <= denied) return;
  producer->total = SumOfDenied(producer->total - denied, now);
  denied = now;
}

bool ResidencyProof::Fits(const Producer& producer) const {
  return producer.bound.capacity() != 0 &&
         producer.grids < limits_.resident_grids &&
         producer.bound.Fits(producer.total);
}

// What blocks of such a node may be waiting for while not all of it has begun.
std::vector<uint32_t> ResidencyProof::NotBegun(
    const Facts& facts, absl::Span<const Edge> in_edges) {
  // Whether it may wait at all: in its prologue, or where the program says so.
  const bool may_wait = std::any_of(
      in_edges.begin(), in_edges.end(),
      [](const Edge& edge) { return edge.type == kTypeProgrammatic; });
  if (!may_wait) return {};
  return facts.pending.Without(facts.begun_at_start);
}

bool ResidencyProof::AddUnproved(uint32_t node, Prologue prologue,
                                 absl::Span<const Edge> in_edges) {
  facts_[node] = FactsOf(prologue, in_edges);
  return !NotBegun(facts_[node], in_edges).empty();
}

ResidencyProof::Step ResidencyProof::StepFor(
    uint32_t node, Prologue prologue, absl::Span<const Edge> in_edges) const {
  Step step;
  step.facts = FactsOf(prologue, in_edges);
  const Facts& facts = step.facts;
  const std::vector<uint32_t> not_begun = NotBegun(facts, in_edges);
  if (not_begun.empty()) return step;
  step.is_holder = true;
  const size_t chain = static_cast<size_t>(
      std::find_if(
          chain_ends_.begin(), chain_ends_.end(),
          [&](uint32_t end) { return facts.complete_at_start.Has(end); }) -
      chain_ends_.begin());
  step.holder = {node, chain};
  const auto fits = [&](const Producer& producer) {
    step.holds = step.holds && Fits(producer);
    return step.holds;
  };
  for (size_t i = 0; i < producers_.size(); ++i) {
    if (!MayBeResidentBefore(step.holder, facts, producers_[i].node)) continue;
    Producer producer = producers_[i];
    Deny(&producer, chain, node);
    if (!fits(producer)) return step;
    step.changed.emplace_back(i, std::move(producer));
  }
  for (const uint32_t ancestor : not_begun) {
    const bool known = std::any_of(
        producers_.begin(), producers_.end(),
        [&](const Producer& producer) { return producer.node == ancestor; });
    if (known || !nodes_[ancestor].kernel) continue;
    Producer producer{
        ancestor, PlacementBound(nodes_[ancestor].needs, limits_), {}};
    for (const Holder& other : holders_) {
      if (MayBeResidentBefore(other, facts_[other.node], ancestor)) {
        Deny(&producer, other.chain, other.node);
      }
    }
    Deny(&producer, chain, node);
    if (!fits(producer)) return step;
    step.added.push_back(std::move(producer));
  }
  return step;
}

bool ResidencyProof::Holds(uint32_t node, Prologue prologue,
                           absl::Span<const Edge> in_edges) const {
  return StepFor(node, prologue, in_edges).holds;
}

bool ResidencyProof::Add(uint32_t node, Prologue prologue,
                         absl::Span<const Edge> in_edges) {
  Step step = StepFor(node, prologue, in_edges);
  if (!step.holds) return false;
  facts_[node] = std::move(step.facts);
  if (!step.is_holder) return true;
  for (auto& [i, producer] : step.changed) producers_[i] = std::move(producer);
  std::move(step.added.begin(), step.added.end(),
            std::back_inserter(producers_));
  if (step.holder.chain == chain_ends_.size()) chain_ends_.push_back(node);
  chain_ends_[step.holder.chain] = node;
  holders_.push_back(step.holder);
  return true;
}

absl::Status CheckResidency(const Graph& original, const OverlapPlan& plan,
                            const DeviceLimits& limits) {
  absl::Status order = CheckOrder(original, plan);
  if (!order.ok()) return order;
  const absl::StatusOr<GraphShape> shape = ShapeOf(original.nodes, plan.edges);
  if (!shape.ok()) return shape.status();
  const bool any = std::any_of(
      plan.edges.begin(), plan.edges.end(),
      [](const Edge& edge) { return edge.from_port == kPortLaunchOrder; });
  if (!any || plan.edges == original.edges) return absl::OkStatus();
  if (original.nodes.size() > kMaxResidencyNodes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "launch-order edges in a graph of ", original.nodes.size(),
        " nodes: nothing is proved about more than ", kMaxResidencyNodes));
  }
  absl::flat_hash_set<Edge> known(original.edges.begin(), original.edges.end());
  std::vector<std::vector<Edge>> in_edges(original.nodes.size());
  for (const Edge& edge : plan.edges) in_edges[edge.to].push_back(edge);

  // A grid that holds places too early all by the program's own doing starts
  // when it used to, since CheckOrder leaves the program's own overlap as it
  // is. If all are of that kind, the graph makes the progress that it made.
  ResidencyProof unproved(original.nodes, limits);
  bool needs_proof = false;
  for (const uint32_t node : shape->order) {
    const bool is_holder =
        unproved.AddUnproved(node, plan.prologue[node], in_edges[node]);
    needs_proof |=
        is_holder &&
        (Waits(plan.prologue[node]) ||
         std::any_of(in_edges[node].begin(), in_edges[node].end(),
                     [&](const Edge& edge) { return !known.contains(edge); }));
  }
  if (!needs_proof) return absl::OkStatus();

  ResidencyProof proof(original.nodes, limits);
  for (const uint32_t node : shape->order) {
    if (!proof.Add(node, plan.prologue[node], in_edges[node])) {
      return absl::FailedPreconditionError(
          absl::StrCat("blocks that wait in node ", node,
                       " could keep blocks that they wait for off the device"));
    }
  }
  return absl::OkStatus();
}

}  // namespace heddle::plan
