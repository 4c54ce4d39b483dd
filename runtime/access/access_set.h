// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_ACCESS_SET_H_
#define HEDDLE_RUNTIME_ACCESS_ACCESS_SET_H_

// Which bytes of memory one operation (a kernel launch, a copy, a fill) may
// touch, and how that is known.
//
// A set is an upper bound: what is not in it is not touched. What could not be
// bounded makes the whole side (reads, writes) unknown, and an unknown access
// conflicts with everything.
//
// Plain values: no threads, no errors.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/access/extents.h"

namespace heddle::access {

enum class Mode : uint8_t {
  kRead,
  kWrite,
  kAtomic,  // read and written, atomics and reductions
};

// How bytes came to be in a set, from the most to the least certain.
enum class Provenance : uint8_t {
  kDeclared,   // what a copy, a fill or a library call says it does
  kTensorMap,  // the extent that a tensor map (cuTensorMapEncode*) describes
  kProved,     // static analysis of the machine code, with this launch's values
  kObserved,   // measured on a device
  kAssumed,    // the allocation that a pointer of the launch leads to
};

absl::string_view ModeName(Mode mode);                    // "read"
absl::string_view ProvenanceName(Provenance provenance);  // "proved"

struct Access {
  Mode mode = Mode::kRead;
  Provenance provenance = Provenance::kAssumed;
  ExtentSet bytes;
  // For people: "STG.E.128 at 0x1f0, parameter 2 + [0, 4096)".
  std::string evidence;
};

struct AccessSet {
  std::vector<Access> accesses;
  // Not empty: anything may be read (or written), and this is why.
  std::string unknown_reads;
  std::string unknown_writes;
  // Others than the device notice when it happens (the host, other devices):
  // it keeps its place among everything that it was ordered with.
  bool ordering_point = false;

  bool reads_known() const { return unknown_reads.empty(); }
  bool writes_known() const { return unknown_writes.empty(); }

  // The union of accesses that read (atomics too), and of those that write.
  ExtentSet Reads() const;
  ExtentSet Writes() const;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_ACCESS_SET_H_
