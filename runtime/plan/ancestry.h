// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_ANCESTRY_H_
#define HEDDLE_RUNTIME_PLAN_ANCESTRY_H_

// Which operations come before which, while their edges are being found.
//
// Operations are put into chains whose members follow each other, and each
// operation has a clock: for every chain, the latest member that comes before
// it. There are about as many chains as operations are independent of each
// other at one time, so few; clocks are trees that share what they have in
// common, so an operation costs the part of its clock that is its own.
//
// One thread.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::plan {

class Ancestry {
 public:
  // Operations are numbered below `operations`.
  explicit Ancestry(uint32_t operations);

  // Adding an operation, whose number is above that of all others:
  //   Begin(op); Follow(d) for each d that it follows, latest first; Commit().
  // Begin again starts over with the same operation.
  void Begin(uint32_t op);
  // Whether an edge from `earlier` is needed: no operation that was followed
  // before, since Begin, comes after it.
  bool Follow(uint32_t earlier);
  // Whether `earlier` is one that was followed, or comes before one.
  bool Reached(uint32_t earlier) const;
  void Commit();

  // Whether a == b or b comes after a. Both were committed.
  bool Before(uint32_t a, uint32_t b) const;

  // Of `operations`, in place, those that no other one comes after; latest
  // first. Not between Begin and Commit.
  void KeepLatest(std::vector<uint32_t>& operations);

  uint64_t work() const { return work_; }
  size_t chains() const { return tails_.size(); }

 private:
  static constexpr uint32_t kFanOut = 16;
  static constexpr uint32_t kBits = 4;
  static constexpr uint32_t kNone = ~uint32_t{0};

  // Part of a clock. In the lowest level a slot is a chain's latest member + 1,
  // or 0; above it a block, 0 for one of zeros.
  struct Block {
    uint32_t slot[kFanOut] = {};
  };
  // `levels` of blocks have room for kFanOut^levels chains.
  struct Clock {
    uint32_t block = 0;
    uint32_t levels = 1;
  };

  uint32_t NewBlock(const Block& block);
  uint32_t Get(const Clock& clock, uint32_t chain) const;
  void Set(Clock& clock, uint32_t chain, uint32_t value);
  uint32_t SetBlock(uint32_t block, uint32_t levels, uint32_t chain,
                    uint32_t value);
  void Grow(Clock& clock, uint32_t levels);
  void Merge(Clock& clock, Clock other);
  uint32_t MergeBlocks(uint32_t a, uint32_t b, uint32_t levels);
  uint32_t ChooseChain();

  std::vector<uint32_t> chain_;  // per operation
  std::vector<Clock> clocks_;    // per operation, itself included
  std::vector<uint32_t> tails_;  // per chain
  std::vector<Block> blocks_;    // the first is of zeros

  // Chains whose last member was followed by one of another chain: whoever
  // comes after that may go on with them.
  std::vector<uint32_t> free_;
  std::vector<bool> is_free_;  // per chain

  // Of the operation that is being added.
  uint32_t op_ = kNone;
  Clock now_;
  size_t shared_ = 1;  // blocks below this belong to others, too
  std::vector<uint32_t> followed_;
  mutable uint64_t work_ = 0;
};

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_ANCESTRY_H_
