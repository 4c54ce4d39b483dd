// SPDX-License-Identifier: Apache-2.0
#include "tools/summary.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/trace/kernel_runs.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

constexpr size_t kTimelineParts = 64;

bool OnDevice(fb::MemoryKind kind) {
  return kind != fb::MemoryKind::kHost && kind != fb::MemoryKind::kIpc;
}

class Summarizer {
 public:
  explicit Summarizer(const trace::Reader& reader) : reader_(reader) {}

  Summary Run() {
    for (const trace::Record& record : reader_.records()) {
      graphs_.Follow(record);
      Visit(record);
    }
    summary_.threads = threads_.size();
    summary_.streams = streams_.size();
    summary_.timeline.resize(kTimelineParts);
    for (const auto& [time_ns, kernels] : work_times_) {
      const double share = summary_.end_ns == 0
                               ? 0
                               : static_cast<double>(time_ns) /
                                     static_cast<double>(summary_.end_ns);
      const auto part = static_cast<size_t>(share * kTimelineParts);
      summary_.timeline[std::min(part, kTimelineParts - 1)] += kernels;
    }
    return std::move(summary_);
  }

 private:
  void Visit(const trace::Record& record) {
    switch (record.type) {
#define HEDDLE_CASE(Table)                \
  case fb::RecordType::k##Table:          \
    Add(*record.As<fb::Table>(), record); \
    break;
      HEDDLE_RECORD_TABLES(HEDDLE_CASE)
#undef HEDDLE_CASE
      default:
        break;
    }
  }

  void Seen(const fb::Stamp* stamp) {
    if (stamp == nullptr) return;
    threads_.insert(stamp->thread());
    summary_.end_ns = std::max(summary_.end_ns, stamp->time_ns());
  }

  // Tables that only say that the program was alive.
  template <typename Table>
  void Add(const Table& table, const trace::Record&) {
    if constexpr (requires { table.stamp(); }) Seen(table.stamp());
  }

  void Add(const fb::Process& process, const trace::Record&) {
    if (summary_.process == nullptr) summary_.process = &process;
  }
  void Add(const fb::Device& device, const trace::Record&) {
    summary_.devices.push_back(&device);
  }
  void Add(const fb::Context&, const trace::Record&) { ++summary_.contexts; }
  void Add(const fb::End& end, const trace::Record&) {
    summary_.end_reason = Text(end.reason());
  }
  void Add(const fb::Image& image, const trace::Record&) {
    ++summary_.images;
    summary_.image_bytes += image.size();
    if (image.stored()) summary_.stored_image_bytes += image.size();
  }
  void Add(const fb::Module& module, const trace::Record&) {
    Seen(module.stamp());
    ++summary_.modules;
  }
  void Add(const fb::Kernel&, const trace::Record&) { ++summary_.kernels; }

  void Add(const fb::Alloc& alloc, const trace::Record&) {
    Seen(alloc.stamp());
    MemoryUse& use = summary_.memory[alloc.kind()];
    ++use.allocations;
    use.live += alloc.size();
    use.peak = std::max(use.peak, use.live);
    live_[{alloc.kind(), alloc.address()}] = alloc.size();
    if (!OnDevice(alloc.kind())) return;
    device_live_ += alloc.size();
    summary_.device_peak = std::max(summary_.device_peak, device_live_);
  }
  void Add(const fb::Free& free, const trace::Record&) {
    Seen(free.stamp());
    const auto found = live_.find({free.kind(), free.address()});
    if (found == live_.end()) return;
    summary_.memory[free.kind()].live -= found->second;
    if (OnDevice(free.kind())) device_live_ -= found->second;
    live_.erase(found);
  }

