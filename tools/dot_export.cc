// SPDX-License-Identifier: Apache-2.0
#include "tools/dot_export.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/dot_text.h"
#include "tools/record_text.h"

namespace heddle::tools {
namespace {

std::string LaunchLabel(const fb::Launch& launch, const KernelNames& names) {
  if (launch.head() == nullptr) return "launch";
  const fb::Dim3& grid = launch.head()->grid();
  return absl::StrCat(DotShorten(names.Name(launch.head()->kernel())), " (",
                      uint64_t{grid.x()} * grid.y() * grid.z(), " blocks)");
}

std::string CopyLabel(const fb::Memcpy& copy) {
  return absl::StrCat("memcpy ",
                      Bytes(copy.width() * copy.height() * copy.depth()));
}

std::string NodeLabel(const fb::GraphNode& node, const KernelNames& names) {
  if (node.launch() != nullptr) return LaunchLabel(*node.launch(), names);
  if (node.memcpy() != nullptr) return CopyLabel(*node.memcpy());
  if (node.child() != 0) return absl::StrCat("graph ", node.child());
  return GraphNodeTypeName(node.type());
}

void AddGraph(const fb::Graph& graph, const KernelNames& names,
              std::string* dot) {
  const std::string prefix = absl::StrCat("g", graph.id(), "_");
  absl::StrAppend(dot, "  subgraph cluster_", graph.id(), " {\n    label=",
                  DotQuote(absl::StrCat("graph ", graph.id())), ";\n");
  const uint32_t nodes = graph.nodes() == nullptr ? 0 : graph.nodes()->size();
  for (uint32_t i = 0; i < nodes; ++i) {
    const fb::GraphNode* node = graph.nodes()->Get(i);
    absl::StrAppend(dot, "    ", prefix, i, " [label=",
                    DotQuote(absl::StrCat(i, " ", NodeLabel(*node, names))),
                    node->understood() ? "" : ", style=dashed", "];\n");
  }
  if (graph.edges() != nullptr) {
    for (const fb::GraphEdge* edge : *graph.edges()) {
      if (edge->from() >= nodes || edge->to() >= nodes) continue;
      // Programmatic edges, and those from another port than completion.
      const bool early = edge->type() != 0 || edge->from_port() != 0;
      absl::StrAppend(dot, "    ", prefix, edge->from(), " -> ", prefix,
                      edge->to());
      if (early) {
        absl::StrAppend(dot, " [style=dashed, label=",
                        DotQuote(absl::StrCat("port ", edge->from_port())),
                        "]");
      }
      absl::StrAppend(dot, ";\n");
    }
  }
  absl::StrAppend(dot, "  }\n");
}

// The order of a step's work. Two pieces are ordered by their stream, by an
// event that one stream records and another waits for, by the host waiting
// before it submits the second, and by the legacy default stream, which waits
// for all blocking streams and makes them wait.
class StepGraph {
 public:
  StepGraph(const trace::Reader& reader, const trace::Step& step, bool mangled)
      : reader_(reader), step_(step), names_(reader, mangled) {}

  std::string Run() {
    for (uint64_t i = 0; i < step_.end_record; ++i) {
      Visit(reader_.records()[i], i >= step_.first_record);
    }
    std::string dot = "digraph step {\n  rankdir=TB;\n  node [shape=box];\n";
    for (const auto& [stream, works] : lanes_) {
      absl::StrAppend(&dot, "  subgraph cluster_s", stream, " {\n    label=",
                      DotQuote(absl::StrCat("stream ", Hex(stream))), ";\n");
      for (const auto& [record, label] : works) {
        absl::StrAppend(&dot, "    r", record,
                        " [label=", DotQuote(absl::StrCat(record, " ", label)),
                        "];\n");
      }
      absl::StrAppend(&dot, "  }\n");
    }
    for (const auto& [from, to] : edges_) {
      absl::StrAppend(&dot, "  r", from, " -> r", to, ";\n");
    }
    return dot + "}\n";
  }

 private:
  using Set = std::set<uint64_t>;  // of records

  static bool IsLegacy(uint64_t stream) { return stream <= 1; }
  bool IsBlocking(uint64_t stream) const {
    constexpr uint32_t kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
    const auto found = flags_.find(stream);
    return found == flags_.end() || (found->second & kNonBlocking) == 0;
  }

