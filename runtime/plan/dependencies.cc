// SPDX-License-Identifier: Apache-2.0
//
// Operations are taken in order. For each, a map from memory to {last writers,
// readers since} gives those that it may have to follow; the latest of them
// needs an edge, and each earlier one if it does not come before one that has
// got an edge: that gives exactly the edges of the transitive reduction, since
// a path to the operation can only end in another one of them.
//
// "Anything" is all of memory and one place more, so that two operations of
// which nothing else is known meet there.

#include "runtime/plan/dependencies.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/plan/access_map.h"
#include "runtime/plan/ancestry.h"

namespace heddle::plan {
namespace {

using access::Extent;
using access::ExtentSet;

constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();

// The last byte: an extent may end at 2^64, which is no number.
uint64_t LastByte(const Extent& extent) {
  const uint64_t last = extent.address + (extent.size - 1);
  return last < extent.address ? kTop : last;
}

struct PlaceRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

// Memory cut at every end of an extent. Place 0 is no memory.
class Places {
 public:
  explicit Places(absl::Span<const Effects> operations) {
    for (const Effects& effects : operations) {
      Cut(effects.reads);
      Cut(effects.writes);
      // Programs use the same buffers over and over.
      if (starts_.size() > 2 * unique_ + 1024) Sort();
    }
    Sort();
  }

  uint32_t count() const { return static_cast<uint32_t>(starts_.size() + 1); }

  PlaceRange Of(const Extent& extent) const {
    const uint32_t first = Find(extent.address);
    const uint64_t last = LastByte(extent);
    // Most extents are one place.
    if (first == starts_.size() || last < starts_[first]) return {first, first};
    return {first, Find(last)};
  }

 private:
  void Cut(const ExtentSet& set) {
    for (const Extent& extent : set.extents()) {
      starts_.push_back(extent.address);
      const uint64_t last = LastByte(extent);
      if (last != kTop) starts_.push_back(last + 1);
    }
  }
  void Sort() {
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
    unique_ = starts_.size();
  }
  // Place i + 1 begins at starts_[i].
  uint32_t Find(uint64_t address) const {
    return static_cast<uint32_t>(
        std::upper_bound(starts_.begin(), starts_.end(), address) -
        starts_.begin());
  }

  std::vector<uint64_t> starts_;
  size_t unique_ = 0;
};

class Builder {
 public:
  explicit Builder(absl::Span<const Effects> operations)
      : operations_(operations),
        places_(operations),
        ancestry_(static_cast<uint32_t>(operations.size())),
        map_(places_.count(), ancestry_),
        seen_(operations.size(), kNone) {}

