// SPDX-License-Identifier: Apache-2.0
// Why the last member of each chain is enough: the members of a chain are
// complete one before the other, so if the last of those that conflict comes
// before an operation, so do the others.
#include "runtime/plan/hazard_sweep.h"

#include <algorithm>
#include <initializer_list>

namespace heddle::plan {
namespace {

constexpr uint64_t kLastByte = ~uint64_t{0};

// Inclusive: an extent may end where the address space does.
uint64_t LastByteOf(const access::Extent& extent) {
  return extent.address + (extent.size - 1);
}

// What an operation may do to all of memory at once.
enum Everywhere : uint8_t {
  kAnyReader,   // reads what nobody knows
  kAnyWriter,   // writes it
  kSomeWriter,  // writes anything at all
  kToucher,     // touches memory
  kKeepsPlace,  // an ordering point
  kActive,      // anything of these
  kEverywheres,
};

}  // namespace

HazardSweep::HazardSweep(const HappensBefore& order,
                         absl::Span<const Effects> effects)
    : order_(order), effects_(effects), chains_(order.chains().size()) {
  for (const Effects& e : effects) {
    for (const access::ExtentSet* set : {&e.reads, &e.writes}) {
      for (const access::Extent& extent : set->extents()) {
        if (extent.size == 0) continue;
        cuts_.push_back(extent.address);
        const uint64_t last = LastByteOf(extent);
        if (last != kLastByte) cuts_.push_back(last + 1);
      }
    }
  }
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

void HazardSweep::Marks::Set(size_t row, const HappensBefore& order,
                             uint32_t op) {
  uint32_t& mark = row_[row * chains_ + order.chain(op)];
  mark = std::max(mark, order.position(op) + 1);
}

std::optional<uint32_t> HazardSweep::Marks::NotBefore(
    size_t row, const HappensBefore& order, uint32_t op) const {
  for (uint32_t chain = 0; chain < chains_; ++chain) {
    const uint32_t mark = row_[row * chains_ + chain];
    if (mark > order.Reach(op, chain)) return order.chains()[chain][mark - 1];
  }
  return std::nullopt;
}

template <typename Visit>
void HazardSweep::ForEachPiece(const access::ExtentSet& set,
                               Visit visit) const {
  for (const access::Extent& extent : set.extents()) {
    if (extent.size == 0) continue;
    const uint64_t last = LastByteOf(extent);
    auto piece = std::lower_bound(cuts_.begin(), cuts_.end(), extent.address);
    for (; piece != cuts_.end() && *piece <= last; ++piece) {
      visit(static_cast<size_t>(piece - cuts_.begin()));
    }
  }
}

std::optional<std::pair<uint32_t, uint32_t>> HazardSweep::Find() const {
  Marks written(cuts_.size(), chains_);
  Marks touched(cuts_.size(), chains_);
  Marks everywhere(kEverywheres, chains_);
  std::optional<uint32_t> earlier;
  for (uint32_t op = 0; op < effects_.size(); ++op) {
    const Effects& e = effects_[op];
    const bool writes = e.writes_anything || !e.writes.empty();
    const bool touches = writes || e.reads_anything || !e.reads.empty();
    const auto follows = [&](bool applies, Everywhere what) {
      if (applies && !earlier) earlier = everywhere.NotBefore(what, order_, op);
    };
    follows(e.ordering_point, kActive);
    follows(touches, kKeepsPlace);
    follows(touches, kAnyWriter);
    follows(writes, kAnyReader);
    follows(e.reads_anything, kSomeWriter);
    follows(e.writes_anything, kToucher);
    ForEachPiece(e.reads, [&](size_t piece) {
      if (!earlier) earlier = written.NotBefore(piece, order_, op);
    });
    ForEachPiece(e.writes, [&](size_t piece) {
      if (!earlier) earlier = touched.NotBefore(piece, order_, op);
    });
    if (earlier) return std::pair<uint32_t, uint32_t>{*earlier, op};

    const auto mark = [&](bool applies, Everywhere what) {
      if (applies) everywhere.Set(what, order_, op);
    };
    mark(e.reads_anything, kAnyReader);
    mark(e.writes_anything, kAnyWriter);
    mark(writes, kSomeWriter);
    mark(touches, kToucher);
    mark(e.ordering_point, kKeepsPlace);
    mark(touches || e.ordering_point, kActive);
    ForEachPiece(e.reads,
                 [&](size_t piece) { touched.Set(piece, order_, op); });
    ForEachPiece(e.writes, [&](size_t piece) {
      touched.Set(piece, order_, op);
      written.Set(piece, order_, op);
    });
  }
  return std::nullopt;
}

}  // namespace heddle::plan
