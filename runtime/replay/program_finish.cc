// SPDX-License-Identifier: Apache-2.0
//
// ProgramBuilder: what can only be settled when every record was seen.

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/replay/program_builder.h"

namespace heddle::replay {
namespace {

// Calls `visit(word)` for every aligned 8-byte word of the parameters.
template <typename Visit>
void ForEachWord(const LaunchWork& launch, Visit visit) {
  for (size_t at = 0; at + 8 <= launch.params.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, launch.params.data() + at, 8);
    visit(word);
  }
}

uint64_t DeviceAddressOf(
    const std::pair<const uint64_t, LiveMemory::Block>& b) {
  return b.second.device_address != 0 ? b.second.device_address : b.first;
}

}  // namespace

absl::Status ProgramBuilder::OnModuleState(const trace::Record& record) {
  // A variable that the program has set keeps its value in the module, which
  // a replay loads anew.
  if (const auto* r = record.As<fb::Memcpy>()) {
    if (r->capturing() || r->status() != 0 || r->data() == nullptr ||
        modules_.FindVariable(r->dst()) == nullptr) {
      return absl::OkStatus();
    }
    absl::StatusOr<Operation> operation = MakeCopy(*r);
    if (!operation.ok()) return operation.status();
    operation->record = record.index;
    module_state_.push_back(*std::move(operation));
  } else if (const auto* r = record.As<fb::Memset>()) {
    if (r->capturing() || r->status() != 0 ||
        modules_.FindVariable(r->dst()) == nullptr) {
      return absl::OkStatus();
    }
    absl::StatusOr<Operation> operation = MakeFill(*r);
    if (!operation.ok()) return operation.status();
    operation->record = record.index;
    module_state_.push_back(*std::move(operation));
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::FindSharedHostMemory() {
  absl::flat_hash_map<uint64_t, uint64_t> device_to_host;
  std::map<uint64_t, LiveMemory::Block> by_device;
  for (const auto& block : host_blocks_) {
    by_device[DeviceAddressOf(block)] = block.second;
    device_to_host[DeviceAddressOf(block)] = block.first;
  }
  absl::flat_hash_set<uint64_t> used;  // device addresses of blocks
  for (const OperationList* part : {&program_.prefix, &program_.step}) {
    for (const Operation& operation : part->operations) {
      if (operation.launch() == nullptr) continue;
      ForEachWord(*operation.launch(), [&](uint64_t word) {
        auto it = by_device.upper_bound(word);
        if (it == by_device.begin()) return;
        --it;
        if (word - it->first < it->second.size) used.insert(it->first);
      });
    }
  }
  uint64_t bytes = 0;
  std::map<uint64_t, LiveMemory::Block> shared;  // by host address
  for (const uint64_t address : used) {
    const LiveMemory::Block& block = by_device[address];
    if (block.size > ~uint64_t{0} - address) {
      return absl::InvalidArgumentError(
          absl::StrCat("host memory at 0x", absl::Hex(address),
                       " wraps around: the trace is damaged"));
    }
    program_.allocations.push_back(
        {address, block.size, fb::MemoryKind::kHost, false});
    LiveMemory::Block copy = block;
    copy.device_address = address;
    shared[device_to_host[address]] = copy;
    bytes += block.size;
  }
  host_blocks_ = std::move(shared);
  if (bytes != 0) {
    Warn(absl::StrCat(
        bytes,
        " bytes of pinned host memory are named in kernel parameters: "
        "replayed as device memory at the same address"));
  }
  return absl::OkStatus();
}

absl::Status ProgramBuilder::ResolveHostEnds() {
  uint64_t unknown = 0;
  const auto to_device = [&](CopyEnd& end) {
    auto it = host_blocks_.upper_bound(end.address);
    if (it == host_blocks_.begin()) return false;
    --it;
    if (end.address - it->first >= it->second.size) return false;
    end.address = it->second.device_address + (end.address - it->first);
    end.host = false;
    return true;
  };
  for (OperationList* part : {&program_.prefix, &program_.step}) {
    for (Operation& operation : part->operations) {
      CopyWork* copy = std::get_if<CopyWork>(&operation.work);
      if (copy == nullptr) continue;
      const trace::Hash128 data =
          copy->src.host ? copy_data_[copy->src.buffer] : trace::Hash128{};
      if (copy->src.host && data == trace::Hash128{}) to_device(copy->src);
      if (copy->dst.host) to_device(copy->dst);
      if (copy->src.host && copy->dst.host) {
        operation.work = EmptyWork{};  // between buffers of the program
        continue;
      }
      for (CopyEnd* end : {&copy->src, &copy->dst}) {
        if (!end->host) continue;
        HostBuffer buffer;
        buffer.size = CopyBytes(*copy);
        buffer.output = end == &copy->dst;
        if (!buffer.output) {
          buffer.hash = data;
          buffer.known = data != trace::Hash128{};
          if (!buffer.known) unknown += buffer.size;
        }
        end->buffer = static_cast<uint32_t>(program_.host_buffers.size());
        end->pitch = copy->width;
        end->slice = copy->width * copy->height;
        program_.host_buffers.push_back(std::move(buffer));
      }
    }
  }
  if (unknown != 0) {
    program_.exact = false;
    Warn(absl::StrCat(unknown,
                      " bytes that the program copied to the device were not "
                      "kept by the recorder: zeros are copied instead"));
  }
  return absl::OkStatus();
}

void ProgramBuilder::CompactLanes(OperationList& list) {
  absl::flat_hash_map<uint32_t, uint32_t> kept;
  for (Operation& operation : list.operations) {
    const auto [it, added] =
        kept.try_emplace(operation.lane, static_cast<uint32_t>(kept.size()));
    if (added) list.lanes.push_back(order_.lanes()[operation.lane]);
    operation.lane = it->second;
  }
}

absl::Status ProgramBuilder::Finish() {
  if (!started_) {
    // The step has no record at all; keep the memory for the error message.
    live_at_start_ = memory_.blocks();
  }
  for (const auto& [address, block] : live_at_start_) {
    if (block.kind == fb::MemoryKind::kHost) continue;
    program_.allocations.push_back({address, block.size, block.kind, false});
    if (block.kind == fb::MemoryKind::kIpc) {
      Warn(
          "memory of another process (CUDA IPC) is replayed as memory of its "
          "own, filled with zeros where the snapshot has no content");
    }
  }
  // Variables that the work names make their modules part of the replay.
  for (const OperationList* part : {&program_.prefix, &program_.step}) {
    for (const Operation& operation : part->operations) {
      absl::Status status;
      const auto use = [&](uint64_t address) {
        if (status.ok()) status = modules_.UseVariable(address, program_);
      };
      if (const LaunchWork* launch = operation.launch()) {
        ForEachWord(*launch, use);
      } else if (const CopyWork* copy = operation.copy()) {
        if (!copy->src.host) use(copy->src.address);
        if (!copy->dst.host) use(copy->dst.address);
      } else if (const FillWork* fill = operation.fill()) {
        use(fill->address);
      }
      if (!status.ok()) return status;
    }
  }
  if (absl::Status s = modules_.Finish(program_); !s.ok()) return s;
  std::vector<Operation> state;
  for (Operation& operation : module_state_) {
    const uint64_t address =
        operation.copy() != nullptr   ? operation.copy()->dst.address
        : operation.fill() != nullptr ? operation.fill()->address
                                      : 0;
    const bool used = std::any_of(
        program_.variables.begin(), program_.variables.end(),
        [&](const ModuleVariable& v) {
          return address >= v.address && address - v.address < v.size;
        });
    // Copies between device memory would read what is no longer there.
    const bool self_contained =
        operation.fill() != nullptr ||
        (operation.copy() != nullptr && operation.copy()->src.host);
    if (used && self_contained) state.push_back(std::move(operation));
  }
  if (!state.empty()) {
    // One stream in order: lanes and dependencies do not matter here.
    const uint32_t lane = order_.LaneOf(StreamRef{});
    for (Operation& operation : state) operation.lane = lane;
    auto& prefix = program_.prefix.operations;
    prefix.insert(prefix.begin(), std::make_move_iterator(state.begin()),
                  std::make_move_iterator(state.end()));
  }
  // The prefix runs in order.
  for (Operation& operation : program_.prefix.operations) {
    operation.dependencies.clear();
  }
  if (absl::Status s = FindSharedHostMemory(); !s.ok()) return s;
  if (absl::Status s = ResolveHostEnds(); !s.ok()) return s;
  CompactLanes(program_.prefix);
  CompactLanes(program_.step);
  std::sort(program_.allocations.begin(), program_.allocations.end(),
            [](const Allocation& a, const Allocation& b) {
              return std::tie(a.address, a.size) < std::tie(b.address, b.size);
            });
  return absl::OkStatus();
}

}  // namespace heddle::replay
