// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_GRAPH_RECORD_H_
#define HEDDLE_RUNTIME_RECORD_GRAPH_RECORD_H_

// Reads a CUDA graph back from the driver, so that captured and hand-built
// graphs look the same in a trace.

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "heddle/trace.h"
#include "runtime/record/recorder.h"

namespace heddle::record {

struct GraphSummary {
  uint32_t id = 0;  // Graph.id; 0 if it could not be read
  uint32_t kernels = 0;
  // Node handle -> index in Graph.nodes.
  absl::flat_hash_map<uint64_t, uint32_t> node_index;
};

// Writes `graph` (child graphs first). Only for a graph that was successfully
// instantiated or used for an update, so that its kernels are loaded.
GraphSummary WriteGraph(Recorder& recorder, CUgraph graph);

// Parameters as given to cuGraph*NodeSetParams.
std::unique_ptr<fb::LaunchT> LaunchOfNode(Recorder& recorder,
                                          const CUDA_KERNEL_NODE_PARAMS& node);
std::unique_ptr<fb::MemcpyT> MemcpyOfNode(Recorder& recorder,
                                          const CUDA_MEMCPY3D& node);
std::unique_ptr<fb::MemsetT> MemsetOfNode(Recorder& recorder,
                                          const CUDA_MEMSET_NODE_PARAMS& node);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_GRAPH_RECORD_H_
