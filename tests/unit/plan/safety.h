// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_SAFETY_H_
#define HEDDLE_TESTS_UNIT_PLAN_SAFETY_H_

// Whether a graph may run operations with these accesses, by what can happen in
// the execution model and by single bytes.

#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/graph_shape.h"
#include "runtime/plan/overlap.h"
#include "tests/unit/plan/model.h"
#include "tests/unit/plan/random_effects.h"

namespace heddle::plan {

inline Model::Order AlwaysIn(const std::vector<Node>& nodes,
                             const OverlapPlan& plan) {
  return Model(nodes, plan.edges, plan.prologue,
               std::vector<OwnPdl>(nodes.size(), OwnPdl::kNothing))
      .Always();
}

// Whether `earlier` is complete before anything of `later` in all executions.
inline bool Completes(const Model::Order& always, uint32_t earlier,
                      uint32_t later) {
  return always.contains({{earlier, Act::kComplete}, {later, Act::kEarly}});
}

inline bool IsSafe(const std::vector<Node>& nodes, const OverlapPlan& plan,
                   absl::Span<const Effects> effects) {
  const Model::Order always = AlwaysIn(nodes, plan);
  for (uint32_t b = 0; b < nodes.size(); ++b) {
    for (uint32_t a = 0; a < b; ++a) {
      if (Conflicts(effects[a], effects[b]) && !Completes(always, a, b)) {
        return false;
      }
    }
  }
  return true;
}

inline bool AllStrong(const OverlapPlan& plan) {
  for (const Edge& edge : plan.edges) {
    if (!IsStrong(edge, plan.prologue)) return false;
  }
  return true;
}

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_SAFETY_H_
