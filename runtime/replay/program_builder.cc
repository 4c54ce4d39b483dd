// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/program_builder.h"

#include <cuda.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

// Keys of stream-ordered frees among the events: never a canonical address.
constexpr uint64_t kFreeEvent = uint64_t{1} << 62;

}  // namespace

void ProgramBuilder::Warn(const std::string& text) {
  if (warned_.insert(text).second) program_.warnings.push_back(text);
}

StreamRef ProgramBuilder::Stream(const fb::Stamp* stamp,
                                 uint64_t handle) const {
  if (stamp == nullptr) return StreamRef{0, handle, 0};
  return StreamRef{stamp->context(), handle, stamp->thread()};
}

bool ProgramBuilder::IsDevice(uint64_t address) const {
  return memory_.IsDevice(address) || modules_.FindVariable(address) != nullptr;
}

absl::Status ProgramBuilder::Visit(const trace::Record& record, Part part) {
  part_ = part;
  record_ = record.index;
  if (part != Part::kBefore && !started_) {
    started_ = true;
    live_at_start_ = memory_.blocks();
    host_blocks_ = memory_.blocks();
    std::erase_if(host_blocks_, [](const auto& entry) {
      return entry.second.kind != fb::MemoryKind::kHost;
    });
  }
  if (absl::Status s = VisitState(record); !s.ok()) return s;
  if (absl::Status s = VisitOrder(record); !s.ok()) return s;
  if (part == Part::kBefore) return OnModuleState(record);
  absl::Status work = VisitWork(record);
  if (work.ok()) return work;
  return absl::Status(
      work.code(), absl::StrCat("record ", record.index, ": ", work.message()));
}

