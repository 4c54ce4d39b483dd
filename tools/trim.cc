// SPDX-License-Identifier: Apache-2.0
#include "tools/trim.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace heddle::tools {
namespace {

// Of an encoded tensor map (CUtensorMap).
constexpr size_t kTensorMapBytes = 128;
// Parameters are aligned to this at least.
constexpr size_t kParamAlignment = 8;

bool IsWork(fb::RecordType type) {
  switch (type) {
    case fb::RecordType::kLaunch:
    case fb::RecordType::kMemcpy:
    case fb::RecordType::kMemset:
    case fb::RecordType::kHostFunc:
    case fb::RecordType::kMemOp:
    case fb::RecordType::kGraphLaunch:
      return true;
    default:
      return false;
  }
}

// Work that was only recorded into a graph: the Graph record has it.
bool IsCaptured(const trace::Record& record) {
  switch (record.type) {
    case fb::RecordType::kLaunch:
      return record.As<fb::Launch>()->capturing();
    case fb::RecordType::kMemcpy:
      return record.As<fb::Memcpy>()->capturing();
    case fb::RecordType::kMemset:
      return record.As<fb::Memset>()->capturing();
    case fb::RecordType::kHostFunc:
      return record.As<fb::HostFunc>()->capturing();
    case fb::RecordType::kMemOp:
      return record.As<fb::MemOp>()->capturing();
    case fb::RecordType::kGraphLaunch:
      return record.As<fb::GraphLaunch>()->capturing();
    case fb::RecordType::kEvent:
      return record.As<fb::Event>()->capturing();
    case fb::RecordType::kCapture:
      return true;
    default:
      return false;
  }
}

class Trimmer {
 public:
  Trimmer(const trace::Reader& reader, const TrimRequest& request)
      : reader_(reader), request_(request) {
    plan_.keep.resize(reader.records().size());
  }

  TrimPlan Run() {
    FindDefinitions();
    ChooseSnapshot();
    KeepWork();
    KeepLiveState();
    KeepDefinitions();
    return std::move(plan_);
  }

 private:
  void Keep(const trace::Record& record) { plan_.keep[record.index] = true; }
  bool InWindow(uint64_t record) const {
    return record >= window_ && record < request_.end_record;
  }

  void FindDefinitions() {
    for (const trace::Record& record : reader_.records()) {
      if (const auto* graph = record.As<fb::Graph>(); graph != nullptr) {
        graphs_[graph->id()] = &record;
      } else if (const auto* map = record.As<fb::TensorMap>();
                 map != nullptr && map->bytes() != nullptr &&
                 map->bytes()->size() == kTensorMapBytes) {
        const absl::string_view bytes(
            reinterpret_cast<const char*>(map->bytes()->data()),
            kTensorMapBytes);
        tensor_maps_[bytes].push_back(record.index);
      }
    }
  }

  // The last one before the part's first work. One in the middle of the part
  // is of no use.
  void ChooseSnapshot() {
    window_ = request_.first_record;
    if (!request_.memory) return;
    for (const trace::Record& record : reader_.records()) {
      if (record.index >= request_.end_record) break;
      if (record.index >= request_.first_record && IsWork(record.type) &&
          request_.contains(record.index) && !IsCaptured(record)) {
        break;
      }
      const auto* snapshot = record.As<fb::Snapshot>();
      if (snapshot != nullptr &&
          snapshot->when() != fb::SnapshotWhen::kStepEnd) {
        plan_.snapshot_record = record.index;
      }
    }
    if (request_.prefix) {
      window_ =
          std::min(plan_.snapshot_record.value_or(0), request_.first_record);
    }
  }

  // The work of the part, and the order it is in.
  void KeepWork() {
    for (const trace::Record& record : reader_.records()) {
      if (record.index >= request_.end_record) break;
      FollowExec(record);
      if (!InWindow(record.index) || IsCaptured(record)) continue;
      const bool prefix = record.index < request_.first_record;
      if (!prefix && !request_.contains(record.index)) continue;
      switch (record.type) {
        case fb::RecordType::kEvent:
          // Creation and destruction are state.
          if (record.As<fb::Event>()->op() != fb::EventOp::kRecord &&
              record.As<fb::Event>()->op() != fb::EventOp::kWait) {
            continue;
          }
          break;
        case fb::RecordType::kSync:
        case fb::RecordType::kRange:
          break;
        default:
          if (!IsWork(record.type)) continue;
          ++(prefix ? plan_.prefix_operations : plan_.operations);
          break;
      }
      Keep(record);
      Need(record);
    }
  }

