// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/optimizer.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/live/gate.h"
#include "runtime/record/log.h"

namespace heddle::live {
namespace {

using record::Log;
using record::LogLevel;

constexpr std::chrono::milliseconds kGatePatience{200};
// So many graphs in a row that ended before their trials did.
constexpr uint32_t kShortLivedLimit = 32;
constexpr uint64_t kMostHostBytes = uint64_t{1} << 30;

// Sorted blocks, and which of them were hit by a pointer.
class BlockFinder {
 public:
  explicit BlockFinder(std::vector<record::MemoryBlock> blocks)
      : blocks_(std::move(blocks)), hit_(blocks_.size(), false) {}

  void Mark(uint64_t pointer) {
    auto it =
        std::upper_bound(blocks_.begin(), blocks_.end(), pointer,
                         [](uint64_t value, const record::MemoryBlock& block) {
                           return value < block.address;
                         });
    if (it == blocks_.begin()) return;
    --it;
    if (pointer - it->address < it->size) {
      hit_[static_cast<size_t>(it - blocks_.begin())] = true;
    }
  }
  // Parameters may be packed without alignment inside a structure.
  void MarkAll(absl::Span<const uint8_t> bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 4) {
      uint64_t value;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      Mark(value);
    }
  }
  const std::vector<record::MemoryBlock>& blocks() const { return blocks_; }
  bool hit(size_t i) const { return hit_[i]; }

 private:
  std::vector<record::MemoryBlock> blocks_;
  std::vector<bool> hit_;
};

// Whether `device` can read `block`. A trial must not touch what another device
// owns or nobody may access yet: a kernel that did would end the context.
bool IsReadable(const device::Driver& driver, CUdevice device,
                const record::MemoryBlock& block) {
  if (block.kind == fb::MemoryKind::kManaged) return true;
  if (block.kind == fb::MemoryKind::kMapped) {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    unsigned long long access = 0;
    return driver.MemGetAccess != nullptr &&
           driver.MemGetAccess(&access, &location, block.address) ==
               CUDA_SUCCESS &&
           access != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  int owner = -1;
  return driver.PointerGetAttribute != nullptr &&
         driver.PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    block.address) == CUDA_SUCCESS &&
         owner == device;
}

std::unique_ptr<cubin::PatchCache> OpenCache() {
  const std::string folder = cubin::PatchCache::DefaultFolder();
  return folder.empty() ? nullptr : cubin::PatchCache::Open(folder);
}

}  // namespace

std::atomic<Optimizer*> Optimizer::current_{nullptr};

Optimizer::Optimizer(LiveOptions options, device::Driver driver,
                     CtxRecordEventFn record_event)
    : options_(std::move(options)),
      cache_(OpenCache()),
      code_(trial_.driver, cache_.get()),
      modules_(trial_.driver, cache_.get()),
      accesses_(trial_.driver, &code_, &memory_) {
  trial_.driver = std::move(driver);
  trial_.record_event = record_event;
  trial_.options = &options_;
  trial_.code = &code_;
  trial_.modules = &modules_;
  trial_.accesses = &accesses_;
  trial_.reachable = [this](const rewrite::GraphModel& model, uint64_t limit) {
    return Reachable(model, limit);
  };
}

void Optimizer::Start(LiveOptions options, device::Driver driver,
                      CtxRecordEventFn record_event) {
  // Never freed: hooks may run until the process is gone.
  current_.store(
      new Optimizer(std::move(options), std::move(driver), record_event),
      std::memory_order_release);
}

void Optimizer::Fail(absl::string_view what) {
  if (current_.exchange(nullptr) == nullptr) return;
  Log(LogLevel::kError,
      absl::StrCat("internal error: ", what,
                   "; the program's graphs are no longer rewritten"));
}

void Optimizer::LeaveChild() {
  current_.store(nullptr);
  Gate::Get().ResetAfterFork();
}

void Optimizer::Finish() {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  for (auto& [exec, graph] : graphs_) {
    std::lock_guard<std::mutex> graph_lock(graph->mutex());
    graph->Finish();
  }
  const LoadedCode::Cost cost = code_.cost();
  Log(LogLevel::kInfo,
      absl::StrCat(cost.images, " images were loaded, ", cost.replaced,
                   " of them replaced; looking at them took ",
                   cost.nanoseconds / 1000000, " ms; patching for graphs ",
                   modules_.spent_ns() / 1000000, " ms"));
}

