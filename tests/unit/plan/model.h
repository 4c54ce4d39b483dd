// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_PLAN_MODEL_H_
#define HEDDLE_TESTS_UNIT_PLAN_MODEL_H_

// An execution model of graphs that knows nothing of paths: nodes as little
// programs of acts, and rules for when the next act of one may happen. What
// runtime/plan concludes is compared with what can happen here.

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "runtime/plan/overlap.h"

namespace heddle::plan {

// What a kernel with PDL of its own does with it, in this order. Nobody knows
// that from outside: all are possible.
enum class OwnPdl : uint8_t {
  kNothing,
  kTrigger,
  kWait,
  kTriggerWait,
  kWaitTrigger,
};
inline constexpr uint32_t kOwnPdls = 5;

enum class Act : uint8_t {
  kTrigger,
  kWait,
  kEarly,     // accesses before a wait of the kernel's own, or all there are
  kLate,      // accesses behind that wait
  kEnd,       // the last block exits: releases dependents
  kComplete,  // and only now are its writes visible
};

// A graph with prologues, ready to run.
class Model {
 public:
  Model(const std::vector<Node>& nodes, std::vector<Edge> edges,
        const std::vector<cubin::Prologue>& prologue,
        const std::vector<OwnPdl>& own);

  // Which (producer, act) have happened before (consumer, act) in every
  // execution, of those that a program can rely on: accesses and completion
  // before accesses.
  using Point = std::pair<uint32_t, Act>;
  using Order = std::set<std::pair<Point, Point>>;

  // By holding back one act after another and letting all else happen that can.
  // Nothing that happens ever hinders something else, so that is exact.
  Order Always() const;
  // The same by going through every interleaving; for tiny graphs.
  Order AlwaysByEnumeration() const;

 private:
  using State = std::vector<uint8_t>;  // per node: how many acts have happened

  bool Has(const State& state, uint32_t node, Act act) const;
  bool MayStart(const State& state, uint32_t node) const;
  bool MayStep(const State& state, uint32_t node) const;
  std::vector<Point> Accesses() const;
  std::vector<Point> Facts() const;

  std::vector<Edge> edges_;
  std::vector<std::vector<Act>> programs_;
};

}  // namespace heddle::plan

#endif  // HEDDLE_TESTS_UNIT_PLAN_MODEL_H_