absl::Status ProgramBuilder::VisitState(const trace::Record& record) {
  if (const auto* r = record.As<fb::Context>()) {
    contexts_[r->id()] = r;
  } else if (const auto* r = record.As<fb::Device>()) {
    devices_[r->ordinal()] = r;
  } else if (const auto* r = record.As<fb::Image>()) {
    modules_.Observe(*r);
  } else if (const auto* r = record.As<fb::Module>()) {
    modules_.Observe(*r);
  } else if (const auto* r = record.As<fb::Kernel>()) {
    modules_.Observe(*r);
  } else if (const auto* r = record.As<fb::KernelAttribute>()) {
    modules_.Observe(*r);
  } else if (const auto* r = record.As<fb::Global>()) {
    modules_.Observe(*r);
  } else if (const auto* r = record.As<fb::Graph>()) {
    graphs_.Observe(*r);
  } else if (const auto* r = record.As<fb::GraphExec>()) {
    graphs_.Observe(*r);
  } else if (const auto* r = record.As<fb::Alloc>()) {
    return OnAlloc(*r);
  } else if (const auto* r = record.As<fb::Free>()) {
    OnFree(*r);
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::VisitOrder(const trace::Record& record) {
  if (const auto* r = record.As<fb::Stream>()) {
    const StreamRef stream = Stream(r->stamp(), r->handle());
    if (r->op() == fb::StreamOp::kCreate) {
      order_.CreateStream(stream, r->flags(), r->priority());
    } else {
      order_.DestroyStream(stream);
    }
    return absl::OkStatus();
  }
  if (part_ != Part::kStep) return absl::OkStatus();
  if (const auto* r = record.As<fb::Event>()) {
    if (r->capturing()) return absl::OkStatus();
    const StreamRef stream = Stream(r->stamp(), r->stream());
    switch (r->op()) {
      case fb::EventOp::kCreate:
      case fb::EventOp::kDestroy:
        order_.CreateEvent(r->handle());
        break;
      case fb::EventOp::kRecord:
        order_.RecordEvent(r->handle(), stream);
        break;
      case fb::EventOp::kWait:
        order_.WaitEvent(r->handle(), stream);
        break;
    }
  } else if (const auto* r = record.As<fb::Sync>()) {
    if (r->status() != 0) return absl::OkStatus();  // nothing was seen to end
    const StreamRef stream = Stream(r->stamp(), r->handle());
    switch (r->op()) {
      case fb::SyncOp::kContext:
        order_.SyncContext(stream.context);
        break;
      case fb::SyncOp::kStream:
        order_.SyncStream(stream);
        break;
      case fb::SyncOp::kEvent:
        order_.SyncEvent(r->handle());
        break;
      case fb::SyncOp::kQuery:  // of either: the record does not say
        if (order_.HasEvent(r->handle())) {
          order_.SyncEvent(r->handle());
        } else {
          order_.SyncStream(stream);
        }
        break;
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnAlloc(const fb::Alloc& alloc) {
  if (absl::Status s = memory_.Add(alloc); !s.ok()) return s;
  if (!started_ || alloc.address() == 0 || alloc.size() == 0) {
    return absl::OkStatus();
  }
  if (alloc.kind() == fb::MemoryKind::kHost) {
    host_blocks_[alloc.address()] =
        LiveMemory::Block{alloc.size(), alloc.kind(), alloc.device_address()};
    return absl::OkStatus();
  }
  program_.allocations.push_back(
      {alloc.address(), alloc.size(), alloc.kind(), true});
  if (part_ == Part::kStep && alloc.kind() == fb::MemoryKind::kAsync) {
    const StreamRef stream = Stream(alloc.stamp(), alloc.stream());
    for (const AsyncFree& free : async_frees_) {
      if (free.address < alloc.address() + alloc.size() &&
          alloc.address() < free.address + free.size) {
        order_.WaitEvent(free.event, stream);
      }
    }
  }
  return absl::OkStatus();
}

void ProgramBuilder::OnFree(const fb::Free& free) {
  const auto block = memory_.Find(free.address());
  const uint64_t size =
      block == memory_.blocks().end() ? free.size() : block->second.size;
  memory_.Remove(free);
  if (part_ != Part::kStep) return;
  if (free.kind() == fb::MemoryKind::kAsync) {
    const uint64_t event = kFreeEvent + async_frees_.size();
    order_.RecordEvent(event, Stream(free.stamp(), free.stream()));
    async_frees_.push_back({free.address(), size, event});
  } else if (free.kind() == fb::MemoryKind::kDevice ||
             free.kind() == fb::MemoryKind::kHost ||
             free.kind() == fb::MemoryKind::kManaged) {
    // cuMemFree and cuMemFreeHost wait for the device.
    order_.SyncContext(free.stamp() == nullptr ? 0 : free.stamp()->context());
  }
}

absl::Status ProgramBuilder::UseContext(uint32_t context) {
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return absl::OkStatus();  // not known
  const int device = found->second->device();
  if (device_ == -1) {
    device_ = device;
    if (const auto d = devices_.find(device); d != devices_.end()) {
      program_.compute_major = d->second->compute_major();
      program_.compute_minor = d->second->compute_minor();
      program_.device_memory = d->second->total_memory();
      if (d->second->name() != nullptr) {
        program_.device_name = d->second->name()->str();
      }
    }
  }
  if (device_ != device) {
    return absl::UnimplementedError(absl::StrCat(
        "the step runs on devices ", device_, " and ", device,
        ": replay knows one device; record one rank, or choose another step"));
  }
  return absl::OkStatus();
}

// Only kernels have ports, and only kernels resolve programmatic edges; a node
// that was switched off has become something else. One edge a pair.
void CheckPorts(const OperationList& list, Operation& operation) {
  std::vector<Dependency> checked;
  for (Dependency d : operation.dependencies) {
    if (operation.launch() == nullptr ||
        list.operations[d.from].launch() == nullptr) {
      d = {d.from, 0, 0};
    }
    const auto same =
        std::find_if(checked.begin(), checked.end(),
                     [&](const Dependency& c) { return c.from == d.from; });
    if (same == checked.end()) {
      checked.push_back(d);
    } else if (*same != d) {
      *same = {d.from, 0, 0};
    }
  }
  operation.dependencies = std::move(checked);
}

uint32_t ProgramBuilder::Append(Operation operation, const StreamRef& stream) {
  operation.record = record_;
  operation.lane = order_.LaneOf(stream);
  OperationList& target = list();
  CheckPorts(target, operation);
  const uint32_t index = static_cast<uint32_t>(target.operations.size());
  if (part_ == Part::kStep) {
    order_.Add(index, operation.launch() != nullptr, operation.dependencies);
    if (const LaunchWork* launch = operation.launch()) {
      for (const LaunchEvent& event : LaunchEvents(*launch)) {
        order_.RecordEventAt(event.event, {index, event.port, event.type});
      }
    }
  }
  target.operations.push_back(std::move(operation));
  return index;
}

uint32_t ProgramBuilder::Submit(Operation operation, const StreamRef& stream) {
  if (part_ == Part::kStep) {
    const LaunchWork* launch = operation.launch();
    operation.dependencies =
        order_.Before(stream, launch != nullptr,
                      launch != nullptr && SerializedEarly(*launch));
  }
  const uint32_t index = Append(std::move(operation), stream);
  if (part_ == Part::kStep) order_.Advance(stream, {{index, 0, 0}});
  return index;
}

absl::Status ProgramBuilder::VisitWork(const trace::Record& record) {
  if (const auto* r = record.As<fb::Launch>()) return OnLaunch(*r);
  if (const auto* r = record.As<fb::Memcpy>()) return OnMemcpy(*r);
  if (const auto* r = record.As<fb::Memset>()) return OnMemset(*r);
  if (const auto* r = record.As<fb::MemOp>()) return OnMemOp(*r);
  if (const auto* r = record.As<fb::GraphLaunch>()) return OnGraphLaunch(*r);
  if (const auto* r = record.As<fb::HostFunc>()) {
    if (r->capturing()) return absl::OkStatus();
    Submit(MakeSkipped(*r), Stream(r->stamp(), r->stream()));
  } else if (const auto* r = record.As<fb::Unsupported>()) {
    Warn(absl::StrCat(
        "the program called ",
        r->api() == nullptr ? std::string("something") : r->api()->str(),
        ", which the recorder does not understand: the replay lacks it"));
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnLaunch(const fb::Launch& launch) {
  if (launch.capturing() || launch.status() != 0) return absl::OkStatus();
  absl::StatusOr<Operation> operation = MakeLaunch(launch);
  if (!operation.ok()) return operation.status();
  const fb::Stamp& stamp = launch.head()->stamp();
  if (absl::Status s = UseContext(stamp.context()); !s.ok()) return s;
  Submit(*std::move(operation), Stream(&stamp, launch.head()->stream()));
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnMemcpy(const fb::Memcpy& copy) {
  if (copy.capturing() || copy.status() != 0) return absl::OkStatus();
  absl::StatusOr<Operation> operation = MakeCopy(copy);
  if (!operation.ok()) return operation.status();
  const StreamRef stream = Stream(copy.stamp(), copy.stream());
  if (absl::Status s = UseContext(stream.context); !s.ok()) return s;
  const CopyWork* work = operation->copy();
  // The host goes on when such a copy is complete, and so knows it: the
  // synchronous forms, and copies to memory that is not pinned.
  const bool to_host = work != nullptr && work->dst.host;
  const bool from_host = work != nullptr && work->src.host;
  const bool pageable = to_host && !memory_.IsHost(copy.dst());
  const bool waits = (!copy.async() && (to_host || from_host)) || pageable;
  const uint32_t index = Submit(*std::move(operation), stream);
  if (part_ == Part::kStep && waits) order_.SyncOperation(index);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnMemset(const fb::Memset& fill) {
  if (fill.capturing() || fill.status() != 0) return absl::OkStatus();
  absl::StatusOr<Operation> operation = MakeFill(fill);
  if (!operation.ok()) return operation.status();
  const StreamRef stream = Stream(fill.stamp(), fill.stream());
  if (absl::Status s = UseContext(stream.context); !s.ok()) return s;
  Submit(*std::move(operation), stream);
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnMemOp(const fb::MemOp& memop) {
  if (memop.capturing()) return absl::OkStatus();
  absl::StatusOr<std::vector<Operation>> operations = MakeMemOp(memop);
  if (!operations.ok()) return operations.status();
  for (Operation& operation : *operations) {
    Submit(std::move(operation), Stream(memop.stamp(), memop.stream()));
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::OnGraphLaunch(const fb::GraphLaunch& launch) {
  if (launch.capturing() || launch.status() != 0) return absl::OkStatus();
  const StreamRef stream = Stream(launch.stamp(), launch.stream());
  if (absl::Status s = UseContext(stream.context); !s.ok()) return s;
  absl::StatusOr<std::vector<ExpandedNode>> nodes =
      graphs_.Expand(launch.exec(), launch.graph());
  if (!nodes.ok()) return nodes.status();
  if (nodes->empty()) return absl::OkStatus();
  Frontier before;
  if (part_ == Part::kStep) before = order_.Before(stream, false, false);
  std::vector<uint32_t> last(nodes->size());  // operation of each node
  for (size_t i = 0; i < nodes->size(); ++i) {
    const ExpandedNode& node = (*nodes)[i];
    std::vector<Operation> operations;
    if (absl::Status s = FromNode(node, operations); !s.ok()) {
      return absl::Status(
          s.code(), absl::StrCat("graph node ", node.index, ": ", s.message()));
    }
    Frontier dependencies;
    for (const Dependency& d : node.dependencies) {
      dependencies.push_back({last[d.from], d.port, d.type});
    }
    if (dependencies.empty()) dependencies = before;
    const bool waits_for_event =
        node.node != nullptr &&
        node.node->type() == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    if (waits_for_event && part_ == Part::kStep) {
      for (Dependency d : order_.EventFrontier(node.node->event())) {
        dependencies.push_back({d.from, 0, 0});
      }
    }
    for (Operation& operation : operations) {
      operation.node = node.index;
      operation.dependencies = std::move(dependencies);
      last[i] = Append(std::move(operation), stream);
      dependencies = {{last[i], 0, 0}};
    }
    if (node.node != nullptr && part_ == Part::kStep &&
        node.node->type() == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      order_.RecordEventAt(node.node->event(), {last[i], 0, 0});
    }
  }
  Frontier ends = LastNodes(*nodes, 0);
  for (Dependency& end : ends) end.from = last[end.from];
  if (ends.size() > 1) {
    Operation join;
    join.label = "end of graph launch";
    join.work = EmptyWork{.joins = true};
    join.dependencies = std::move(ends);
    ends = {{Append(std::move(join), stream), 0, 0}};
  }
  if (part_ == Part::kStep) order_.Advance(stream, ends);
  return absl::OkStatus();
}

}  // namespace heddle::replay
