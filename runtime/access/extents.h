// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_EXTENTS_H_
#define HEDDLE_RUNTIME_ACCESS_EXTENTS_H_

#include <cstdint>
#include <vector>

namespace heddle::access {

// [address, address + size), recorded addresses.
struct Extent {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t end() const { return address + size; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// A set of bytes: sorted, disjoint, not touching, no empty extents.
class ExtentSet {
 public:
  ExtentSet() = default;
  explicit ExtentSet(std::vector<Extent> extents);

  // Appends an extent that begins at or after the end of the last one.
  void Append(Extent extent);
  void Add(const ExtentSet& other);

  // The same bytes rounded outwards to blocks of `block` bytes.
  ExtentSet Rounded(uint64_t block) const;
  // What is in this set and not in `other`.
  ExtentSet Minus(const ExtentSet& other) const;
  ExtentSet Intersect(const ExtentSet& other) const;

  bool empty() const { return extents_.empty(); }
  uint64_t bytes() const;
  const std::vector<Extent>& extents() const { return extents_; }
  friend bool operator==(const ExtentSet&, const ExtentSet&) = default;

 private:
  std::vector<Extent> extents_;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_EXTENTS_H_
