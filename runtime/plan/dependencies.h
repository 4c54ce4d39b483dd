// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_DEPENDENCIES_H_
#define HEDDLE_RUNTIME_PLAN_DEPENDENCIES_H_

// Which operations have to stay in order, and because of which bytes.
//
// Two operations conflict if one writes what the other reads or writes. Order
// between them is kept if it is kept between all operations that conflict; what
// a path of other conflicts implies needs no edge of its own. The edges that
// remain are the fewest with which that is so (the transitive reduction, of
// which there is exactly one).
//
// Memory of an allocator that is used again is a conflict like any other: the
// new owner writes what the old one read (write-after-read).
//
// Pure functions: no driver, no errors; any thread.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/access/access_set.h"
#include "runtime/access/extents.h"

namespace heddle::plan {

// What an operation does to memory, as far as order goes.
struct Effects {
  access::ExtentSet reads = {};
  access::ExtentSet writes = {};
  // Beyond that anything may be read, or written: it conflicts with everything
  // that writes, or with everything that touches memory.
  bool reads_anything = false;
  bool writes_anything = false;
  // Keeps its place among all operations that touch memory and all other
  // ordering points.
  bool ordering_point = false;

  // Whether anything is ordered with it.
  bool none() const {
    return reads.empty() && writes.empty() && !reads_anything &&
           !writes_anything && !ordering_point;
  }
};

// Atomics are reads and writes; a side that is not known is anything.
Effects EffectsOf(const access::AccessSet& set);

enum class Hazard : uint8_t {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  kUnknownAccess,  // one of the two may touch anything
  kOrderingPoint,  // one of the two keeps its place
};

absl::string_view HazardName(Hazard hazard);  // "read-after-write"

// One reason why two operations must stay in order. The last two hazards have
// no bytes.
struct Reason {
  Hazard hazard = Hazard::kReadAfterWrite;
  access::Extent first;  // of the bytes that both touch, the lowest extent
  uint64_t bytes = 0;    // that both touch, in all

  friend bool operator==(const Reason&, const Reason&) = default;
};

// Every reason why `later` must follow `earlier`, at most one a hazard, in the
// order of Hazard; empty if they do not conflict. Takes time in proportion to
// the set with fewer extents, and to what they share.
std::vector<Reason> ReasonsBetween(const Effects& earlier,
                                   const Effects& later);

// `to` must follow `from`, and no path of other edges says so.
struct DependencyEdge {
  uint32_t from = 0;  // indices of operations, from < to
  uint32_t to = 0;
  std::vector<Reason> reasons;  // not empty
};

struct Dependencies {
  std::vector<DependencyEdge> edges;  // by `to`, then by `from`
  // Conflicts met on the way that other edges imply. Not all there are: those
  // that are implied by how the search goes are never looked at.
  uint64_t implied = 0;
  // Steps of the search, to see how it grows.
  uint64_t work = 0;

  std::vector<std::pair<uint32_t, uint32_t>> Pairs() const;
};

// The edges that `operations`, in the order in which they were submitted, need.
//
// n operations of a few extents each take n log n steps as long as few of them
// are independent of each other at any one time (a program's branches, not its
// length). Where many are, the edges themselves may be quadratic: k readers of
// a buffer that nothing else orders, before k writers of its parts.
Dependencies BuildDependencies(absl::Span<const Effects> operations);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_DEPENDENCIES_H_
