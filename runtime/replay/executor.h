// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_EXECUTOR_H_
#define HEDDLE_RUNTIME_REPLAY_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/plan/overlap.h"
#include "runtime/replay/bound_program.h"

namespace heddle::replay {

// A way to run the step of a bound program. Everything is submitted between
// two points of one stream, so that events recorded there before and after
// Run enclose the step.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual const char* name() const = 0;
  virtual CUstream stream() const = 0;
  // Submits the step; returns before it has run.
  virtual absl::Status Run() = 0;
};

// Stream launches, one stream for every stream of the program.
absl::StatusOr<std::unique_ptr<Executor>> CreateSerialExecutor(
    const device::Driver& driver, const BoundProgram& program);

// One CUDA graph, built node by node from the operations' dependencies.
struct GraphOptions {
  // Leaves out this dependency, counted over all operations in order. For
  // tests: a verification that cannot fail proves nothing.
  int64_t drop_dependency = -1;
  // Not null: these edges between operations in place of the operations'
  // dependencies.
  const std::vector<plan::Edge>* edges = nullptr;
};
absl::StatusOr<std::unique_ptr<Executor>> CreateGraphExecutor(
    const device::Driver& driver, CUcontext context,
    const BoundProgram& program, const GraphOptions& options = {});

// Runs operations [first, end) of `list` one after another in one stream and
// waits for them.
absl::Status RunInOrder(const device::Driver& driver,
                        const BoundProgram& program, const OperationList& list,
                        size_t first, size_t end, CUstream stream);

// Submits once and waits: the status of the run itself.
absl::Status RunAndWait(const device::Driver& driver, Executor& executor);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_EXECUTOR_H_
