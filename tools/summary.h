// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_SUMMARY_H_
#define HEDDLE_TOOLS_SUMMARY_H_

// What a trace holds, in numbers: `heddle info`, and the line that `heddle
// record` ends with.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/trace/step_params.h"
#include "runtime/trace/steps.h"

namespace heddle::tools {

struct MemoryUse {
  uint64_t allocations = 0;
  uint64_t live = 0;  // bytes at the end
  uint64_t peak = 0;  // bytes
};

struct SnapshotUse {
  const fb::Snapshot* snapshot = nullptr;
  uint64_t record = 0;
  uint64_t ranges = 0;  // that are in the trace
  // Bytes of memory, by how they are described.
  uint64_t exact = 0;
  uint64_t zero = 0;
  uint64_t described = 0;
};

struct CopyUse {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

struct KernelUse {
  uint64_t launches = 0;  // run directly or by a graph
};

struct Summary {
  const fb::Process* process = nullptr;
  std::vector<const fb::Device*> devices;
  std::string end_reason;  // why recording ended early
  uint64_t end_ns = 0;     // last time stamp
  uint64_t threads = 0;
  uint64_t streams = 0;
  uint64_t contexts = 0;

  uint64_t images = 0;
  uint64_t image_bytes = 0;
  uint64_t stored_image_bytes = 0;
  uint64_t modules = 0;
  uint64_t kernels = 0;  // described

  uint64_t launches = 0;  // run by themselves
  uint64_t captured_launches = 0;
  uint64_t failed = 0;  // launches, copies, fills that the driver refused
  std::map<fb::MemcpyKind, CopyUse> copies;
  uint64_t fills = 0;
  uint64_t host_functions = 0;
  std::map<uint32_t, KernelUse> kernel_uses;  // by kernel id

  uint64_t graphs = 0;
  uint64_t graph_nodes = 0;
  uint64_t graph_instances = 0;
  uint64_t graph_launches = 0;
  uint64_t graph_kernels = 0;  // run by graphs

  std::map<fb::MemoryKind, MemoryUse> memory;
  uint64_t device_peak = 0;  // all kinds on the device together, bytes

  std::vector<SnapshotUse> snapshots;
  std::map<std::string, uint64_t> unsupported;  // calls by API function
  std::vector<const fb::Note*> notes;

  trace::StepList steps;
  trace::StepParams step_params;

  // Kernels run in each of equal parts of the time from 0 to end_ns.
  std::vector<uint64_t> timeline;
};

// `steps_by`: see trace::StepOptions.
absl::StatusOr<Summary> Summarize(const trace::Reader& reader,
                                  const std::string& steps_by);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_SUMMARY_H_
