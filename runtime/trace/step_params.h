// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_STEP_PARAMS_H_
#define HEDDLE_RUNTIME_TRACE_STEP_PARAMS_H_

// Which kernel parameters differ from one repetition of a step to the next.

#include <cstdint>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/steps.h"

namespace heddle::trace {

enum class Variation : uint8_t {
  kAffine,  // value = first + slope * step, modulo the word's size
  kOther,
};

// A word of one launch's parameters that is not the same in every step.
struct VaryingWord {
  uint64_t launch = 0;  // position in the step, graph nodes included, from 0
  uint32_t kernel = 0;  // Kernel.id at that position in the first step
  uint32_t param = 0;   // index in Kernel.params, ~0 if the kernel has none
  uint32_t offset = 0;  // bytes from the begin of the parameter block
  uint32_t size = 0;    // 8, 4, or fewer bytes at an odd end
  Variation variation = Variation::kOther;
  // kAffine: the value in step 0 of the list, and what each step adds.
  uint64_t first = 0;
  int64_t slope = 0;
};

struct StepParams {
  uint64_t steps = 0;     // that were compared: those of the main signature
  uint64_t launches = 0;  // in one step
  // Parameters (not words) by how they behave; a parameter is as irregular as
  // its most irregular word.
  uint64_t constant = 0;
  uint64_t affine = 0;
  uint64_t other = 0;
  std::vector<VaryingWord> varying;  // by launch, then offset
};

// Compares the steps of `list` that have its main signature. At least three are
// needed to call anything affine. Parameters of graph nodes count as they were
// when the graph was launched. Takes time and memory in proportion to the
// parameters of two steps, whatever the number of steps.
StepParams CompareStepParams(const Reader& reader, const StepList& list);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_STEP_PARAMS_H_
