// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_HAPPENS_BEFORE_H_
#define HEDDLE_RUNTIME_PLAN_HAPPENS_BEFORE_H_

// Which nodes of a rewritten graph are complete, and what they wrote visible,
// before the body of which others begins.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cubin/patch.h"
#include "runtime/plan/overlap.h"

namespace heddle::plan {

// The order that strong edges (graph_shape.h) and nothing else make.
//
// Nodes are put into chains whose members follow each other, and each node
// knows the last member of every chain that comes before it: exact, in memory
// for nodes times chains. Graphs with few branches have few chains.
//
// Immutable after Create.
class HappensBefore {
 public:
  // Numbers that are kept at most, 4 bytes each.
  static constexpr size_t kMaxNumbers = size_t{1} << 28;

  // InvalidArgument: as ShapeOf, or not one prologue a node.
  // ResourceExhausted: too many nodes that nothing orders.
  static absl::StatusOr<HappensBefore> Create(
      const std::vector<Node>& nodes, absl::Span<const Edge> edges,
      absl::Span<const cubin::Prologue> prologue);

  // Whether `a` is complete before the body of `b` begins, in every execution.
  bool Before(uint32_t a, uint32_t b) const {
    return position_[a] < Reach(b, chain_[a]);
  }

  // The chains: every node is in one. A member is complete before the body of
  // the next one begins.
  const std::vector<std::vector<uint32_t>>& chains() const { return chains_; }
  uint32_t chain(uint32_t node) const { return chain_[node]; }
  uint32_t position(uint32_t node) const { return position_[node]; }
  // How many members of `chain`, from its first one on, come before `node`.
  uint32_t Reach(uint32_t node, uint32_t chain) const {
    const std::vector<uint32_t>& row = reach_[node];
    return chain < row.size() ? row[chain] : 0;
  }

 private:
  HappensBefore() = default;

  std::vector<std::vector<uint32_t>> chains_;
  std::vector<uint32_t> chain_;     // by node
  std::vector<uint32_t> position_;  // by node, in its chain
  // By node and chain; what is missing at the end of a row is 0.
  std::vector<std::vector<uint32_t>> reach_;
};

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_HAPPENS_BEFORE_H_
