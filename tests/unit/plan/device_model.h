// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_DEVICE_MODEL_H_
#define HEDDLE_TESTS_UNIT_PLAN_DEVICE_MODEL_H_

// A tiny device that places blocks on multiprocessors wherever they fit and in
// any order, and a search through everything that it might do.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/plan/overlap.h"

namespace heddle::plan {

enum class Outcome : uint8_t { kAlwaysEnds, kMayGetStuck, kTooLarge };

// Of a rewritten graph, whose kernels do nothing of their own. Blocks take a
// place, their threads and shared memory of their multiprocessor; one that is
// not idle takes no blocks with shared memory beside blocks without, which is
// what a shared-memory configuration comes to at worst. Of `limits` count
// multiprocessors, threads, blocks and shared memory.
Outcome Explore(const std::vector<Node>& nodes, const OverlapPlan& plan,
                const DeviceLimits& limits, size_t max_states = 60000);

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_DEVICE_MODEL_H_
