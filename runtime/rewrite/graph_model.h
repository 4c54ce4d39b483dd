// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_GRAPH_MODEL_H_
#define HEDDLE_RUNTIME_REWRITE_GRAPH_MODEL_H_

// A CUDA graph as the planner sees it, read back from the driver: whoever built
// it (capture, node by node, heddle's own replay) does not matter.

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/plan/overlap.h"
#include "runtime/rewrite/device_code.h"

namespace heddle::rewrite {

// The parameters of a kernel node with every byte owned: what the driver hands
// out belongs to the node and must not be passed back.
class OwnedLaunch {
 public:
  // Copies `params`. `function` says how large each parameter is.
  static absl::StatusOr<OwnedLaunch> Copy(
      const device::Driver& driver, CUfunction function,
      const CUDA_KERNEL_NODE_PARAMS& params);

  // The same launch of `function`; valid as long as this object.
  CUDA_KERNEL_NODE_PARAMS With(CUfunction function);

  const CUDA_KERNEL_NODE_PARAMS& shape() const { return shape_; }
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  // The parameter block: each parameter where the kernel reads it.
  std::vector<uint8_t> Block() const;

 private:
  CUDA_KERNEL_NODE_PARAMS shape_{};  // without pointers
  std::vector<uint8_t> bytes_;       // parameters, one after another, aligned
  std::vector<uint64_t> offsets_;    // in bytes_
  struct Place {
    uint64_t offset = 0;  // in the parameter block
    uint64_t size = 0;
  };
  std::vector<Place> places_;
  std::vector<void*> pointers_;
};

struct GraphNode {
  CUgraphNode handle = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  // Kernel nodes:
  CUfunction function = nullptr;
  OwnedLaunch launch;
  KernelSource source;  // source.code is null if unknown
  std::string reason;   // why it cannot be patched; empty if it may be
  // Copy and memset nodes: where they read and write.
  std::vector<uint64_t> pointers;
};

struct GraphModel {
  std::vector<GraphNode> nodes;
  plan::Graph graph;                              // the same indices
  absl::flat_hash_map<uint64_t, uint32_t> index;  // handle -> index
  uint32_t kernels = 0;
};

// Limits of `device` for plan::PlanOverlap.
plan::DeviceLimits ReadLimits(const device::Driver& driver, CUdevice device);

// Reads `graph`. A kernel whose code `source` does not know stays unpatchable,
// with the reason. Unimplemented if some of it cannot be read at all.
absl::StatusOr<GraphModel> ReadGraph(const device::Driver& driver,
                                     CUgraph graph, CodeSource* source);

// Why a graph with such a node must be left exactly as it is; empty if it need
// not (PITFALLS 29).
std::string WhyUntouchable(const device::Driver& driver,
                           const GraphModel& model);

// The kernel of a node, also where the node names a CUkernel.
absl::StatusOr<CUfunction> FunctionOf(const device::Driver& driver,
                                      const CUDA_KERNEL_NODE_PARAMS& params);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_GRAPH_MODEL_H_
