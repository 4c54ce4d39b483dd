// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_ORDER_EXECUTOR_H_
#define HEDDLE_RUNTIME_REPLAY_ORDER_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/plan/overlap.h"
#include "runtime/replay/executor.h"

namespace heddle::replay {

// Random orders of nodes that keep all edges. Each node has a random urgency,
// another one in every order, and the most urgent one that may come comes: so
// some are put off to the very end, and others come as soon as they can.
class RandomOrders {
 public:
  // Edges lead between nodes below `nodes` and form no cycle.
  RandomOrders(uint32_t nodes, absl::Span<const plan::Edge> edges,
               uint64_t seed);
  std::vector<uint32_t> Next();

 private:
  std::vector<std::vector<uint32_t>> out_;
  std::vector<uint32_t> in_count_;
  std::mt19937_64 random_;
};

// Runs the step one operation at a time, in another random order that keeps
// `edges` (indices of operations) at each Run: if every one of them leaves the
// memory that the recorded order leaves, nothing that the edges leave unordered
// depends on each other. Named "random orders". Other arguments outlive the
// executor. InvalidArgument: the edges form a cycle or name no operations.
absl::StatusOr<std::unique_ptr<Executor>> CreateOrderExecutor(
    const device::Driver& driver, const BoundProgram& program,
    absl::Span<const plan::Edge> edges, uint64_t seed);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_ORDER_EXECUTOR_H_
