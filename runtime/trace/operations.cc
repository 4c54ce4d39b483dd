// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/operations.h"

#include <string>

namespace heddle::trace {
namespace {

uint64_t HashString(const flatbuffers::String* text) {
  if (text == nullptr) return 0;
  return HashBytes(
             absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text->data()),
                                 text->size()))
      .lo;
}

uint64_t TimeOf(const fb::Stamp* stamp) {
  return stamp == nullptr ? 0 : stamp->time_ns();
}

struct Shape {
  uint64_t shape = 0;
  uint64_t kind = 0;
  uint32_t kernels = 0;
};

// Shapes of single operations and of whole graphs.
class Shapes {
 public:
  explicit Shapes(const Reader& reader) : kernels_(reader) {}

  Shape Of(const fb::Launch& launch) const {
    Shape result;
    result.kernels = 1;
    result.kind = Seed(fb::RecordType::kLaunch);
    const fb::LaunchHead* head = launch.head();
    if (head == nullptr) return result;
    result.kind = MixHash(result.kind, kernels_.Of(head->kernel()));
    result.shape = result.kind;
    for (const fb::Dim3* dim : {&head->grid(), &head->block()}) {
      result.shape = MixHash(result.shape, dim->x());
      result.shape = MixHash(result.shape, dim->y());
      result.shape = MixHash(result.shape, dim->z());
    }
    result.shape = MixHash(result.shape, head->shared_bytes());
    return result;
  }

  static Shape Of(const fb::Memcpy& copy) {
    Shape result;
    result.kind = MixHash(Seed(fb::RecordType::kMemcpy),
                          static_cast<uint64_t>(copy.kind()));
    result.shape = MixHash(result.kind, copy.width());
    result.shape = MixHash(result.shape, copy.height());
    result.shape = MixHash(result.shape, copy.depth());
    return result;
  }

  static Shape Of(const fb::Memset& fill) {
    Shape result;
    result.kind = MixHash(Seed(fb::RecordType::kMemset), fill.element_size());
    result.shape = MixHash(result.kind, fill.width());
    result.shape = MixHash(result.shape, fill.height());
    return result;
  }

  static Shape Plain(fb::RecordType type) {
    return {Seed(type), Seed(type), 0};
  }

  // Graphs come before the launches that use them, children before parents.
  void Add(const fb::Graph& graph) {
    Shape total = Plain(fb::RecordType::kGraph);
    if (graph.nodes() != nullptr) {
      for (const fb::GraphNode* node : *graph.nodes()) {
        const Shape shape = Of(*node);
        total.shape = MixHash(total.shape, shape.shape);
        total.kind = MixHash(total.kind, shape.kind);
        total.kernels += shape.kernels;
      }
    }
    if (graph.edges() != nullptr) {
      for (const fb::GraphEdge* edge : *graph.edges()) {
        const uint64_t ends = (uint64_t{edge->from()} << 32) | edge->to();
        total.shape = MixHash(total.shape, ends);
      }
    }
    graphs_[graph.id()] = total;
  }

  Shape OfGraph(uint32_t id) const {
    const auto found = graphs_.find(id);
    if (found != graphs_.end()) return found->second;
    Shape unknown = Plain(fb::RecordType::kGraphLaunch);
    unknown.kind = unknown.shape = MixHash(unknown.kind, id);
    return unknown;
  }

 private:
  static uint64_t Seed(fb::RecordType type) {
    return MixHash(0x68656464, static_cast<uint64_t>(type));
  }

  Shape Of(const fb::GraphNode& node) const {
    Shape shape;
    if (node.launch() != nullptr) {
      shape = Of(*node.launch());
    } else if (node.memcpy() != nullptr) {
      shape = Of(*node.memcpy());
    } else if (node.memset() != nullptr) {
      shape = Of(*node.memset());
    } else if (node.child() != 0) {
      shape = OfGraph(node.child());
    }
    shape.shape = MixHash(shape.shape, node.type());
    shape.kind = MixHash(shape.kind, node.type());
    return shape;
  }

