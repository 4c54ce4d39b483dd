// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_PLANNED_EXECUTOR_H_
#define HEDDLE_RUNTIME_REPLAY_PLANNED_EXECUTOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.h"
#include "runtime/replay/rewritten_executor.h"

namespace heddle::replay {

// The step as one CUDA graph with the nodes, edges and prologues of `plan`,
// whose nodes are the operations of the step. Kernels with a prologue are the
// patched ones of `patched`.
//
// The plan is checked once more (plan::CheckPlan) with what this driver says of
// the kernels and the device: nothing runs on the word of a file. O2 needs
// `effects`, one an operation. All arguments but `plan` and `effects` outlive
// the executor.
//
// FailedPrecondition: a kernel cannot have its prologue here, or a check
// refused the plan. InvalidArgument: it is for another step. Else what the
// driver says.
absl::StatusOr<RewrittenExecutor> CreatePlannedExecutor(
    const device::Driver& driver, const device::ScopedContext& context,
    const BoundProgram& program, ModuleCode& code,
    rewrite::PatchedModules& patched, const plan::Plan& plan,
    const std::vector<plan::Effects>& effects);

// "plan O2 programmatic": the executor's name.
std::string PlannedName(const plan::Plan& plan);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_PLANNED_EXECUTOR_H_