  // What a kept piece of work refers to.
  void Need(const trace::Record& record) {
    if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
      NeedLaunch(*launch);
    } else if (const auto* copy = record.As<fb::Memcpy>(); copy != nullptr) {
      NeedContent(copy->data());
    } else if (const auto* start = record.As<fb::GraphLaunch>();
               start != nullptr) {
      NeedGraph(start->graph());
      Exec& exec = execs_[start->exec()];
      if (!exec.needed) {
        exec.needed = true;
        for (const uint64_t event : exec.records) NeedExecEvent(event);
      }
    }
  }

  void NeedLaunch(const fb::Launch& launch) {
    if (launch.head() != nullptr) kernels_.insert(launch.head()->kernel());
    if (launch.params() == nullptr || tensor_maps_.empty()) return;
    const absl::string_view params(
        reinterpret_cast<const char*>(launch.params()->data()),
        launch.params()->size());
    for (size_t at = 0; at + kTensorMapBytes <= params.size();
         at += kParamAlignment) {
      const auto found = tensor_maps_.find(params.substr(at, kTensorMapBytes));
      if (found == tensor_maps_.end()) continue;
      // Encoded several times, one of them is enough.
      plan_.keep[found->second.front()] = true;
    }
  }

  void NeedContent(const fb::Hash128* hash) {
    if (hash == nullptr || !request_.memory) return;
    blobs_.insert({hash->lo(), hash->hi()});
  }

  void NeedNode(const fb::GraphNode& node) {
    if (node.launch() != nullptr) NeedLaunch(*node.launch());
    if (node.memcpy() != nullptr) NeedContent(node.memcpy()->data());
    if (node.child() != 0) NeedGraph(node.child());
  }

  void NeedGraph(uint32_t id) {
    const auto found = graphs_.find(id);
    if (found == graphs_.end() || plan_.keep[found->second->index]) return;
    Keep(*found->second);
    const auto* graph = found->second->As<fb::Graph>();
    if (graph->nodes() == nullptr) return;
    for (const fb::GraphNode* node : *graph->nodes()) NeedNode(*node);
  }

  void NeedExecEvent(uint64_t index) {
    plan_.keep[index] = true;
    const auto* event = reader_.records()[index].As<fb::GraphExec>();
    NeedGraph(event->graph());
    if (event->update() != nullptr) NeedNode(*event->update());
  }

  void FollowExec(const trace::Record& record) {
    const auto* event = record.As<fb::GraphExec>();
    if (event == nullptr) return;
    Exec& exec = execs_[event->handle()];
    if (event->op() == fb::GraphExecOp::kInstantiate) exec = Exec();
    exec.records.push_back(record.index);
    if (exec.needed) NeedExecEvent(record.index);
  }

  // Creations without a destruction before the window, by handle or address.
  void KeepLiveState() {
    absl::flat_hash_map<uint64_t, uint64_t> memory;
    absl::flat_hash_map<uint64_t, uint64_t> streams;
    absl::flat_hash_map<uint64_t, uint64_t> events;
    const auto follow = [this](auto& live, uint64_t key, bool create,
                               const trace::Record& record) {
      if (create) {
        live[key] = record.index;
      } else if (InWindow(record.index)) {
        Keep(record);
        // Live when the window began, or created in it.
        if (const auto found = live.find(key); found != live.end()) {
          plan_.keep[found->second] = true;
        }
        live.erase(key);
      } else {
        live.erase(key);
      }
    };
    for (const trace::Record& record : reader_.records()) {
      if (record.index >= request_.end_record) break;
      if (const auto* alloc = record.As<fb::Alloc>(); alloc != nullptr) {
        follow(memory, alloc->address(), true, record);
      } else if (const auto* free = record.As<fb::Free>(); free != nullptr) {
        follow(memory, free->address(), false, record);
      } else if (const auto* stream = record.As<fb::Stream>();
                 stream != nullptr) {
        follow(streams, stream->handle(), stream->op() == fb::StreamOp::kCreate,
               record);
      } else if (const auto* event = record.As<fb::Event>();
                 event != nullptr && (event->op() == fb::EventOp::kCreate ||
                                      event->op() == fb::EventOp::kDestroy)) {
        follow(events, event->handle(), event->op() == fb::EventOp::kCreate,
               record);
      }
    }
    for (const auto& live : {memory, streams, events}) {
      for (const auto& [key, index] : live) plan_.keep[index] = true;
    }
  }