void Optimizer::SharesMemory(const char* api) {
  shares_memory_.store(api, std::memory_order_relaxed);
}

absl::StatusOr<std::vector<MemoryRange>> Optimizer::Reachable(
    const rewrite::GraphModel& model, uint64_t limit) {
  if (const char* api = shares_memory_.load(std::memory_order_relaxed)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the program shares memory with others (", api, ")"));
  }
  BlockFinder finder(memory_.Blocks());
  std::vector<const rewrite::DeviceCode*> images;
  for (const rewrite::GraphNode& node : model.nodes) {
    finder.MarkAll(node.launch.bytes());
    if (node.source.code != nullptr && node.source.code->has_variables) {
      images.push_back(node.source.code.get());
    }
    for (const uint64_t pointer : node.pointers) finder.Mark(pointer);
  }
  CUdevice device = 0;
  if (absl::Status status = trial_.driver.Check(
          trial_.driver.CtxGetDevice(&device), "cuCtxGetDevice");
      !status.ok()) {
    return status;
  }
  uint64_t total = 0;
  std::vector<bool> readable(finder.blocks().size());
  for (size_t i = 0; i < finder.blocks().size(); ++i) {
    const record::MemoryBlock& block = finder.blocks()[i];
    if (block.kind == fb::MemoryKind::kHost) continue;
    readable[i] = IsReadable(trial_.driver, device, block);
    if (readable[i]) {
      total += block.size;
    } else if (finder.hit(i)) {
      return absl::FailedPreconditionError(
          "it has pointers to memory that this device cannot read");
    }
  }
  // All device memory if that is possible: kernels also follow pointers that
  // they find in memory.
  const bool all = total <= limit;
  std::vector<MemoryRange> ranges;
  uint64_t host_bytes = 0;
  for (size_t i = 0; i < finder.blocks().size(); ++i) {
    const record::MemoryBlock& block = finder.blocks()[i];
    const bool host = block.kind == fb::MemoryKind::kHost;
    if (!finder.hit(i) && (host || !all || !readable[i])) continue;
    if (host) host_bytes += block.size;
    ranges.push_back({block.address, block.size, host});
  }
  if (host_bytes > kMostHostBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the graph may write ", host_bytes >> 20, " MiB of host memory"));
  }
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());
  for (const rewrite::DeviceCode* image : images) {
    for (const LoadedCode::Variable& variable : code_.VariablesOf(*image)) {
      ranges.push_back({variable.address, variable.size, false});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) {
              return a.address < b.address;
            });
  std::vector<MemoryRange> disjoint;
  for (const MemoryRange& range : ranges) {
    if (!disjoint.empty() &&
        range.address < disjoint.back().address + disjoint.back().size) {
      continue;  // two containers of one image; managed memory seen twice
    }
    disjoint.push_back(range);
  }
  return disjoint;
}

void Optimizer::MemoryGoes(uint64_t address) {
  const uint64_t size = memory_.Remove(address);
  if (size == 0 || !asks_for_accesses()) return;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  for (auto& [exec, graph] : graphs_) {
    if (graph->settled() == exec) continue;
    std::lock_guard<std::mutex> graph_lock(graph->mutex());
    graph->MemoryGoes({address, size});
  }
}

void Optimizer::AskedForVariable(uint64_t container) {
  if (!code_.SawVariable(container)) return;
  // Rewritten graphs may run copies of its kernels, whose constants the program
  // is about to change without them. Which graphs those are is not worth
  // keeping: programs ask at their start.
  std::shared_lock<std::shared_mutex> lock(mutex_);
  for (auto& [exec, graph] : graphs_) {
    std::lock_guard<std::mutex> graph_lock(graph->mutex());
    if (graph->settled() != exec && graph->has_forms()) {
      graph->KeepOriginal("the program asked where variables of a module are");
    }
  }
}

