// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_PROGRAM_H_
#define HEDDLE_RUNTIME_REPLAY_PROGRAM_H_

// One step of a trace as something that can be executed: images, kernels,
// memory, and operations with explicit dependencies. Pure data; nothing here
// touches a device. FORMAT: runtime/trace/trace.fbs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/replay/operation.h"
#include "runtime/replay/ordering.h"

namespace heddle::replay {

inline constexpr uint64_t kNoRecord = ~uint64_t{0};

struct ImageModule {
  uint32_t id = 0;       // Module.id
  bool library = false;  // loaded with cuLibraryLoadData
  fb::ImageKind kind = fb::ImageKind::kUnknown;
  trace::Hash128 hash;
  uint64_t size = 0;
  std::string origin;  // file it came from, for messages
};

struct KernelParam {
  uint32_t offset = 0;
  uint32_t size = 0;
};

struct Kernel {
  uint32_t id = 0;  // Kernel.id
  std::string name;
  uint32_t module = 0;  // index in Program::modules
  std::vector<KernelParam> params;
  uint32_t param_bytes = 0;
  // What the program had set by the end of the step, settable ones alone.
  struct Attribute {
    int id = 0;  // CUfunction_attribute
    int64_t value = 0;
  };
  std::vector<Attribute> attributes;
  std::optional<int> cache_config;  // CUfunc_cache
};

struct Allocation {
  uint64_t address = 0;
  uint64_t size = 0;
  fb::MemoryKind kind = fb::MemoryKind::kDevice;
  bool inside = false;  // allocated by the operations that are replayed
};

// Bytes that a replay has to start from.
struct Content {
  uint64_t address = 0;
  uint64_t size = 0;
  fb::FillKind fill = fb::FillKind::kZero;
  trace::Hash128 hash;
  fb::ScalarType likely = fb::ScalarType::kBytes;
  double mean = 0;
  double stddev = 0;
};

// A variable of a module: its address is the loader's choice in every process.
struct ModuleVariable {
  uint32_t module = 0;  // index in Program::modules
  std::string name;
  uint64_t address = 0;  // recorded
  uint64_t size = 0;
};

// Host memory of a copy, owned by the replay.
struct HostBuffer {
  uint64_t size = 0;
  bool output = false;         // device to host: compared by verify
  bool known = false;          // the trace has the bytes
  trace::Hash128 hash;         // of a blob, if `bytes` is empty
  std::vector<uint8_t> bytes;  // or the bytes themselves
};

// Operations and lanes of one part of the replay.
struct OperationList {
  std::vector<Operation> operations;
  std::vector<Lane> lanes;
};

struct Program {
  std::vector<ImageModule> modules;
  std::vector<Kernel> kernels;
  std::vector<ModuleVariable> variables;
  std::vector<Allocation> allocations;  // by address, overlaps possible
  std::vector<Content> content;         // initial, by address
  std::vector<HostBuffer> host_buffers;
  // From the snapshot (or the trace's beginning) to the step: run once, in
  // order, before anything is measured. Dependencies are not needed.
  OperationList prefix;
  OperationList step;

  uint64_t snapshot_record = kNoRecord;
  std::string memory_policy;  // of the snapshot
  // Every byte of memory is as recorded: nothing was described or unknown.
  bool exact = false;
  // Memory after the step as the program had it; empty if not recorded.
  std::vector<Content> after;

  int compute_major = 0;  // of the recorded device, 0 = unknown
  int compute_minor = 0;
  std::string device_name;
  uint64_t device_memory = 0;

  // What a reader of the result must know: skipped host functions, unknown
  // content, ...
  std::vector<std::string> warnings;
};

struct StepBounds {
  uint64_t first_record = 0;
  uint64_t end_record = 0;  // half open
  // Of the Snapshot to start from; kNoRecord: the last one before the work.
  uint64_t snapshot_record = kNoRecord;
};

// Errors: InvalidArgument (bounds, or a trace that contradicts itself),
// NotFound (a kernel, module or graph that the trace does not hold),
// Unimplemented (work that a replay cannot repeat; the message names it).
absl::StatusOr<Program> BuildProgram(const trace::Reader& reader,
                                     const StepBounds& bounds);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_PROGRAM_H_
