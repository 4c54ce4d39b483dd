// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/explain.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/happens_before.h"

namespace heddle::plan {

absl::string_view RelationName(Relation relation) {
  switch (relation) {
    case Relation::kEdge:
      return "edge";
    case Relation::kPath:
      return "by way of others";
    case Relation::kUnordered:
      return "unordered";
    case Relation::kTurned:
      return "turned round";
  }
  return "unknown";
}

absl::StatusOr<std::vector<Boundary>> ExplainPlan(const PlanInput& input,
                                                  const Plan& plan,
                                                  const EdgeCosts& costs) {
  const size_t count = input.graph.nodes.size();
  if (plan.nodes.size() != count ||
      (!input.effects.empty() && input.effects.size() != count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a plan for ", plan.nodes.size(), " operations and a step of ", count));
  }
  const OverlapPlan overlap = plan.Overlap();
  const absl::StatusOr<HappensBefore> order =
      HappensBefore::Create(input.graph.nodes, overlap.edges, overlap.prologue);
  if (!order.ok()) return order.status();
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, const Edge*> by_ends;
  for (const Edge& edge : overlap.edges) {
    by_ends[{edge.from, edge.to}] = &edge;
  }
  std::vector<Boundary> boundaries;
  for (uint32_t later = 1; later < count; ++later) {
    Boundary& boundary = boundaries.emplace_back();
    const uint32_t earlier = later - 1;
    boundary.earlier = earlier;
    boundary.later = later;
    if (!input.effects.empty()) {
      boundary.reasons =
          ReasonsBetween(input.effects[earlier], input.effects[later]);
    }
    if (const auto edge = by_ends.find({earlier, later});
        edge != by_ends.end()) {
      boundary.mechanism = MechanismOf(*edge->second);
    } else if (order->Before(earlier, later)) {
      boundary.relation = Relation::kPath;
    } else {
      boundary.relation = order->Before(later, earlier) ? Relation::kTurned
                                                        : Relation::kUnordered;
    }
    const PlannedNode& before = plan.nodes[earlier];
    boundary.gain_us = before.start_us + before.duration_us + costs.full_us -
                       plan.nodes[later].start_us;
  }
  return boundaries;
}

}  // namespace heddle::plan
