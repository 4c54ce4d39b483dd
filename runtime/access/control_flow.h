// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_CONTROL_FLOW_H_
#define HEDDLE_RUNTIME_ACCESS_CONTROL_FLOW_H_

// The basic blocks of a kernel and how control passes between them.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/access/interpreter.h"

namespace heddle::access {

struct FlowEdge {
  uint32_t from = 0;  // blocks
  uint32_t to = 0;
  // Which way a conditional end of `from` went: 1 taken, 0 not, -1 either.
  int8_t taken = -1;
  // Leads to a block that is being visited: a loop.
  bool back = false;
};

struct FlowBlock {
  uint32_t first = 0;  // instructions, both inclusive
  uint32_t last = 0;
  // A number for `first` that is unique among blocks, with room for those that
  // follow: a function's blocks are there once for every call of it.
  uint32_t place = 0;
  std::vector<uint32_t> in;   // edges
  std::vector<uint32_t> out;  // edges
  bool loop_head = false;
  // A thread may come here more than once; true in doubt.
  bool repeats = false;
};

struct ControlFlow {
  std::vector<FlowBlock> blocks;
  std::vector<FlowEdge> edges;
  std::vector<uint32_t> order;  // reachable blocks, reverse postorder
  // Not empty: control may go where the edges do not say, and this is why.
  std::string unknown;
};

// Where an indirect branch can go; offsets in the kernel, bytes.
struct BranchTargets {
  uint32_t branch = 0;
  std::vector<uint32_t> targets;
};

ControlFlow BuildControlFlow(absl::Span<const CodeInstruction> code,
                             absl::Span<const BranchTargets> branch_targets,
                             absl::Span<const uint32_t> fatal_calls);

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_CONTROL_FLOW_H_
