// SPDX-License-Identifier: Apache-2.0
//
// ProgramBuilder: records and graph nodes into operations.

#include <cuda.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/program_builder.h"

namespace heddle::replay {

absl::StatusOr<Operation> ProgramBuilder::MakeLaunch(const fb::Launch& launch) {
  if (launch.head() == nullptr) {
    return absl::InvalidArgumentError("a launch without a head");
  }
  absl::StatusOr<uint32_t> kernel =
      modules_.UseKernel(launch.head()->kernel(), program_);
  if (!kernel.ok()) return kernel.status();
  absl::StatusOr<LaunchWork> work =
      ToLaunch(launch, program_.kernels[*kernel], *kernel);
  if (!work.ok()) return work.status();
  Operation operation;
  operation.label = program_.kernels[*kernel].name;
  operation.work = *std::move(work);
  return operation;
}

absl::StatusOr<Operation> ProgramBuilder::MakeCopy(const fb::Memcpy& copy) {
  absl::StatusOr<PendingCopy> pending =
      ToCopy(copy, [this](uint64_t address) { return IsDevice(address); });
  if (!pending.ok()) return pending.status();
  Operation operation;
  operation.label = Describe(pending->work);
  if (CopyBytes(pending->work) == 0) return operation;
  pending->work.src.buffer = static_cast<uint32_t>(copy_data_.size());
  copy_data_.push_back(pending->has_data ? pending->data : trace::Hash128{});
  operation.work = pending->work;
  return operation;
}

absl::StatusOr<Operation> ProgramBuilder::MakeFill(const fb::Memset& fill) {
  absl::StatusOr<FillWork> work = ToFill(fill);
  if (!work.ok()) return work.status();
  Operation operation;
  operation.label = Describe(*work);
  if (work->width * work->height != 0) operation.work = *std::move(work);
  return operation;
}

absl::StatusOr<std::vector<Operation>> ProgramBuilder::MakeMemOp(
    const fb::MemOp& memop) {
  absl::StatusOr<MemOpWork> work = ToMemOp(memop);
  if (!work.ok()) return work.status();
  std::vector<Operation> operations;
  for (const MemOpWork::Write& write : work->writes) {
    for (size_t offset = 0; offset < write.bytes.size(); offset += 4) {
      FillWork fill;
      fill.address = write.address + offset;
      std::memcpy(&fill.value, write.bytes.data() + offset, 4);
      fill.element_size = 4;
      fill.width = 1;
      Operation operation;
      operation.label = "stream write value";
      operation.work = fill;
      operations.push_back(std::move(operation));
    }
  }
  if (work->waits != 0 || operations.empty()) {
    Warn(
        "a stream waited for a value in memory: the replay keeps the order of "
        "the calls instead");
    Operation wait;
    wait.label = "stream wait value (not waited for)";
    operations.push_back(std::move(wait));
  }
  return operations;
}

Operation ProgramBuilder::MakeSkipped(const fb::HostFunc& function) {
  const std::string name =
      function.symbol() == nullptr || function.symbol()->size() == 0
          ? absl::StrCat("0x", absl::Hex(function.function()))
          : function.symbol()->str();
  Warn(absl::StrCat("host function ", name,
                    " is part of the program, not of the trace: skipped"));
  Operation operation;
  operation.label = absl::StrCat("host function ", name, " (skipped)");
  return operation;
}

absl::Status ProgramBuilder::FromNode(const ExpandedNode& node,
                                      std::vector<Operation>& operations) {
  operations.clear();
  if (node.node == nullptr) {
    operations.emplace_back();
    operations.back().label = "graph join";
    operations.back().work = EmptyWork{.joins = true};
    return absl::OkStatus();
  }
  const fb::GraphNode& n = *node.node;
  const auto missing = [&](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", what, " node without its parameters"));
  };
  const auto take = [&](absl::StatusOr<Operation> operation) {
    if (!operation.ok()) return operation.status();
    operations.push_back(*std::move(operation));
    return absl::OkStatus();
  };
  if (!n.understood()) {
    return absl::UnimplementedError(absl::StrCat(
        "a node of type ", n.type(),
        " that the recorder could not read: replay another step, or the "
        "program without this graph"));
  }
  switch (n.type()) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      if (n.launch() == nullptr) return missing("kernel");
      return take(MakeLaunch(*n.launch()));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (n.memcpy() == nullptr) return missing("memcpy");
      return take(MakeCopy(*n.memcpy()));
    case CU_GRAPH_NODE_TYPE_MEMSET:
      if (n.memset() == nullptr) return missing("memset");
      return take(MakeFill(*n.memset()));
    case CU_GRAPH_NODE_TYPE_HOST:
      if (n.host() == nullptr) return missing("host");
      operations.push_back(MakeSkipped(*n.host()));
      return absl::OkStatus();
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      if (n.memop() == nullptr) return missing("memory operation");
      absl::StatusOr<std::vector<Operation>> made = MakeMemOp(*n.memop());
      if (!made.ok()) return made.status();
      operations = *std::move(made);
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      if (n.alloc() == nullptr) return missing("memory allocation");
      if (absl::Status s = OnAlloc(*n.alloc()); !s.ok()) return s;
      [[fallthrough]];
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      operations.emplace_back();
      operations.back().label = "graph join";
      operations.back().work = EmptyWork{.joins = true};
      return absl::OkStatus();
    default:
      return absl::UnimplementedError(
          absl::StrCat("a node of type ", n.type(),
                       " cannot be replayed: conditional nodes and external "
                       "semaphores depend on state outside the trace"));
  }
}

}  // namespace heddle::replay
