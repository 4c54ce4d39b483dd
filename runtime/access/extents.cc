// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/extents.h"

#include <algorithm>

namespace heddle::access {

ExtentSet::ExtentSet(std::vector<Extent> extents) {
  std::sort(
      extents.begin(), extents.end(),
      [](const Extent& a, const Extent& b) { return a.address < b.address; });
  for (const Extent& extent : extents) Append(extent);
}

void ExtentSet::Append(Extent extent) {
  if (extent.size == 0) return;
  if (!extents_.empty() && extent.address <= extents_.back().end()) {
    Extent& last = extents_.back();
    last.size = std::max(last.end(), extent.end()) - last.address;
    return;
  }
  extents_.push_back(extent);
}

void ExtentSet::Add(const ExtentSet& other) {
  std::vector<Extent> all = extents_;
  all.insert(all.end(), other.extents_.begin(), other.extents_.end());
  *this = ExtentSet(std::move(all));
}

ExtentSet ExtentSet::Rounded(uint64_t block) const {
  ExtentSet result;
  for (const Extent& extent : extents_) {
    const uint64_t begin = extent.address / block * block;
    const uint64_t end = (extent.end() + block - 1) / block * block;
    result.Append({begin, end - begin});
  }
  return result;
}

ExtentSet ExtentSet::Minus(const ExtentSet& other) const {
  ExtentSet result;
  size_t j = 0;
  for (const Extent& extent : extents_) {
    uint64_t at = extent.address;
    while (j < other.extents_.size() && other.extents_[j].end() <= at) ++j;
    for (size_t k = j; k < other.extents_.size() && at < extent.end(); ++k) {
      const Extent& hole = other.extents_[k];
      if (hole.address >= extent.end()) break;
      if (hole.address > at) result.Append({at, hole.address - at});
      at = std::max(at, hole.end());
    }
    if (at < extent.end()) result.Append({at, extent.end() - at});
  }
  return result;
}

ExtentSet ExtentSet::Intersect(const ExtentSet& other) const {
  return Minus(Minus(other));
}

uint64_t ExtentSet::bytes() const {
  uint64_t total = 0;
  for (const Extent& extent : extents_) total += extent.size;
  return total;
}

}  // namespace heddle::access
