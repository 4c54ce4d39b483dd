// SPDX-License-Identifier: Apache-2.0
// PlanOverlap. The rules, each with its reason:
//
// An edge P→C may be converted if
// - it is a full edge between kernels. Copies, fills and host functions have
//   neither ports nor prologues;
// - C is patchable. Its prologue waits, which makes the converted edge no
//   weaker than the full one (order.cc). So it never matters whether P is the
//   last of C's ancestors: each converted edge orders its own two ends, the
//   others follow by paths, and transitive edges are converted like any;
// - neither P nor C takes part in overlap of the program's own that cannot be
//   taken over (below). A consumer of P's may rely on when P starts and
//   triggers, before P is complete: a trigger put before the program's own one
//   would start that consumer early, and so would P's own start if it no longer
//   waited for its producers. C's preamble is the program's overlap already.
//   PDL instructions alone are no obstacle: without such edges a wait of the
//   program's own finds everything complete that ours has waited for, and an
//   own trigger finds dependents that wait in their prologue;
// - neither is a cooperative launch. Its blocks start together or not at all;
//   what else the driver does about them is not written anywhere.
//
// Overlap of the program's own, a programmatic edge P→C, is taken over if C is
// patchable: with a wait in front of all of C, nothing of C runs before P is
// complete, so it no longer matters when P starts and triggers, and P and C may
// be treated like all kernels. The edge stays as it is. C's own preamble no
// longer overlaps P; it begins early all the same. Not in graphs in which the
// program has launch-order edges: it may know that its grids fit, and waits of
// ours would be in the way of that.
//
// A converted edge uses the programmatic port if P is patchable too: every
// producer of such an edge has a trigger in its prologue, since the implicit
// one at the exit of the last block hides next to nothing (×1.01 measured,
// against ×1.15). A launch-order edge needs nothing of P but the residency
// proof.
//
// Nodes that share an image get the same prologue, the one with a trigger:
// where it is not needed it does no harm, as it starts nobody without an edge
// from the programmatic port. If one of them must do without any, so do all.
//
// A kernel that cannot be patched in the middle of a chain so keeps the full
// edge before it. Joins may mix: the kernel starts when its full in-edges are
// over, then waits inside for the programmatic ones. Forks: each consumer waits
// for itself.
//
// Launch order is decided edge by edge in topological order, and kept where the
// proof still holds (residency.h). Proofs of a part of a window are never
// harder than that of the whole, so along a chain this gives the most
// launch-order edges possible.

#include "runtime/plan/overlap.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/plan/graph_shape.h"
#include "runtime/plan/residency.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

class Planner {
 public:
  Planner(const Graph& graph, const GraphShape& shape, Style style,
          const DeviceLimits& limits)
      : graph_(graph), shape_(shape), style_(style), limits_(limits) {
    overlaps_itself_.resize(graph.nodes.size());
    for (const Edge& edge : graph.edges) {
      own_launch_order_ |= edge.from_port == kPortLaunchOrder;
    }
    // What cannot be taken over keeps its kernels bare, which may keep others
    // from being taken over.
    while (FindOwnOverlap()) {
    }
  }

  OverlapPlan Plan() {
    plan_.edges = graph_.edges;
    plan_.prologue.assign(graph_.nodes.size(), Prologue::kNone);
    std::vector<bool> candidate(graph_.edges.size());
    for (uint32_t i = 0; i < graph_.edges.size(); ++i) {
      if (IsAdopted(graph_.edges[i])) continue;
      const char* obstacle = Obstacle(graph_.edges[i]);
      if (obstacle != nullptr) {
        ++kept_[obstacle];
        continue;
      }
      candidate[i] = true;
      if (IsPatchable(graph_.edges[i].from)) {
        Convert(i, kPortProgrammatic);
      }
    }
    if (style_ == Style::kLaunchOrder) PlanLaunchOrder(candidate);
    for (uint32_t i = 0; i < graph_.edges.size(); ++i) {
      if (candidate[i] && IsFull(plan_.edges[i])) {
        ++kept_["the producer cannot be patched"];
      }
    }
    ChoosePrologues();
    for (const auto& [reason, count] : kept_) {
      plan_.notes.push_back(
          absl::StrCat(count, count == 1 ? " edge stays" : " edges stay",
                       " full: ", reason));
    }
    return std::move(plan_);
  }

