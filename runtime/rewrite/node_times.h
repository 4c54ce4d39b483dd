// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_NODE_TIMES_H_
#define HEDDLE_RUNTIME_REWRITE_NODE_TIMES_H_

#include <cuda.h>

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::rewrite {

// How long each node of `graph` takes by itself, in microseconds, by index of
// `model`, which was read from it: the least of `runs` runs of all nodes one
// after the other, with an event between each two. `graph` stays as it is; its
// nodes are run, so what they write is written. The stream is idle when it
// returns. Unimplemented where the driver has no such events.
absl::StatusOr<std::vector<double>> MeasureNodes(const device::Driver& driver,
                                                 CUgraph graph,
                                                 const GraphModel& model,
                                                 CUstream stream, int runs);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_NODE_TIMES_H_
