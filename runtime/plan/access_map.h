// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_ACCESS_MAP_H_
#define HEDDLE_RUNTIME_PLAN_ACCESS_MAP_H_

// For every byte of memory who wrote it last and who has read it since.
//
// Memory is cut into places before: 0, 1, ... such that an operation touches a
// place as a whole or not at all. A tree over the places keeps, for every inner
// node, the few operations below it that matter, so that a range of any number
// of places costs the logarithm of it, however finely it was cut by others. An
// operation that another one in the same list comes after does not matter.
//
// One thread.

#include <cstdint>
#include <vector>

#include "runtime/plan/ancestry.h"

namespace heddle::plan {

class AccessMap {
 public:
  // `places` > 0. `ancestry` outlives the map.
  AccessMap(uint32_t places, Ancestry& ancestry);

  // What an operation that is about to be added has to follow. Members may
  // occur more than once.
  struct Found {
    std::vector<uint32_t> operations;
    // Parts of memory with many last writers, which FindMore looks at.
    struct Part {
      uint32_t node = 0;
      uint32_t first = 0;
      uint32_t last = 0;
    };
    std::vector<Part> parts;
  };
  // Appends the last writers of [first, last], and the readers since if
  // `readers`: all of them that no other member comes after, or that are in one
  // of `parts`.
  void Find(uint32_t first, uint32_t last, bool readers, Found& found) const;
  // Appends the last writers of `part`, but for those which the operation that
  // is being added to `ancestry` is known to follow already.
  void FindMore(const Found::Part& part,
                std::vector<uint32_t>& operations) const;

  // Notes that `op`, which is in `ancestry`, read or wrote [first, last].
  void Read(uint32_t first, uint32_t last, uint32_t op);
  void Write(uint32_t first, uint32_t last, uint32_t op);

  uint64_t work() const { return work_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kFew = 4;

  // Operations of which none comes after another, if they are few.
  struct Few {
    uint32_t count = 0;  // kFew + 1: they are many, and not here
    uint32_t op[kFew] = {};
    bool many() const { return count > kFew; }
  };

  // A range of places. Its children are those of the halves of the range.
  struct Node {
    Few writers;  // last writers of places below
    Few readers;  // readers since then
    // Comes after all last writers below, or is the only one; kNone if none
    // such is known.
    uint32_t cover = kNone;
    // The last writer of all places; what the children say is outdated. kNone
    // if there is no one such.
    uint32_t writer = kNone;
    // Read all places since their last write; the children may not know.
    std::vector<uint32_t> whole;
    uint32_t prune_at = 0;  // length of `whole` at which it is looked through
  };

  // The tree without pointers: left child at node + 1, right one behind all of
  // the left half.
  static uint32_t Middle(uint32_t first, uint32_t last) {
    return first + (last - first) / 2;
  }
  static uint32_t Left(uint32_t node) { return node + 1; }
  static uint32_t Right(uint32_t node, uint32_t first, uint32_t last) {
    return node + 2 * (Middle(first, last) - first + 1);
  }

  static bool Add(const Few& few, std::vector<uint32_t>& operations);
  void Insert(Few& few, uint32_t op) const;
  void Unite(Few& few, const Few& other) const;
  void AddReaders(uint32_t node, uint32_t first, uint32_t last,
                  std::vector<uint32_t>& operations) const;
  void FindIn(uint32_t node, uint32_t node_first, uint32_t node_last,
              uint32_t first, uint32_t last, bool readers, Found& found) const;

  void WriteAll(Node& node, uint32_t op);
  void ReadAll(Node& node, uint32_t op);
  void PushDown(uint32_t node, uint32_t first, uint32_t last, bool readers);
  void PullUp(uint32_t node, uint32_t first, uint32_t last);
  void Update(uint32_t node, uint32_t node_first, uint32_t node_last,
              uint32_t first, uint32_t last, bool write, uint32_t op);

  const uint32_t last_;  // place
  Ancestry& ancestry_;
  std::vector<Node> nodes_;
  mutable uint64_t work_ = 0;
};

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_ACCESS_MAP_H_