void Optimizer::Instantiated(CUgraphExec exec, CUgraph graph, uint64_t flags) {
  const device::Driver& driver = trial_.driver;
  {
    // The handle may be that of a graph whose end was not seen.
    std::unique_lock<std::shared_mutex> lock(mutex_);
    graphs_.erase(exec);
  }
  if (gave_up_.load(std::memory_order_relaxed) ||
      driver.GraphClone == nullptr) {
    return;
  }
  const uint64_t number = next_graph_.fetch_add(1);
  CUgraph copy = nullptr;
  if (driver.GraphClone(&copy, graph) != CUDA_SUCCESS) {
    GraphReport report;
    report.graph = number;
    report.outcome =
        "it cannot be cloned (memory allocation or conditional "
        "nodes)";
    Publish(report, options_.report_path);
    return;
  }
  auto live = std::make_shared<LiveGraph>(trial_, exec, copy, flags, number);
  std::unique_lock<std::shared_mutex> lock(mutex_);
  graphs_[exec] = std::move(live);
}

std::shared_ptr<LiveGraph> Optimizer::Find(CUgraphExec exec) {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto it = graphs_.find(exec);
  return it == graphs_.end() ? nullptr : it->second;
}

void Optimizer::Updated(CUgraphExec exec, CUgraph graph) {
  const std::shared_ptr<LiveGraph> live = Find(exec);
  if (live == nullptr || live->settled() == exec) return;
  CUgraph copy = nullptr;
  std::lock_guard<std::mutex> lock(live->mutex());
  if (trial_.driver.GraphClone(&copy, graph) != CUDA_SUCCESS) {
    live->KeepOriginal("updated to a graph that cannot be cloned");
    return;
  }
  live->UpdatedFrom(copy);
}

void Optimizer::Destroyed(CUgraphExec exec) {
  std::shared_ptr<LiveGraph> live;
  {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto it = graphs_.find(exec);
    if (it == graphs_.end()) return;
    live = std::move(it->second);
    graphs_.erase(it);
  }
  std::lock_guard<std::mutex> lock(live->mutex());
  if (live->settled() == nullptr) {
    if (short_lived_.fetch_add(1) + 1 >= kShortLivedLimit &&
        !gave_up_.exchange(true)) {
      Log(LogLevel::kInfo,
          absl::StrCat("the program made ", kShortLivedLimit,
                       " graphs in a row that it launched too seldom to gain "
                       "from rewriting; new graphs are left alone"));
    }
  } else {
    short_lived_.store(0);
  }
  live->Finish();
}

int Optimizer::UseOwnGraphs(bool own) {
  own_graphs_.store(own, std::memory_order_relaxed);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  int rewritten = 0;
  for (const auto& [exec, graph] : graphs_) {
    const CUgraphExec use = graph->settled();
    if (use != nullptr && use != exec) ++rewritten;
  }
  return rewritten;
}

CUresult Optimizer::Launch(CUgraphExec exec, CUstream stream) {
  const device::Driver& driver = trial_.driver;
  const std::shared_ptr<LiveGraph> live = Find(exec);
  if (live == nullptr) return driver.GraphLaunch(exec, stream);
  const bool capturing = captures_.load(std::memory_order_acquire) > 0;
  if (capturing) {
    // The program may look at what it captures: its own graph.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver.StreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_NONE) {
      return driver.GraphLaunch(exec, stream);
    }
  }
  if (live->settled() != nullptr) {
    return live->Launch(own_graphs_.load(std::memory_order_relaxed), stream,
                        capturing);
  }
  // No trial while anything captures: it synchronizes, allocates and loads.
  if (capturing) return driver.GraphLaunch(exec, stream);
  std::unique_lock<std::mutex> lock(live->mutex(), std::try_to_lock);
  if (lock.owns_lock() && live->settled() == nullptr &&
      Gate::Get().Close(kGatePatience)) {
    struct OpenGate {
      ~OpenGate() { Gate::Get().Open(); }
    } open_gate;
    // A capture may have begun before the gate was closed.
    if (captures_.load(std::memory_order_acquire) == 0) {
      return live->Trial(stream);
    }
  }
  return live->settled() == nullptr
             ? driver.GraphLaunch(exec, stream)
             : live->Launch(false, stream, captures_.load() > 0);
}

}  // namespace heddle::live
