// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_OPERATION_H_
#define HEDDLE_RUNTIME_REPLAY_OPERATION_H_

// What a replay executes: the device work of a trace as plain values, free of
// FlatBuffers and of driver handles. Addresses are the recorded ones.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/trace.h"

namespace heddle::replay {

// An edge into an operation. `port` and `type` are those of CUgraphEdgeData:
// port 0 is the full completion of `from`, 1 its programmatic trigger, 2 its
// launch; type 1 is a dependency that griddepcontrol.wait resolves.
struct Dependency {
  uint32_t from = 0;  // index of the operation in the same list
  uint8_t port = 0;
  uint8_t type = 0;

  bool full() const { return port == 0 && type == 0; }
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct LaunchAttribute {
  uint32_t id = 0;             // CUlaunchAttributeID
  std::vector<uint8_t> value;  // 64 bytes: a CUlaunchAttributeValue
};

struct LaunchWork {
  uint32_t kernel = 0;  // index in Program::kernels
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<uint8_t> params;  // the parameter block, our own copy
  std::vector<LaunchAttribute> attributes;
  uint32_t slot = 0;  // of a bound program: which arguments are its
};

// One end of a copy: device memory at its recorded address, or a host buffer
// of the replay (rows packed without padding).
struct CopyEnd {
  bool host = false;
  uint64_t address = 0;  // device
  uint64_t pitch = 0;    // device, bytes between rows; height > 1 only
  uint64_t slice = 0;    // device, bytes between slices; depth > 1 only
  uint32_t buffer = 0;   // host: index in Program::host_buffers
};

struct CopyWork {
  CopyEnd dst;
  CopyEnd src;
  uint64_t width = 0;  // bytes in a row
  uint64_t height = 1;
  uint64_t depth = 1;
};

struct FillWork {
  uint64_t address = 0;
  uint32_t value = 0;
  uint32_t element_size = 1;  // 1, 2 or 4
  uint64_t width = 0;         // elements in a row
  uint64_t height = 1;
  uint64_t pitch = 0;  // bytes
};

// Work that keeps its place in the order and does nothing: joins of graph
// launches, event nodes, host functions (which a replay cannot call).
struct EmptyWork {
  // It is there for its dependencies alone, and nobody notices when it happens.
  bool joins = false;
};

struct Operation {
  uint64_t record = 0;  // index of the trace record it came from
  int32_t node = -1;    // of a graph launch: index of the node in its graph
  uint32_t lane = 0;    // index in Program::lanes
  std::string label;    // kernel name or "memcpy HtoD 4096 B", for people
  std::vector<Dependency> dependencies;
  std::variant<EmptyWork, LaunchWork, CopyWork, FillWork> work;

  const LaunchWork* launch() const { return std::get_if<LaunchWork>(&work); }
  const CopyWork* copy() const { return std::get_if<CopyWork>(&work); }
  const FillWork* fill() const { return std::get_if<FillWork>(&work); }
  bool empty() const { return std::holds_alternative<EmptyWork>(work); }
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_OPERATION_H_
