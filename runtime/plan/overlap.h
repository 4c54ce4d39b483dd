// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_OVERLAP_H_
#define HEDDLE_RUNTIME_PLAN_OVERLAP_H_

// O1, order-preserving overlap: which kernels of a captured graph get a
// prologue, and which of its full edges become programmatic or launch-order
// edges, so that a kernel's blocks are on their multiprocessors before the
// kernels that they must follow have ended. Nothing here calls a driver; the
// functions are pure and may be called from any thread.
//
// The model. A node *starts* when all its in-edges are active; the body of a
// kernel begins when its prologue is over. An edge P→C is active
//   full (default type, port 0)   when P is complete;
//   programmatic port (1)         when all blocks of P have triggered or ended;
//   launch-order port (2)         at the earliest when P itself may start.
// A wait in C's prologue waits for the completion of P if the type of the edge
// is programmatic, whatever its port.
//
// P's completion implies that P's body ran, so also everything that P's body
// was ordered after. A programmatic edge without a wait implies nothing about
// memory: the exit of a block releases dependents before its writes are
// visible. (cuda.h 13.0, CUgraphEdgeData; PTX ISA, griddepcontrol.)

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cubin/patch.h"

namespace heddle::plan {

// What the blocks of a launch occupy.
struct BlockNeeds {
  uint64_t blocks = 1;        // of the grid
  uint32_t threads = 1;       // per block
  uint32_t registers = 0;     // per thread; 0: not known
  uint32_t shared_bytes = 0;  // per block, static and dynamic
  uint32_t cluster_blocks = 1;
  bool cooperative = false;

  friend bool operator==(const BlockNeeds&, const BlockNeeds&) = default;
};

// What a device offers. The defaults are those of sm_90; whoever knows the
// device fills in its attributes (CU_DEVICE_ATTRIBUTE_…, in parentheses).
//
// Launch-order edges rest on a proof that counts multiprocessors. It holds for
// one such graph at a time: if k of them may run at once on one device, give
// each a k-th of the multiprocessors, and take away those that kernels occupy
// which may themselves wait for somebody (communication, persistent kernels).
struct DeviceLimits {
  uint32_t multiprocessors = 132;     // (MULTIPROCESSOR_COUNT)
  uint32_t threads_per_sm = 2048;     // (MAX_THREADS_PER_MULTIPROCESSOR)
  uint32_t registers_per_sm = 65536;  // (MAX_REGISTERS_PER_MULTIPROCESSOR)
  uint32_t shared_per_sm = 233472;    // (MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
  uint32_t blocks_per_sm = 32;        // (MAX_BLOCKS_PER_MULTIPROCESSOR)
  uint32_t reserved_shared_per_block = 1024;  // (RESERVED_SHARED_MEMORY_…)
  uint32_t warp_threads = 32;                 // (WARP_SIZE)
  // Each quarter of a multiprocessor has its own warps and registers, and
  // registers are handed out per warp in this unit (cuda_occupancy.h).
  uint32_t quarters = 4;
  uint32_t register_unit = 256;
  // The smallest shared-memory configuration that holds a block; what a
  // multiprocessor may be stuck with while it is not idle. Bytes.
  uint32_t least_shared_carveout = 8192;
  // Grids that can be resident at once (CUDA C++ Programming Guide, technical
  // specifications per compute capability).
  uint32_t resident_grids = 128;
};

struct Node {
  bool kernel = false;
  // A patched image of this kernel exists for every Prologue.
  bool patchable = false;
  // The kernel has PDL instructions (griddepcontrol) of its own, or the launch
  // programmatic attributes.
  bool has_own_pdl = false;
  BlockNeeds needs;  // kernels only
  // Not 0: all nodes of this number take their kernels from one loaded image
  // (its module has state, so there can be no second copy), and get the same
  // prologue. 0: each prologue has an image of its own.
  uint32_t shared_image = 0;
};

// `type` and the ports as in CUgraphEdgeData.
struct Edge {
  uint32_t from = 0;  // indices into Graph::nodes
  uint32_t to = 0;
  uint8_t type = 0;
  uint8_t from_port = 0;
  uint8_t to_port = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Edge& edge) {
    return H::combine(std::move(h), edge.from, edge.to, edge.type,
                      edge.from_port, edge.to_port);
  }
};

inline constexpr uint8_t kTypeDefault = 0;  // CU_GRAPH_DEPENDENCY_TYPE_…
inline constexpr uint8_t kTypeProgrammatic = 1;
inline constexpr uint8_t kPortDefault = 0;  // CU_GRAPH_KERNEL_NODE_PORT_…
inline constexpr uint8_t kPortProgrammatic = 1;
inline constexpr uint8_t kPortLaunchOrder = 2;

// Nodes in any order; the edges must not form a cycle, and there is at most one
// between two nodes.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

enum class Style : uint8_t {
  // Programmatic edges, prologue kTriggerWait: consumers come as soon as all
  // blocks of their producers have started.
  kProgrammaticEarly,
  // Programmatic edges, prologue kWaitTrigger: consumers come one kernel ahead,
  // no more.
  kProgrammatic,
  // Launch-order edges where the blocks provably fit on the device together
  // (prologue kWait), programmatic ones with kWaitTrigger elsewhere.
  kLaunchOrder,
};

struct OverlapPlan {
  std::vector<cubin::Prologue> prologue;  // per node
  std::vector<Edge> edges;    // those of the graph, in its order, converted
  uint32_t converted = 0;     // edges that are no longer full
  uint32_t launch_order = 0;  // those of them that use the launch-order port
  // What stayed as it was and why, one line a reason with a count. For people.
  std::vector<std::string> notes;
};

// Converts as many edges as the rules in overlap.cc allow. InvalidArgument if
// `graph` is none: an index out of range, a cycle, two edges between the same
// nodes, edge data that cuda.h does not allow. Never needs the device's limits
// for anything but Style::kLaunchOrder.
absl::StatusOr<OverlapPlan> PlanOverlap(const Graph& graph, Style style,
                                        const DeviceLimits& limits);

// Refuses (FailedPrecondition, naming the nodes) a rewritten graph in which
// some kernel's body could run before something that it had to follow in
// `original` is complete and visible, or in which the program's own overlap is
// no longer as the program wrote it; InvalidArgument for what is no graph.
// Independent of PlanOverlap; to be run on every plan before it is used. Does
// not judge forward progress: that is CheckResidency.
absl::Status CheckOrder(const Graph& original, const OverlapPlan& plan);

// Whether all blocks of `producer` can be placed although every block of every
// one of `consumers` is resident and holds its place, wherever those are
// (PITFALLS 40): the proof that launch-order edges need. True means proved;
// false, that this rule cannot prove it.
bool FitTogether(const BlockNeeds& producer,
                 absl::Span<const BlockNeeds> consumers,
                 const DeviceLimits& limits);

// CheckOrder, and then: refuses (FailedPrecondition) a rewritten graph whose
// waiting blocks could keep the blocks that they wait for off the device. Looks
// at all launch-order edges; a graph in which only the program's own ones let
// blocks wait early is left to the program.
absl::Status CheckResidency(const Graph& original, const OverlapPlan& plan,
                            const DeviceLimits& limits);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_OVERLAP_H_
