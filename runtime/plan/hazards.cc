// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/hazards.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/happens_before.h"
#include "runtime/plan/hazard_sweep.h"

namespace heddle::plan {
namespace {

using access::Extent;
using access::ExtentSet;
using Pair = std::pair<uint32_t, uint32_t>;

struct SharedBytes {
  Extent first;
  uint64_t bytes = 0;
};

// Both sides by their last bytes: an extent may end where the address space
// does.
SharedBytes BytesInBoth(const ExtentSet& a, const ExtentSet& b) {
  SharedBytes shared;
  auto x = a.extents().begin();
  auto y = b.extents().begin();
  while (x != a.extents().end() && y != b.extents().end()) {
    const uint64_t x_last = x->address + (x->size - 1);
    const uint64_t y_last = y->address + (y->size - 1);
    const uint64_t begin = std::max(x->address, y->address);
    const uint64_t last = std::min(x_last, y_last);
    if (begin <= last) {
      const uint64_t size = last - begin + 1;
      if (shared.bytes == 0) shared.first = {begin, size};
      shared.bytes += size;
    }
    x_last <= y_last ? ++x : ++y;
  }
  return shared;
}

bool Writes(const Effects& e) { return e.writes_anything || !e.writes.empty(); }
bool Touches(const Effects& e) {
  return Writes(e) || e.reads_anything || !e.reads.empty();
}
bool IsActive(const Effects& e) { return Touches(e) || e.ordering_point; }

// Why `later` has to follow `earlier`; empty if it need not.
std::string Conflict(const Effects& earlier, const Effects& later) {
  if ((earlier.ordering_point && IsActive(later)) ||
      (later.ordering_point && IsActive(earlier))) {
    return "one of them keeps its place in the order";
  }
  if ((earlier.writes_anything && Touches(later)) ||
      (later.writes_anything && Touches(earlier))) {
    return "one of them may write anything";
  }
  if ((earlier.reads_anything && Writes(later)) ||
      (later.reads_anything && Writes(earlier))) {
    return "one of them may read anything, and the other writes";
  }
  const struct {
    const char* name;
    const ExtentSet& before;
    const ExtentSet& after;
  } hazards[] = {{"read-after-write", earlier.writes, later.reads},
                 {"write-after-read", earlier.reads, later.writes},
                 {"write-after-write", earlier.writes, later.writes}};
  for (const auto& hazard : hazards) {
    const SharedBytes shared = BytesInBoth(hazard.before, hazard.after);
    if (shared.bytes == 0) continue;
    return absl::StrCat(hazard.name, " of ", shared.bytes, " bytes, ",
                        shared.first.size, " of them at 0x",
                        absl::Hex(shared.first.address));
  }
  return "";
}

// Goes through all pairs that `order` leaves unordered. Members of a chain need
// not be in the order of submission, so how far to look is said by the lowest
// number from a member on.
std::optional<Pair> SearchPairs(const HappensBefore& order,
                                absl::Span<const Effects> effects) {
  std::vector<std::vector<uint32_t>> lowest_from = order.chains();
  for (std::vector<uint32_t>& lowest : lowest_from) {
    for (size_t i = lowest.size(); i-- > 1;) {
      lowest[i - 1] = std::min(lowest[i - 1], lowest[i]);
    }
  }
  for (uint32_t op = 0; op < effects.size(); ++op) {
    if (!IsActive(effects[op])) continue;
    for (uint32_t c = 0; c < order.chains().size(); ++c) {
      const std::vector<uint32_t>& chain = order.chains()[c];
      for (size_t i = order.Reach(op, c);
           i < chain.size() && lowest_from[c][i] < op; ++i) {
        if (chain[i] < op &&
            !Conflict(effects[chain[i]], effects[op]).empty()) {
          return Pair{chain[i], op};
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckHazards(const std::vector<Node>& nodes,
                          const OverlapPlan& plan,
                          absl::Span<const Effects> effects,
                          absl::Span<const std::string> names,
                          HazardSearch search) {
  if (effects.size() != nodes.size() ||
      (!names.empty() && names.size() != nodes.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        nodes.size(), " nodes, accesses of ", effects.size(),
        " operations and names of ", names.size(), ": they must match"));
  }
  const absl::StatusOr<HappensBefore> order =
      HappensBefore::Create(nodes, plan.edges, plan.prologue);
  if (!order.ok()) return order.status();
  std::optional<Pair> found;
  if (search == HazardSearch::kPairs ||
      (search == HazardSearch::kAuto && nodes.size() <= kMaxPairNodes)) {
    found = SearchPairs(*order, effects);
  } else {
    const HazardSweep sweep(*order, effects);
    found = search == HazardSearch::kAuto && sweep.numbers() > kMaxSweepNumbers
                ? SearchPairs(*order, effects)
                : sweep.Find();
  }
  if (!found) return absl::OkStatus();
  const auto [earlier, later] = *found;
  const auto name = [&](uint32_t op) {
    return names.empty() ? absl::StrCat("operation ", op)
                         : absl::StrCat("operation ", op, " (", names[op], ")");
  };
  return absl::FailedPreconditionError(absl::StrCat(
      name(later), " could begin before ", name(earlier),
      " is complete: ", Conflict(effects[earlier], effects[later])));
}

}  // namespace heddle::plan