  void Add(const fb::Launch& launch, const trace::Record&) {
    if (launch.head() == nullptr) return;
    Seen(&launch.head()->stamp());
    if (launch.status() != 0) {
      ++summary_.failed;
    } else if (launch.capturing()) {
      ++summary_.captured_launches;
    } else {
      ++summary_.launches;
      streams_.insert(launch.head()->stream());
      ++summary_.kernel_uses[launch.head()->kernel()].launches;
      work_times_.emplace_back(launch.head()->stamp().time_ns(), 1);
    }
  }
  void Add(const fb::Memcpy& copy, const trace::Record&) {
    Seen(copy.stamp());
    if (copy.status() != 0) {
      ++summary_.failed;
    } else if (!copy.capturing()) {
      CopyUse& use = summary_.copies[copy.kind()];
      ++use.count;
      use.bytes += copy.width() * copy.height() * copy.depth();
      streams_.insert(copy.stream());
    }
  }
  void Add(const fb::Memset& fill, const trace::Record&) {
    Seen(fill.stamp());
    if (fill.status() != 0) {
      ++summary_.failed;
    } else if (!fill.capturing()) {
      ++summary_.fills;
      streams_.insert(fill.stream());
    }
  }
  void Add(const fb::HostFunc& host, const trace::Record&) {
    Seen(host.stamp());
    if (!host.capturing()) ++summary_.host_functions;
  }

  void Add(const fb::Graph& graph, const trace::Record&) {
    Seen(graph.stamp());
    ++summary_.graphs;
    if (graph.nodes() != nullptr) summary_.graph_nodes += graph.nodes()->size();
  }
  void Add(const fb::GraphExec& exec, const trace::Record&) {
    Seen(exec.stamp());
    if (exec.op() == fb::GraphExecOp::kInstantiate && exec.status() == 0) {
      ++summary_.graph_instances;
    }
  }
  void Add(const fb::GraphLaunch& launch, const trace::Record&) {
    Seen(launch.stamp());
    if (launch.status() != 0) {
      ++summary_.failed;
      return;
    }
    if (launch.capturing()) return;
    ++summary_.graph_launches;
    streams_.insert(launch.stream());
    const std::vector<const fb::Launch*> kernels = graphs_.Kernels(launch);
    summary_.graph_kernels += kernels.size();
    for (const fb::Launch* kernel : kernels) {
      if (kernel->head() == nullptr) continue;
      ++summary_.kernel_uses[kernel->head()->kernel()].launches;
    }
    if (launch.stamp() != nullptr) {
      work_times_.emplace_back(launch.stamp()->time_ns(), kernels.size());
    }
  }

  void Add(const fb::Snapshot& snapshot, const trace::Record& record) {
    Seen(snapshot.stamp());
    SnapshotUse use;
    use.snapshot = &snapshot;
    use.record = record.index;
    snapshots_[snapshot.id()] = summary_.snapshots.size();
    summary_.snapshots.push_back(use);
  }
  void Add(const fb::MemoryRange& range, const trace::Record&) {
    const auto found = snapshots_.find(range.snapshot());
    if (found == snapshots_.end()) return;
    SnapshotUse& use = summary_.snapshots[found->second];
    ++use.ranges;
    switch (range.fill()) {
      case fb::FillKind::kExact:
        use.exact += range.size();
        break;
      case fb::FillKind::kZero:
        use.zero += range.size();
        break;
      case fb::FillKind::kDescribed:
        use.described += range.size();
        break;
    }
  }
  void Add(const fb::Unsupported& what, const trace::Record&) {
    Seen(what.stamp());
    ++summary_.unsupported[Text(what.api())];
  }
  void Add(const fb::Note& note, const trace::Record&) {
    Seen(note.stamp());
    summary_.notes.push_back(&note);
  }

  const trace::Reader& reader_;
  Summary summary_;
  trace::GraphState graphs_;
  absl::flat_hash_set<uint32_t> threads_;
  absl::flat_hash_set<uint64_t> streams_;
  absl::flat_hash_map<std::pair<fb::MemoryKind, uint64_t>, uint64_t> live_;
  absl::flat_hash_map<uint32_t, size_t> snapshots_;  // by id
  uint64_t device_live_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> work_times_;  // time, kernels
};

}  // namespace

absl::StatusOr<Summary> Summarize(const trace::Reader& reader,
                                  const std::string& steps_by) {
  absl::StatusOr<trace::StepList> steps =
      trace::FindSteps(reader, {.by = steps_by});
  if (!steps.ok()) return steps.status();
  Summary summary = Summarizer(reader).Run();
  summary.steps = *std::move(steps);
  summary.step_params = trace::CompareStepParams(reader, summary.steps);
  return summary;
}

}  // namespace heddle::tools