 private:
  // Why `edge` cannot be converted at all, or null.
  const char* Obstacle(const Edge& edge) const {
    const Node& from = graph_.nodes[edge.from];
    const Node& to = graph_.nodes[edge.to];
    if (!IsFull(edge)) return "no, it is the program's own overlap";
    if (!from.kernel || !to.kernel) return "one end is no kernel";
    if (overlaps_itself_[edge.from] || overlaps_itself_[edge.to]) {
      return "the program overlaps one of the kernels itself";
    }
    if (from.needs.cooperative || to.needs.cooperative) {
      return "one end is a cooperative launch";
    }
    if (!IsPatchable(edge.to)) return "the consumer cannot be patched";
    return nullptr;
  }

  // Marks kernels whose own overlap cannot be taken over, and images of which
  // some kernel must stay bare. Whether that made any more.
  bool FindOwnOverlap() {
    bool more = false;
    for (const Edge& edge : graph_.edges) {
      if (IsFull(edge) || MayAdopt(edge)) continue;
      for (const uint32_t node : {edge.from, edge.to}) {
        more |= !overlaps_itself_[node];
        overlaps_itself_[node] = true;
      }
    }
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      const uint32_t image = graph_.nodes[node].shared_image;
      if (image != 0 && graph_.nodes[node].kernel &&
          (!graph_.nodes[node].patchable || overlaps_itself_[node])) {
        more |= bare_images_.insert(image).second;
      }
    }
    return more;
  }

  // Whether overlap of the program's own can be taken over by a wait in front
  // of the consumer.
  bool MayAdopt(const Edge& edge) const {
    const Node& from = graph_.nodes[edge.from];
    const Node& to = graph_.nodes[edge.to];
    return !own_launch_order_ && edge.type == kTypeProgrammatic &&
           edge.from_port == kPortProgrammatic && from.kernel && to.kernel &&
           IsPatchable(edge.to) && !overlaps_itself_[edge.to] &&
           !from.needs.cooperative && !to.needs.cooperative;
  }

  bool IsAdopted(const Edge& edge) const {
    return !IsFull(edge) && MayAdopt(edge) && !overlaps_itself_[edge.from];
  }

  bool IsPatchable(uint32_t node) const {
    return graph_.nodes[node].patchable &&
           !bare_images_.contains(graph_.nodes[node].shared_image);
  }

  void Convert(uint32_t i, uint8_t port) {
    plan_.edges[i].type = kTypeProgrammatic;
    plan_.edges[i].from_port = port;
  }

  void PlanLaunchOrder(const std::vector<bool>& candidate) {
    if (own_launch_order_) {
      plan_.notes.push_back(
          "no launch-order edges: the program has some of its own, about which "
          "nothing can be proved");
      return;
    }
    if (graph_.nodes.size() > kMaxResidencyNodes) {
      plan_.notes.push_back(absl::StrCat("no launch-order edges: more than ",
                                         kMaxResidencyNodes, " nodes"));
      return;
    }
    ResidencyProof proof(graph_.nodes, limits_);
    uint32_t refused = 0;
    for (const uint32_t node : shape_.order) {
      std::vector<uint32_t> ready;  // candidates that still might be converted
      std::vector<Edge> in_edges;
      for (const uint32_t i : shape_.in[node]) {
        if (candidate[i]) {
          ready.push_back(static_cast<uint32_t>(in_edges.size()));
        }
        in_edges.push_back(plan_.edges[i]);
      }
      refused += ConvertInEdges(node, ready, &in_edges, &proof);
      for (size_t k = 0; k < in_edges.size(); ++k) {
        plan_.edges[shape_.in[node][k]] = in_edges[k];
      }
    }
    if (refused != 0) {
      plan_.notes.push_back(absl::StrCat(
          refused, refused == 1 ? " edge does" : " edges do",
          " not use the launch-order port: the blocks are not proved to fit on "
          "the device together"));
    }
  }

  // Makes launch-order edges of as many of `candidates` (indices into
  // *in_edges) as the proof allows, and adds the node to it. Returns how many
  // were refused.
  uint32_t ConvertInEdges(uint32_t node,
                          const std::vector<uint32_t>& candidates,
                          std::vector<Edge>* in_edges, ResidencyProof* proof) {
    const std::vector<Edge> before = *in_edges;
    const auto convert = [](Edge* edge) {
      edge->type = kTypeProgrammatic;
      edge->from_port = kPortLaunchOrder;
    };
    // Mostly there is one, or all are fine.
    for (const uint32_t k : candidates) convert(&(*in_edges)[k]);
    if (proof->Add(node, Waiting(node, *in_edges), *in_edges)) return 0;
    // One by one: each is kept if the node could be added with those so far.
    *in_edges = before;
    uint32_t refused = 0;
    for (const uint32_t k : candidates) {
      const Edge kept = (*in_edges)[k];
      convert(&(*in_edges)[k]);
      if (candidates.size() == 1 ||
          !proof->Holds(node, Waiting(node, *in_edges), *in_edges)) {
        (*in_edges)[k] = kept;
        ++refused;
      }
    }
    // Without launch-order edges there is nothing to prove, and with those the
    // proof has just been seen to hold.
    proof->Add(node, Waiting(node, *in_edges), *in_edges);
    return refused;
  }

  // As far as the proof is concerned: no trigger of this style comes first. The
  // program's own overlap keeps its kernels as they are.
  Prologue Waiting(uint32_t node, const std::vector<Edge>& in_edges) const {
    if (overlaps_itself_[node]) return Prologue::kNone;
    for (const Edge& edge : in_edges) {
      if (edge.type == kTypeProgrammatic) return Prologue::kWaitTrigger;
    }
    return Prologue::kNone;
  }

  void ChoosePrologues() {
    const Prologue both = style_ == Style::kProgrammaticEarly
                              ? Prologue::kTriggerWait
                              : Prologue::kWaitTrigger;
    for (uint32_t i = 0; i < plan_.edges.size(); ++i) {
      const Edge& edge = plan_.edges[i];
      const bool adopted = IsAdopted(graph_.edges[i]);
      if (edge == graph_.edges[i] && !adopted) continue;
      plan_.converted += adopted ? 0 : 1;
      if (plan_.prologue[edge.to] == Prologue::kNone) {
        plan_.prologue[edge.to] = Prologue::kWait;
      }
      if (edge.from_port == kPortLaunchOrder) {
        ++plan_.launch_order;
      } else if (IsPatchable(edge.from)) {
        plan_.prologue[edge.from] = both;
      }
    }
    absl::flat_hash_set<uint32_t> patched_images;
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      if (plan_.prologue[node] != Prologue::kNone) {
        patched_images.insert(graph_.nodes[node].shared_image);
      }
    }
    patched_images.erase(0);
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      if (graph_.nodes[node].kernel &&
          patched_images.contains(graph_.nodes[node].shared_image)) {
        plan_.prologue[node] = both;
      }
    }
  }

  const Graph& graph_;
  const GraphShape& shape_;
  const Style style_;
  const DeviceLimits& limits_;
  std::vector<bool> overlaps_itself_;  // per node
  bool own_launch_order_ = false;
  absl::flat_hash_set<uint32_t> bare_images_;  // that must not be patched
  std::map<std::string, uint32_t> kept_;       // reason → edges
  OverlapPlan plan_;
};

}  // namespace

absl::StatusOr<OverlapPlan> PlanOverlap(const Graph& graph, Style style,
                                        const DeviceLimits& limits) {
  const absl::StatusOr<GraphShape> shape = ShapeOf(graph.nodes, graph.edges);
  if (!shape.ok()) return shape.status();
  return Planner(graph, *shape, style, limits).Plan();
}

}  // namespace heddle::plan
