// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/access_set.h"

#include <utility>

namespace heddle::access {
namespace {

ExtentSet Union(const std::vector<Access>& accesses, bool writes) {
  std::vector<Extent> all;
  for (const Access& access : accesses) {
    if (access.mode == (writes ? Mode::kRead : Mode::kWrite)) continue;
    const std::vector<Extent>& extents = access.bytes.extents();
    all.insert(all.end(), extents.begin(), extents.end());
  }
  return ExtentSet(std::move(all));
}

}  // namespace

absl::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kRead:
      return "read";
    case Mode::kWrite:
      return "write";
    case Mode::kAtomic:
      return "atomic";
  }
  return "unknown";
}

absl::string_view ProvenanceName(Provenance provenance) {
  switch (provenance) {
    case Provenance::kDeclared:
      return "declared";
    case Provenance::kTensorMap:
      return "tensor map";
    case Provenance::kProved:
      return "proved";
    case Provenance::kObserved:
      return "observed";
    case Provenance::kAssumed:
      return "assumed";
  }
  return "unknown";
}

ExtentSet AccessSet::Reads() const { return Union(accesses, false); }
ExtentSet AccessSet::Writes() const { return Union(accesses, true); }

}  // namespace heddle::access
