// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_REWRITTEN_EXECUTOR_H_
#define HEDDLE_RUNTIME_REPLAY_REWRITTEN_EXECUTOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/plan/overlap.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/module_code.h"
#include "runtime/rewrite/patched_modules.h"
#include "runtime/rewrite/rewriter.h"

namespace heddle::replay {

struct RewrittenExecutor {
  std::unique_ptr<Executor> executor;
  rewrite::RewriteSummary summary;
};

// The graph of CreateGraphExecutor in its O1 form: patched kernels that wait
// inside, early edges. `options` say what the graph is before it is rewritten.
// All arguments but `options` outlive the executor.
//
// NotFound: there is nothing to convert; Unimplemented: the device or the
// driver cannot do it; FailedPrecondition: the final check refused the plan.
// With these three, the step is better run as the plain graph; the message says
// why. Else what the driver says.
absl::StatusOr<RewrittenExecutor> CreateRewrittenExecutor(
    const device::Driver& driver, const device::ScopedContext& context,
    const BoundProgram& program, ModuleCode& code,
    rewrite::PatchedModules& patched, plan::Style style,
    const GraphOptions& options);

// "O1 launch-order": the executor's name.
std::string RewrittenName(plan::Style style);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_REWRITTEN_EXECUTOR_H_
