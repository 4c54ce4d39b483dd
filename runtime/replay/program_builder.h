// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_PROGRAM_BUILDER_H_
#define HEDDLE_RUNTIME_REPLAY_PROGRAM_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "heddle/trace.h"
#include "runtime/replay/graph_book.h"
#include "runtime/replay/live_memory.h"
#include "runtime/replay/module_book.h"
#include "runtime/replay/ordering.h"
#include "runtime/replay/program.h"
#include "runtime/replay/work.h"

namespace heddle::replay {

// Walks a trace once and collects what a replay of one step needs. The walk
// has three parts: before (only the state of the program is followed), prefix
// and step (work is collected too). See BuildProgram.
class ProgramBuilder {
 public:
  enum class Part { kBefore, kPrefix, kStep };

  explicit ProgramBuilder(Program& program) : program_(program) {}

  // Records come in file order.
  absl::Status Visit(const trace::Record& record, Part part);

  // Once all records were visited: host memory, module variables, checks.
  absl::Status Finish();

  // Memory that was live when the prefix began, and what came later.
  const std::map<uint64_t, LiveMemory::Block>& live_at_start() const {
    return live_at_start_;
  }

 private:
  absl::Status VisitState(const trace::Record& record);
  absl::Status VisitOrder(const trace::Record& record);
  absl::Status VisitWork(const trace::Record& record);

  absl::Status OnAlloc(const fb::Alloc& alloc);
  void OnFree(const fb::Free& free);
  absl::Status OnLaunch(const fb::Launch& launch);
  absl::Status OnMemcpy(const fb::Memcpy& copy);
  absl::Status OnMemset(const fb::Memset& fill);
  absl::Status OnMemOp(const fb::MemOp& memop);
  absl::Status OnGraphLaunch(const fb::GraphLaunch& launch);
  // Copies and fills of module variables before the prefix.
  absl::Status OnModuleState(const trace::Record& record);

  // The work of a graph node; `operations` gets one or more.
  absl::Status FromNode(const ExpandedNode& node,
                        std::vector<Operation>& operations);
  absl::StatusOr<Operation> MakeLaunch(const fb::Launch& launch);
  absl::StatusOr<Operation> MakeCopy(const fb::Memcpy& copy);
  absl::StatusOr<Operation> MakeFill(const fb::Memset& fill);
  absl::StatusOr<std::vector<Operation>> MakeMemOp(const fb::MemOp& memop);
  Operation MakeSkipped(const fb::HostFunc& function);

  // Puts `operation` at the end of `stream`, with dependencies.
  uint32_t Submit(Operation operation, const StreamRef& stream);
  // Puts it in the list with the dependencies that it has.
  uint32_t Append(Operation operation, const StreamRef& stream);
  OperationList& list() {
    return part_ == Part::kStep ? program_.step : program_.prefix;
  }

  absl::Status UseContext(uint32_t context);
  StreamRef Stream(const fb::Stamp* stamp, uint64_t handle) const;
  bool IsDevice(uint64_t address) const;
  void Warn(const std::string& text);

  absl::Status FindSharedHostMemory();
  absl::Status ResolveHostEnds();
  void CompactLanes(OperationList& list);

  Program& program_;
  Part part_ = Part::kBefore;
  uint64_t record_ = 0;
  bool started_ = false;
  ModuleBook modules_;
  GraphBook graphs_;
  LiveMemory memory_;
  OrderTracker order_;
  std::map<uint64_t, LiveMemory::Block> live_at_start_;
  // Host blocks seen at or after the start, and those the device reads.
  std::map<uint64_t, LiveMemory::Block> host_blocks_;
  absl::flat_hash_map<uint32_t, const fb::Context*> contexts_;
  absl::flat_hash_map<int, const fb::Device*> devices_;
  int device_ = -1;
  std::vector<Operation> module_state_;
  absl::flat_hash_set<std::string> warned_;
  // Stream-ordered frees inside the step: reuse of the memory on another
  // stream is ordered by the driver.
  struct AsyncFree {
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t event = 0;
  };
  std::vector<AsyncFree> async_frees_;
  // What the copies' host ends hold until ResolveHostEnds.
  std::vector<trace::Hash128> copy_data_;  // by CopyEnd::buffer
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_PROGRAM_BUILDER_H_