  Dependencies Run() && {
    for (uint32_t op = 0; op < operations_.size(); ++op) {
      if (!operations_[op].none()) Add(op);
    }
    for (DependencyEdge& edge : result_.edges) {
      edge.reasons =
          ReasonsBetween(operations_[edge.from], operations_[edge.to]);
    }
    result_.work = map_.work() + ancestry_.work();
    return std::move(result_);
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  void FindPlaces(const Effects& effects) {
    reads_.clear();
    writes_.clear();
    const PlaceRange all = {0, places_.count() - 1};
    if (effects.writes_anything || effects.ordering_point) {
      // Whoever writes waits for the writers before it, too.
      writes_.push_back(all);
      return;
    }
    for (const Extent& extent : effects.writes.extents()) {
      writes_.push_back(places_.Of(extent));
    }
    if (effects.reads_anything) {
      reads_.push_back(all);
      return;
    }
    for (const Extent& extent : effects.reads.extents()) {
      reads_.push_back(places_.Of(extent));
    }
  }

  // Follows all of `found_`, each once, latest first.
  void Follow(uint32_t op) {
    std::vector<uint32_t>& found = found_.operations;
    std::sort(found.begin(), found.end(), std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    ancestry_.Begin(op);
    needed_.clear();
    for (const uint32_t earlier : found) {
      if (ancestry_.Follow(earlier)) needed_.push_back(earlier);
    }
  }

  // Keeps the first of each, so that lists that were found in many places do
  // not have to be sorted.
  void DropRepeated(uint32_t op, size_t from) {
    std::vector<uint32_t>& found = found_.operations;
    size_t kept = from;
    for (size_t i = from; i < found.size(); ++i) {
      if (seen_[found[i]] == op) continue;
      seen_[found[i]] = op;
      found[kept++] = found[i];
    }
    found.resize(kept);
  }

  void Add(uint32_t op) {
    FindPlaces(operations_[op]);
    found_.operations.clear();
    found_.parts.clear();
    for (const PlaceRange& range : reads_) {
      const size_t before = found_.operations.size();
      map_.Find(range.first, range.last, false, found_);
      DropRepeated(op, before);
    }
    for (const PlaceRange& range : writes_) {
      const size_t before = found_.operations.size();
      map_.Find(range.first, range.last, true, found_);
      DropRepeated(op, before);
    }
    Follow(op);
    if (!found_.parts.empty()) {
      // Now that most of what comes before is known.
      const size_t before = found_.operations.size();
      for (const AccessMap::Found::Part& part : found_.parts) {
        map_.FindMore(part, found_.operations);
      }
      DropRepeated(op, before);
      if (found_.operations.size() != before) Follow(op);
    }
    ancestry_.Commit();
    result_.implied += found_.operations.size() - needed_.size();
    for (auto it = needed_.rbegin(); it != needed_.rend(); ++it) {
      result_.edges.push_back({*it, op, {}});
    }
    // What is both is written: that is what others have to wait for.
    for (const PlaceRange& range : reads_) {
      map_.Read(range.first, range.last, op);
    }
    for (const PlaceRange& range : writes_) {
      map_.Write(range.first, range.last, op);
    }
  }

  const absl::Span<const Effects> operations_;
  const Places places_;
  Ancestry ancestry_;
  AccessMap map_;
  Dependencies result_;

  // Of the operation that is being added.
  std::vector<PlaceRange> reads_;
  std::vector<PlaceRange> writes_;
  AccessMap::Found found_;
  std::vector<uint32_t> needed_;  // latest first
  std::vector<uint32_t> seen_;    // per operation: who found it last
};

// Calls `found(extent)` for what both sets hold, from low to high.
template <typename Found>
void ForEachCommon(const ExtentSet& a, const ExtentSet& b, Found found) {
  const std::vector<Extent>& few =
      a.extents().size() <= b.extents().size() ? a.extents() : b.extents();
  const std::vector<Extent>& many =
      &few == &a.extents() ? b.extents() : a.extents();
  auto at = many.begin();
  for (const Extent& extent : few) {
    const uint64_t last = LastByte(extent);
    at = std::partition_point(at, many.end(), [&](const Extent& other) {
      return LastByte(other) < extent.address;
    });
    for (auto other = at; other != many.end() && other->address <= last;
         ++other) {
      const uint64_t begin = std::max(extent.address, other->address);
      const uint64_t size = std::min(last, LastByte(*other)) - begin + 1;
      // Only two sets of all memory share 2^64 bytes.
      found(Extent{begin, size == 0 ? kTop : size});
    }
  }
}

void AddReason(Hazard hazard, const ExtentSet& earlier, const ExtentSet& later,
               std::vector<Reason>& reasons) {
  Reason reason{hazard, {}, 0};
  ForEachCommon(earlier, later, [&](const Extent& extent) {
    if (reason.bytes == 0) reason.first = extent;
    reason.bytes += extent.size;
  });
  if (reason.bytes != 0) reasons.push_back(reason);
}

bool Touches(const Effects& effects) {
  return !effects.reads.empty() || !effects.writes.empty() ||
         effects.reads_anything || effects.writes_anything;
}

bool Writes(const Effects& effects) {
  return !effects.writes.empty() || effects.writes_anything;
}

bool MeetsUnknown(const Effects& a, const Effects& b) {
  return (a.writes_anything && Touches(b)) || (a.reads_anything && Writes(b));
}

}  // namespace

Effects EffectsOf(const access::AccessSet& set) {
  return {.reads = set.Reads(),
          .writes = set.Writes(),
          .reads_anything = !set.reads_known(),
          .writes_anything = !set.writes_known(),
          .ordering_point = set.ordering_point};
}

absl::string_view HazardName(Hazard hazard) {
  switch (hazard) {
    case Hazard::kReadAfterWrite:
      return "read-after-write";
    case Hazard::kWriteAfterRead:
      return "write-after-read";
    case Hazard::kWriteAfterWrite:
      return "write-after-write";
    case Hazard::kUnknownAccess:
      return "unknown access";
    case Hazard::kOrderingPoint:
      return "ordering point";
  }
  return "unknown";
}

std::vector<Reason> ReasonsBetween(const Effects& earlier,
                                   const Effects& later) {
  std::vector<Reason> reasons;
  AddReason(Hazard::kReadAfterWrite, earlier.writes, later.reads, reasons);
  AddReason(Hazard::kWriteAfterRead, earlier.reads, later.writes, reasons);
  AddReason(Hazard::kWriteAfterWrite, earlier.writes, later.writes, reasons);
  if (MeetsUnknown(earlier, later) || MeetsUnknown(later, earlier)) {
    reasons.push_back({Hazard::kUnknownAccess, {}, 0});
  }
  if ((earlier.ordering_point && !later.none()) ||
      (later.ordering_point && !earlier.none())) {
    reasons.push_back({Hazard::kOrderingPoint, {}, 0});
  }
  return reasons;
}

std::vector<std::pair<uint32_t, uint32_t>> Dependencies::Pairs() const {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  pairs.reserve(edges.size());
  for (const DependencyEdge& edge : edges) {
    pairs.emplace_back(edge.from, edge.to);
  }
  return pairs;
}

Dependencies BuildDependencies(absl::Span<const Effects> operations) {
  return Builder(operations).Run();
}

}  // namespace heddle::plan
