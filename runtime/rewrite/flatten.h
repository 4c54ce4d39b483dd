// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_FLATTEN_H_
#define HEDDLE_RUNTIME_REWRITE_FLATTEN_H_

#include <cuda.h>

#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/device_code.h"

namespace heddle::rewrite {

// Whether some node of `graph` is a graph of its own (a library call that was
// captured, in programs that build their graphs node by node).
bool HasChildGraphs(const device::Driver& driver, CUgraph graph);

// A new graph, the caller's, that does the same with the nodes of the child
// graphs in place of those. Its nodes are no clones of those of `graph`.
// Unimplemented: there is a node that cannot be read and made again; a child
// graph has edges that are not full.
absl::StatusOr<CUgraph> Flatten(const device::Driver& driver, CUgraph graph,
                                CodeSource* source);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_FLATTEN_H_
