// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_PLAN_STEP_H_
#define HEDDLE_RUNTIME_REPLAY_PLAN_STEP_H_

// A step of a trace as the planner sees it. Needs no device.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/access/access_set.h"
#include "runtime/device/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_file.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// By index in Program::step.operations.
struct PlanStep {
  // Nodes as the recorded device would run them: what the trace's images say
  // about registers and shared memory, and which kernels the patcher takes.
  // Without effects and durations.
  plan::PlanInput input;
  std::vector<plan::OperationIdentity> operations;
  plan::PlanBinding binding;  // the recorded device
  plan::DeviceLimits limits;  // of it; sm_90's where the trace does not say
  // Why kernels cannot be patched, one line a reason with a count.
  std::vector<std::string> notes;
};

// Never fails because of an image: kernels whose code cannot be read are not
// patchable.
PlanStep DescribeStep(const trace::Reader& reader, const Program& program,
                      const StepBounds& bounds);

// What a plan file says of a step, without a look at its images.
std::vector<plan::OperationIdentity> IdentitiesOf(const Program& program);
plan::PlanBinding BindingOf(const trace::Reader& reader, const Program& program,
                            const StepBounds& bounds);

// The program's own edges.
std::vector<plan::Edge> EdgesOf(const OperationList& list);

// Effects of all operations.
std::vector<plan::Effects> EffectsOf(
    const std::vector<access::AccessSet>& accesses);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_PLAN_STEP_H_
