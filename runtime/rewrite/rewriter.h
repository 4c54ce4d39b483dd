// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_REWRITER_H_
#define HEDDLE_RUNTIME_REWRITE_REWRITER_H_

// Turns a CUDA graph into its O1 form: patched kernels, early edges.

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/plan/overlap.h"
#include "runtime/rewrite/graph_model.h"
#include "runtime/rewrite/patched_modules.h"

namespace heddle::rewrite {

struct RewriteSummary {
  plan::Style style = plan::Style::kProgrammatic;
  uint32_t nodes = 0;
  uint32_t kernels = 0;
  uint32_t patched = 0;
  uint32_t edges = 0;
  uint32_t converted = 0;
  uint32_t launch_order = 0;
  // "3 x a cooperative launch", for kernels that stayed as they were, then the
  // planner's notes.
  std::vector<std::string> notes;
};

// Which function each node of a rewritten graph launches.
struct Rewritten {
  RewriteSummary summary;
  // By node index: the prologue of the kernel that it launches now (kNone: the
  // program's own kernel).
  std::vector<cubin::Prologue> prologue;
  std::vector<plan::Edge> edges;
};

// Rewrites `graph`, which heddle owns, in place; `model` is what ReadGraph said
// of it. On an error the graph is in no known state and must be dropped.
// FailedPrecondition: the final check refused the plan. NotFound: there is
// nothing to convert.
absl::StatusOr<Rewritten> Rewrite(const device::Driver& driver, CUgraph graph,
                                  GraphModel* model, plan::Style style,
                                  const plan::DeviceLimits& limits,
                                  PatchedModules* modules);

// Gives `graph`, which heddle owns and which `model` was read from, the
// prologues and edges of `plan`: by index of `model`, the edges in the order of
// model->graph.edges and between the same nodes. On an error the graph is in no
// known state. FailedPrecondition: a kernel cannot have its prologue here, or
// the final check refused the plan.
absl::StatusOr<Rewritten> RewriteAs(const device::Driver& driver, CUgraph graph,
                                    GraphModel* model, plan::OverlapPlan plan,
                                    const plan::DeviceLimits& limits,
                                    PatchedModules* modules);

// "programmatic", "programmatic-early", "launch-order".
absl::string_view StyleName(plan::Style style);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_REWRITER_H_
