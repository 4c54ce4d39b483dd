// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_GRAPH_ACCESS_H_
#define HEDDLE_RUNTIME_REWRITE_GRAPH_ACCESS_H_

// Which bytes each node of a graph touches: what its copies and fills declare,
// and what the machine code of its kernels shows.

#include <cuda.h>

#include <functional>
#include <vector>

#include "runtime/access/access_set.h"
#include "runtime/access/analysis_book.h"
#include "runtime/access/launch_access.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/graph_model.h"

namespace heddle::rewrite {

// By index of `model`, whose nodes still are as it says. `memory` needs no
// variables: `variables` gives those of an image, where they lie in the
// context. Never fails: what is not known of a node is unknown in its set.
std::vector<access::AccessSet> FindAccesses(
    const device::Driver& driver, const GraphModel& model,
    access::AnalysisBook* book, access::MemoryView memory,
    const std::function<access::ExtentSet(const DeviceCode&)>& variables);

// Of a copy or a fill by itself.
access::AccessSet AccessOf(const CUDA_MEMCPY3D& copy);
access::AccessSet AccessOf(const CUDA_MEMSET_NODE_PARAMS& fill);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_GRAPH_ACCESS_H_
