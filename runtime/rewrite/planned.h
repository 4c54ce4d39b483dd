// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_PLANNED_H_
#define HEDDLE_RUNTIME_REWRITE_PLANNED_H_

// A graph of the driver made into what a plan says, and plans for such graphs.

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_file.h"
#include "runtime/rewrite/graph_model.h"
#include "runtime/rewrite/rewriter.h"

namespace heddle::rewrite {

// The nodes of `model` in an order in which they could have been submitted one
// after the other: the plan's operations. Of several the one with the lowest
// index comes first. InvalidArgument: there is a cycle.
absl::StatusOr<std::vector<uint32_t>> SubmissionOrder(const GraphModel& model);

// Takes `edges`, by index of `nodes`, out of the graph.
absl::Status RemoveEdges(const device::Driver& driver, CUgraph graph,
                         const std::vector<CUgraphNode>& nodes,
                         const std::vector<plan::Edge>& edges);

// What the planner needs of the graph, with the nodes in the order `node_of`
// (operation -> index of `model`). Without effects and durations.
plan::PlanInput PlanInputOf(const GraphModel& model,
                            const std::vector<uint32_t>& node_of);

// Turns `graph`, which heddle owns and which `model` was read from, into
// `plan`, whose operation i is node node_of[i]. A plan of level O2 replaces the
// graph's edges. `input`: what the final check compares with: edges of the
// program's graph and effects, by operation. On an error the graph is in no
// known state. FailedPrecondition: a kernel cannot have its prologue here, or
// the final check refused the plan. InvalidArgument: a plan for another graph.
absl::StatusOr<Rewritten> RewriteAsPlanned(
    const device::Driver& driver, CUgraph graph, GraphModel* model,
    const plan::Plan& plan, const std::vector<uint32_t>& node_of,
    plan::PlanInput input, const plan::DeviceLimits& limits,
    PatchedModules* modules);

// FailedPrecondition if the plan `name` was made for other kernels, launched
// otherwise or from other images, or for another device.
absl::Status CheckPlanFits(const plan::PlanFile& file, const std::string& name,
                           const GraphModel& model,
                           const std::vector<uint32_t>& node_of,
                           const device::Driver& driver, CUdevice device);

// The binding with the device of this process in place of the recorded one.
absl::StatusOr<plan::PlanBinding> BindToDevice(const plan::PlanBinding& binding,
                                               const device::Driver& driver,
                                               CUdevice device);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_PLANNED_H_