  // Everything that is named by what is kept so far.
  void KeepDefinitions() {
    absl::flat_hash_set<uint32_t> modules;
    absl::flat_hash_set<uint32_t> images;
    for (const trace::Record& record : reader_.records()) {
      const auto* kernel = record.As<fb::Kernel>();
      if (kernel == nullptr || !kernels_.contains(kernel->id())) continue;
      Keep(record);
      modules.insert(kernel->module_id());
    }
    for (const trace::Record& record : reader_.records()) {
      const auto* module = record.As<fb::Module>();
      if (module == nullptr || !modules.contains(module->id())) continue;
      Keep(record);
      images.insert(module->image());
    }
    for (const trace::Record& record : reader_.records()) {
      KeepDefinition(record, modules, images);
    }
    for (const trace::Record& record : reader_.records()) {
      const auto* blob = record.As<fb::Blob>();
      if (blob == nullptr || blob->hash() == nullptr) continue;
      if (blobs_.contains({blob->hash()->lo(), blob->hash()->hi()})) {
        Keep(record);
      }
    }
  }

  void KeepDefinition(const trace::Record& record,
                      const absl::flat_hash_set<uint32_t>& modules,
                      const absl::flat_hash_set<uint32_t>& images) {
    const bool before_end = record.index < request_.end_record;
    switch (record.type) {
      case fb::RecordType::kProcess:
      case fb::RecordType::kDevice:
      case fb::RecordType::kContext:
      case fb::RecordType::kNote:
        return Keep(record);
      case fb::RecordType::kUnsupported:
        if (before_end) Keep(record);
        return;
      case fb::RecordType::kImage: {
        const auto* image = record.As<fb::Image>();
        if (!images.contains(image->id())) return;
        Keep(record);
        if (request_.images && image->hash() != nullptr) {
          blobs_.insert({image->hash()->lo(), image->hash()->hi()});
        }
        return;
      }
      case fb::RecordType::kModuleUnload:
        if (InWindow(record.index) &&
            modules.contains(record.As<fb::ModuleUnload>()->module_id())) {
          Keep(record);
        }
        return;
      case fb::RecordType::kKernelAttribute:
        if (before_end &&
            kernels_.contains(record.As<fb::KernelAttribute>()->kernel())) {
          Keep(record);
        }
        return;
      case fb::RecordType::kGlobal:
        if (before_end &&
            modules.contains(record.As<fb::Global>()->module_id())) {
          Keep(record);
        }
        return;
      case fb::RecordType::kSnapshot:
        if (IsWantedSnapshot(record)) {
          snapshots_.insert(record.As<fb::Snapshot>()->id());
          Keep(record);
        }
        return;
      case fb::RecordType::kMemoryRange: {
        const auto* range = record.As<fb::MemoryRange>();
        if (!snapshots_.contains(range->snapshot())) return;
        Keep(record);
        if (range->fill() == fb::FillKind::kExact) NeedContent(range->hash());
        return;
      }
      default:
        return;
    }
  }

  // The snapshot that the part starts from, and the one at its end, which a
  // replay compares with.
  bool IsWantedSnapshot(const trace::Record& record) const {
    if (!plan_.snapshot_record.has_value()) return false;
    if (record.index == *plan_.snapshot_record) return true;
    const auto* snapshot = record.As<fb::Snapshot>();
    const auto* begin =
        reader_.records()[*plan_.snapshot_record].As<fb::Snapshot>();
    return plan_.prefix_operations == 0 &&
           snapshot->when() == fb::SnapshotWhen::kStepEnd &&
           snapshot->step() == begin->step();
  }

  struct Exec {
    std::vector<uint64_t> records;  // since it was instantiated
    bool needed = false;
  };

  const trace::Reader& reader_;
  const TrimRequest& request_;
  TrimPlan plan_;
  uint64_t window_ = 0;  // work is kept from this record on

  absl::flat_hash_map<uint32_t, const trace::Record*> graphs_;
  absl::flat_hash_map<absl::string_view, std::vector<uint64_t>> tensor_maps_;
  absl::flat_hash_map<uint64_t, Exec> execs_;
  absl::flat_hash_set<uint32_t> kernels_;
  absl::flat_hash_set<uint32_t> snapshots_;
  absl::flat_hash_set<trace::Hash128> blobs_;
};

}  // namespace

TrimPlan PlanTrim(const trace::Reader& reader, const TrimRequest& request) {
  return Trimmer(reader, request).Run();
}

}  // namespace heddle::tools
