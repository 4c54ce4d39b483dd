// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_RESIDENCY_H_
#define HEDDLE_RUNTIME_PLAN_RESIDENCY_H_

// Forward progress of kernels that hold multiprocessors while they wait: the
// rule and its proof are in residency.cc.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/overlap.h"
#include "runtime/plan/placement.h"

namespace heddle::plan {

// Graphs larger than this are not looked at: five bits for each pair of nodes
// would be more than they are worth.
inline constexpr size_t kMaxResidencyNodes = 8192;

// Decides, node by node in topological order, whether a graph with some edges
// converted cannot get stuck. Costs memory for pairs of nodes.
class ResidencyProof {
 public:
  // `nodes` outlives this.
  ResidencyProof(const std::vector<Node>& nodes, const DeviceLimits& limits);

  // Whether node `node`, whose in-edges are those and whose producers were
  // added before, may be added: false if waiting blocks might then keep blocks
  // that they wait for off the device. Of the prologue counts whether it waits,
  // and for later nodes whether its first act is a trigger.
  bool Holds(uint32_t node, cubin::Prologue prologue,
             absl::Span<const Edge> in_edges) const;

  // The same, and adds the node if so.
  bool Add(uint32_t node, cubin::Prologue prologue,
           absl::Span<const Edge> in_edges);

  // Adds the node without any proof. Returns whether its blocks may hold places
  // before all that they wait for has begun.
  bool AddUnproved(uint32_t node, cubin::Prologue prologue,
                   absl::Span<const Edge> in_edges);

 private:
  // A set of nodes.
  class Bits {
   public:
    explicit Bits(size_t size = 0) : words_((size + 63) / 64) {}
    bool Has(uint32_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
    void Add(uint32_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
    void Add(const Bits& other) {
      for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    }
    // Of those here that are not in `other`.
    std::vector<uint32_t> Without(const Bits& other) const;

   private:
    std::vector<uint64_t> words_;
  };

  // What is certain about other nodes when this one starts (all its in-edges
  // are active) and when it is ready (its prologue is over).
  struct Facts {
    Bits pending;         // may be incomplete at the start, and be waited for
    Bits settled;         // complete once all direct producers are
    Bits begun_at_start;  // all their blocks have begun
    Bits begun_at_ready;
    Bits complete_at_start;
    Bits complete_at_ready;
    cubin::Prologue prologue = cubin::Prologue::kNone;
  };

  // A grid whose blocks may be waited for while some have not begun.
  struct Producer {
    uint32_t node;
    PlacementBound bound;
    // The most that a grid of each chain denies, and their sum.
    std::vector<uint64_t> denied;
    uint64_t total = 0;
    uint32_t grids = 0;  // chains that can take part
  };
  // A grid that may hold places before all that it waits for has begun.
  struct Holder {
    uint32_t node;
    size_t chain;
  };

  // What adding a node changes.
  struct Step {
    Facts facts;
    bool holds = true;
    bool is_holder = false;
    Holder holder{};
    std::vector<std::pair<size_t, Producer>> changed;
    std::vector<Producer> added;
  };

  Step StepFor(uint32_t node, cubin::Prologue prologue,
               absl::Span<const Edge> in_edges) const;
  Facts FactsOf(cubin::Prologue prologue,
                absl::Span<const Edge> in_edges) const;
  static std::vector<uint32_t> NotBegun(const Facts& facts,
                                        absl::Span<const Edge> in_edges);
  bool MayBeResidentBefore(const Holder& holder, const Facts& facts,
                           uint32_t producer) const;
  void Deny(Producer* producer, size_t chain, uint32_t holder) const;
  bool Fits(const Producer& producer) const;

  const std::vector<Node>& nodes_;
  const DeviceLimits limits_;
  std::vector<Facts> facts_;
  std::vector<Holder> holders_;
  std::vector<uint32_t> chain_ends_;  // the last holder of each chain
  std::vector<Producer> producers_;
};

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_RESIDENCY_H_