  KernelIdentities kernels_;
  absl::flat_hash_map<uint32_t, Shape> graphs_;
};

bool Waits(const fb::Sync& sync) {
  return sync.op() == fb::SyncOp::kContext ||
         sync.op() == fb::SyncOp::kStream || sync.op() == fb::SyncOp::kEvent;
}

}  // namespace

uint64_t MixHash(uint64_t state, uint64_t value) {
  // The finalizer of SplitMix64 over a sum that depends on the order.
  uint64_t z = state * 0x9e3779b97f4a7c15 + value + 0x632be59bd9b4e019;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

KernelIdentities::KernelIdentities(const Reader& reader) {
  absl::flat_hash_map<uint32_t, uint64_t> images;   // by image id
  absl::flat_hash_map<uint32_t, uint64_t> modules;  // image hash by module id
  for (const Record& record : reader.records()) {
    if (const auto* image = record.As<fb::Image>(); image != nullptr) {
      if (image->hash() != nullptr) images[image->id()] = image->hash()->lo();
    } else if (const auto* module = record.As<fb::Module>();
               module != nullptr) {
      const auto found = images.find(module->image());
      if (found != images.end()) modules[module->id()] = found->second;
    } else if (const auto* kernel = record.As<fb::Kernel>();
               kernel != nullptr) {
      // Without its image a kernel is what its name says.
      const auto found = modules.find(kernel->module_id());
      identities_[kernel->id()] =
          MixHash(HashString(kernel->name()),
                  found == modules.end() ? 0 : found->second);
    }
  }
}

uint64_t KernelIdentities::Of(uint32_t kernel_id) const {
  const auto found = identities_.find(kernel_id);
  return found == identities_.end() ? kernel_id : found->second;
}

std::vector<Operation> ListOperations(const Reader& reader) {
  std::vector<Operation> operations;
  Shapes shapes(reader);
  bool waited = false;
  const auto add = [&](const Record& record, const fb::Stamp* stamp,
                       const Shape& shape) {
    operations.push_back({.record = record.index,
                          .shape = shape.shape,
                          .kind = shape.kind,
                          .time_ns = TimeOf(stamp),
                          .kernels = shape.kernels,
                          .after_wait = waited});
    waited = false;
  };
  for (const Record& record : reader.records()) {
    if (const auto* launch = record.As<fb::Launch>(); launch != nullptr) {
      if (launch->capturing() || launch->status() != 0) continue;
      const fb::LaunchHead* head = launch->head();
      add(record, head == nullptr ? nullptr : &head->stamp(),
          shapes.Of(*launch));
    } else if (const auto* copy = record.As<fb::Memcpy>(); copy != nullptr) {
      if (copy->capturing() || copy->status() != 0) continue;
      add(record, copy->stamp(), Shapes::Of(*copy));
      operations.back().to_host = copy->kind() == fb::MemcpyKind::kDtoH;
      waited = operations.back().to_host && !copy->async();
    } else if (const auto* fill = record.As<fb::Memset>(); fill != nullptr) {
      if (fill->capturing() || fill->status() != 0) continue;
      add(record, fill->stamp(), Shapes::Of(*fill));
    } else if (const auto* host = record.As<fb::HostFunc>(); host != nullptr) {
      if (host->capturing()) continue;
      add(record, host->stamp(), Shapes::Plain(record.type));
    } else if (const auto* memop = record.As<fb::MemOp>(); memop != nullptr) {
      if (memop->capturing()) continue;
      add(record, memop->stamp(), Shapes::Plain(record.type));
    } else if (const auto* start = record.As<fb::GraphLaunch>();
               start != nullptr) {
      if (start->capturing() || start->status() != 0) continue;
      add(record, start->stamp(), shapes.OfGraph(start->graph()));
    } else if (const auto* graph = record.As<fb::Graph>(); graph != nullptr) {
      shapes.Add(*graph);
    } else if (const auto* sync = record.As<fb::Sync>(); sync != nullptr) {
      waited = waited || Waits(*sync);
    }
  }
  return operations;
}

}  // namespace heddle::trace
