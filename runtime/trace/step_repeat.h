// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_STEP_REPEAT_H_
#define HEDDLE_RUNTIME_TRACE_STEP_REPEAT_H_

// The repeating unit of a sequence of operations. A part of step detection
// (runtime/trace/steps.h), separate so that it can be tested on sequences.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/trace/operations.h"

namespace heddle::trace {

struct RepeatedUnit {
  // First operation of each occurrence, ascending, at least `period` apart;
  // empty if nothing repeats.
  std::vector<uint64_t> starts;
  uint64_t period = 0;  // operations in one occurrence
  // The unit repeats in Operation::kind only, not in Operation::shape.
  bool by_kind = false;
};

// Finds the unit whose back-to-back repetition covers most of the work, so
// that a step wins over the layers inside it, then every other occurrence of
// that unit, so that an interruption costs no more than the step it falls in.
//
// Where a step begins inside a rotation-symmetric repetition is decided by, in
// this order: `preferred_starts` (operation indices, ascending: the recorder's
// snapshots and marks), the place where the host waits for the device in most
// repetitions, the end of the repetition.
//
// A repetition with few repeats of which most is itself a repetition with host
// waits between its repeats is taken apart: that is a program that runs a few
// requests of many steps, not a few steps of many layers.
//
// `period` != 0 asks for the unit of that many operations.
RepeatedUnit FindRepeatedUnit(absl::Span<const Operation> operations,
                              absl::Span<const uint64_t> preferred_starts,
                              uint64_t period);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_STEP_REPEAT_H_
