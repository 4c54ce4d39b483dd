// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_HAZARD_SWEEP_H_
#define HEDDLE_RUNTIME_PLAN_HAZARD_SWEEP_H_

// The sweep of hazards.h.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/dependencies.h"
#include "runtime/plan/happens_before.h"

namespace heddle::plan {

class HazardSweep {
 public:
  // Arguments outlive the object. Cuts memory at every begin and end of an
  // extent.
  HazardSweep(const HappensBefore& order, absl::Span<const Effects> effects);

  // How many numbers Find keeps.
  size_t numbers() const { return (cuts_.size() + 1) * 2 * chains_; }

  // Two operations, the earlier first, that conflict although nothing completes
  // the one before the other's body begins; nullopt if there are none.
  std::optional<std::pair<uint32_t, uint32_t>> Find() const;

 private:
  // How many members of each chain, from its first one on, there are up to the
  // last that did something to a piece of memory.
  class Marks {
   public:
    Marks(size_t rows, size_t chains) : chains_(chains), row_(rows * chains) {}
    void Set(size_t row, const HappensBefore& order, uint32_t op);
    // A marked operation that does not come before `op`.
    std::optional<uint32_t> NotBefore(size_t row, const HappensBefore& order,
                                      uint32_t op) const;

   private:
    size_t chains_;
    std::vector<uint32_t> row_;
  };

  template <typename Visit>
  void ForEachPiece(const access::ExtentSet& set, Visit visit) const;

  const HappensBefore& order_;
  const absl::Span<const Effects> effects_;
  const size_t chains_;
  // Where pieces begin; the last one ends with the address space.
  std::vector<uint64_t> cuts_;
};

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_HAZARD_SWEEP_H_