  void Visit(const trace::Record& record, bool inside) {
    if (const auto* stream = record.As<fb::Stream>(); stream != nullptr) {
      if (stream->op() == fb::StreamOp::kCreate) {
        flags_[stream->handle()] = stream->flags();
      }
      return;
    }
    if (!inside) return;
    if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
      if (launch->capturing() || launch->head() == nullptr) return;
      Add(record, launch->head()->stream(), LaunchLabel(*launch, names_));
    } else if (const auto* copy = record.As<fb::Memcpy>(); copy != nullptr) {
      if (!copy->capturing()) Add(record, copy->stream(), CopyLabel(*copy));
    } else if (const auto* fill = record.As<fb::Memset>(); fill != nullptr) {
      if (!fill->capturing()) Add(record, fill->stream(), "memset");
    } else if (const auto* start = record.As<fb::GraphLaunch>();
               start != nullptr) {
      if (start->capturing()) return;
      Add(record, start->stream(), absl::StrCat("graph ", start->graph()));
    } else if (const auto* host = record.As<fb::HostFunc>(); host != nullptr) {
      if (!host->capturing()) Add(record, host->stream(), "host function");
    } else if (const auto* memop = record.As<fb::MemOp>(); memop != nullptr) {
      if (!memop->capturing()) Add(record, memop->stream(), "memory operation");
    } else if (const auto* event = record.As<fb::Event>(); event != nullptr) {
      if (!event->capturing()) Follow(*event);
    } else if (const auto* sync = record.As<fb::Sync>(); sync != nullptr) {
      Follow(*sync);
    }
  }

  void Follow(const fb::Event& event) {
    if (event.op() == fb::EventOp::kRecord) {
      events_[event.handle()] = Before(event.stream());
    } else if (event.op() == fb::EventOp::kWait) {
      const Set& waited = events_[event.handle()];
      pending_[event.stream()].insert(waited.begin(), waited.end());
    }
  }

  void Follow(const fb::Sync& sync) {
    switch (sync.op()) {
      case fb::SyncOp::kContext:
        for (const auto& [stream, last] : tails_) host_.insert(last);
        break;
      case fb::SyncOp::kStream: {
        const Set before = Before(sync.handle());
        host_.insert(before.begin(), before.end());
        break;
      }
      case fb::SyncOp::kEvent: {
        const Set& waited = events_[sync.handle()];
        host_.insert(waited.begin(), waited.end());
        break;
      }
      case fb::SyncOp::kQuery:
        break;
    }
  }

  // What the next work in the stream waits for.
  Set Before(uint64_t stream) const {
    Set before = host_;
    for (const auto& [other, last] : tails_) {
      const bool legacy = IsLegacy(stream)
                              ? IsBlocking(other)
                              : IsLegacy(other) && IsBlocking(stream);
      if (other == stream || legacy) before.insert(last);
    }
    if (const auto found = pending_.find(stream); found != pending_.end()) {
      before.insert(found->second.begin(), found->second.end());
    }
    return before;
  }

  void Add(const trace::Record& record, uint64_t stream,
           const std::string& label) {
    lanes_[stream].emplace_back(record.index, label);
    // Work that something else here waits for already needs no edge.
    const Set before = Before(stream);
    Set implied;
    for (const uint64_t work : before) {
      const Set& ancestors = ancestors_[work];
      implied.insert(ancestors.begin(), ancestors.end());
    }
    Set& all = ancestors_[record.index];
    all = implied;
    for (const uint64_t work : before) {
      all.insert(work);
      if (implied.count(work) == 0) edges_.emplace_back(work, record.index);
    }
    // Sets of all ancestors would be quadratic; far ones change no picture.
    while (all.size() > kMaxAncestors) all.erase(all.begin());
    pending_.erase(stream);
    tails_[stream] = record.index;
  }

  static constexpr size_t kMaxAncestors = 256;

  const trace::Reader& reader_;
  const trace::Step& step_;
  KernelNames names_;
  std::map<uint64_t, std::vector<std::pair<uint64_t, std::string>>> lanes_;
  std::vector<std::pair<uint64_t, uint64_t>> edges_;
  std::map<uint64_t, uint64_t> tails_;  // last work of each stream
  std::map<uint64_t, Set> pending_;     // what a stream was told to wait for
  std::map<uint64_t, Set> events_;
  Set host_;  // what the host has waited for
  absl::flat_hash_map<uint64_t, Set> ancestors_;
  absl::flat_hash_map<uint64_t, uint32_t> flags_;
};

}  // namespace

absl::StatusOr<std::string> GraphsToDot(const trace::Reader& reader,
                                        uint32_t id, bool mangled) {
  const KernelNames names(reader, mangled);
  std::string dot = "digraph graphs {\n  node [shape=box];\n";
  bool found = false;
  for (const trace::Record& record : reader.records()) {
    const auto* graph = record.As<fb::Graph>();
    if (graph == nullptr || (id != 0 && graph->id() != id)) continue;
    AddGraph(*graph, names, &dot);
    found = true;
  }
  if (!found) {
    return absl::NotFoundError(
        id == 0 ? absl::StrCat(reader.path(),
                               " has no graphs; --step N draws the order of a "
                               "step")
                : absl::StrCat(reader.path(), " has no graph ", id,
                               " (heddle dump --type graph lists them)"));
  }
  return dot + "}\n";
}

std::string StepToDot(const trace::Reader& reader, const trace::Step& step,
                      bool mangled) {
  return StepGraph(reader, step, mangled).Run();
}

}  // namespace heddle::tools
