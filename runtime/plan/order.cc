// SPDX-License-Identifier: Apache-2.0
// CheckOrder: whether a rewritten graph still orders what the original did.
//
// Order is a matter of paths. An edge P→C of the rewritten graph is *strong* if
// P is complete and visible before the body of C begins: a full edge, or one of
// programmatic type into a kernel whose prologue waits. The completion of P
// implies that P's body ran, so strong edges may be put together to paths, and
// nothing else may: the chain A→B→C in which B does not wait has no strong edge
// A→B, and C can outrun A whatever the edge B→C is (PITFALLS 31).
//
// Every full edge of the original must have a strong path. That covers all
// order there is, since the original's own order is made of those edges, apart
// from what the program overlaps itself.
//
// The program's own overlap. What follows an edge P→C that is not full may rely
// on things that no completion says: C's body may read, before it waits, what
// was complete when P *started*, and what P's blocks wrote and fenced before
// they triggered. So such an edge must be there unchanged, and P must start
// when it used to and trigger where it used to: no prologue. (A wait in it
// would let P's blocks start, and with them C's, before P's full in-edges were
// over; a trigger in it would be the first.) A prologue in C is harmless: C's
// body begins later than it did. With one the edge is strong, if it is of
// programmatic type, and nothing of C is left that could rely on more than P's
// completion: P may have a prologue too.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/graph_shape.h"
#include "runtime/plan/overlap.h"

namespace heddle::plan {
namespace {

class OrderCheck {
 public:
  OrderCheck(const Graph& original, const OverlapPlan& plan,
             const GraphShape& shape)
      : original_(original), plan_(plan), shape_(shape) {
    for (uint32_t i = 0; i < plan.edges.size(); ++i) {
      by_ends_[{plan.edges[i].from, plan.edges[i].to}] = i;
    }
  }

  absl::Status Run() {
    for (uint32_t node = 0; node < original_.nodes.size(); ++node) {
      if (Waits(plan_.prologue[node]) && !original_.nodes[node].patchable) {
        return Refuse("node ", node, " cannot have a prologue");
      }
    }
    for (const Edge& edge : original_.edges) {
      if (IsFull(edge)) {
        if (HasStrongPath(edge.from, edge.to)) continue;
        return Refuse("the body of node ", edge.to, " could begin before node ",
                      edge.from, " is complete");
      }
      const Edge* kept = Find(edge.from, edge.to);
      if (kept == nullptr || *kept != edge) {
        return Refuse("the edge from node ", edge.from, " to node ", edge.to,
                      " is the program's own overlap and was changed");
      }
      // With a wait in front of it, no part of the consumer can tell.
      if (IsStrong(*kept)) continue;
      if (Waits(plan_.prologue[edge.from])) {
        return Refuse("node ", edge.from,
                      " has a prologue although the program overlaps node ",
                      edge.to, " with it");
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename... Parts>
  static absl::Status Refuse(const Parts&... parts) {
    return absl::FailedPreconditionError(absl::StrCat(parts...));
  }

  const Edge* Find(uint32_t from, uint32_t to) const {
    auto it = by_ends_.find({from, to});
    return it == by_ends_.end() ? nullptr : &plan_.edges[it->second];
  }

  bool IsStrong(const Edge& edge) const {
    return plan::IsStrong(edge, plan_.prologue);
  }

  bool HasStrongPath(uint32_t from, uint32_t to) {
    const Edge* direct = Find(from, to);
    if (direct != nullptr && IsStrong(*direct)) return true;
    // Rare: backwards from `to`, each node once.
    std::vector<bool> seen(original_.nodes.size());
    std::vector<uint32_t> stack = {to};
    while (!stack.empty()) {
      const uint32_t node = stack.back();
      stack.pop_back();
      for (const uint32_t i : shape_.in[node]) {
        const Edge& edge = plan_.edges[i];
        if (!IsStrong(edge) || seen[edge.from]) continue;
        if (edge.from == from) return true;
        seen[edge.from] = true;
        stack.push_back(edge.from);
      }
    }
    return false;
  }

  const Graph& original_;
  const OverlapPlan& plan_;
  const GraphShape& shape_;  // of the plan
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> by_ends_;
};

}  // namespace

absl::Status CheckOrder(const Graph& original, const OverlapPlan& plan) {
  if (plan.prologue.size() != original.nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan for ", plan.prologue.size(),
                     " nodes, and the graph has ", original.nodes.size()));
  }
  const absl::StatusOr<GraphShape> before =
      ShapeOf(original.nodes, original.edges);
  if (!before.ok()) return before.status();
  const absl::StatusOr<GraphShape> after = ShapeOf(original.nodes, plan.edges);
  if (!after.ok()) return after.status();
  return OrderCheck(original, plan, *after).Run();
}

}  // namespace heddle::plan
