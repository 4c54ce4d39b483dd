// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/ancestry.h"

#include <algorithm>
#include <functional>

namespace heddle::plan {
namespace {

// Of the free chains, how many are tried before a new one is made.
constexpr size_t kTriedChains = 16;

}  // namespace

Ancestry::Ancestry(uint32_t operations)
    : chain_(operations, kNone), clocks_(operations), blocks_(1) {}

uint32_t Ancestry::NewBlock(const Block& block) {
  blocks_.push_back(block);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

uint32_t Ancestry::Get(const Clock& clock, uint32_t chain) const {
  ++work_;
  uint32_t levels = clock.levels;
  if (levels * kBits < 32 && chain >> (levels * kBits) != 0) return 0;
  uint32_t block = clock.block;
  for (; levels > 1; --levels) {
    block = blocks_[block].slot[(chain >> ((levels - 1) * kBits)) % kFanOut];
  }
  return blocks_[block].slot[chain % kFanOut];
}

void Ancestry::Grow(Clock& clock, uint32_t levels) {
  while (clock.levels < levels) {
    ++clock.levels;
    if (clock.block == 0) continue;
    Block above;
    above.slot[0] = clock.block;
    clock.block = NewBlock(above);
  }
}

uint32_t Ancestry::SetBlock(uint32_t block, uint32_t levels, uint32_t chain,
                            uint32_t value) {
  ++work_;
  Block copy = blocks_[block];
  const uint32_t at = (chain >> ((levels - 1) * kBits)) % kFanOut;
  copy.slot[at] =
      levels == 1 ? value : SetBlock(copy.slot[at], levels - 1, chain, value);
  if (block < shared_) return NewBlock(copy);
  blocks_[block] = copy;
  return block;
}

void Ancestry::Set(Clock& clock, uint32_t chain, uint32_t value) {
  uint32_t levels = clock.levels;
  while (levels * kBits < 32 && chain >> (levels * kBits) != 0) ++levels;
  Grow(clock, levels);
  clock.block = SetBlock(clock.block, clock.levels, chain, value);
}

uint32_t Ancestry::MergeBlocks(uint32_t a, uint32_t b, uint32_t levels) {
  // Most of two clocks is the same block.
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  ++work_;
  Block merged = blocks_[a];
  const Block other = blocks_[b];
  bool is_a = true;
  bool is_b = true;
  for (uint32_t i = 0; i < kFanOut; ++i) {
    const uint32_t old = merged.slot[i];
    merged.slot[i] = levels == 1 ? std::max(old, other.slot[i])
                                 : MergeBlocks(old, other.slot[i], levels - 1);
    is_a = is_a && merged.slot[i] == old;
    is_b = is_b && merged.slot[i] == other.slot[i];
  }
  // A block of our own may have been changed below, in place.
  if (is_a) return a;
  if (is_b) return b;
  if (a < shared_) return NewBlock(merged);
  blocks_[a] = merged;
  return a;
}

void Ancestry::Merge(Clock& clock, Clock other) {
  const uint32_t levels = std::max(clock.levels, other.levels);
  Grow(clock, levels);
  Grow(other, levels);
  clock.block = MergeBlocks(clock.block, other.block, levels);
}

void Ancestry::Begin(uint32_t op) {
  if (op == op_) {
    blocks_.resize(shared_);
  } else {
    shared_ = blocks_.size();
  }
  op_ = op;
  now_ = Clock();
  followed_.clear();
}

bool Ancestry::Reached(uint32_t earlier) const {
  return Get(now_, chain_[earlier]) > earlier;
}

bool Ancestry::Follow(uint32_t earlier) {
  if (Reached(earlier)) return false;
  Merge(now_, clocks_[earlier]);
  followed_.push_back(earlier);
  return true;
}

uint32_t Ancestry::ChooseChain() {
  for (const uint32_t earlier : followed_) {
    if (tails_[chain_[earlier]] == earlier) return chain_[earlier];
  }
  // The members of a chain need no edges, only that each comes before the next.
  const size_t end = free_.size();
  for (size_t i = end; i > 0 && i + kTriedChains > end; --i) {
    const uint32_t chain = free_[i - 1];
    if (!Reached(tails_[chain])) continue;
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    is_free_[chain] = false;
    return chain;
  }
  tails_.push_back(op_);
  is_free_.push_back(false);
  return static_cast<uint32_t>(tails_.size() - 1);
}

void Ancestry::Commit() {
  const uint32_t chain = ChooseChain();
  for (const uint32_t earlier : followed_) {
    const uint32_t other = chain_[earlier];
    if (other == chain || tails_[other] != earlier || is_free_[other]) continue;
    is_free_[other] = true;
    free_.push_back(other);
  }
  tails_[chain] = op_;
  chain_[op_] = chain;
  Set(now_, chain, op_ + 1);
  clocks_[op_] = now_;
  shared_ = blocks_.size();
  op_ = kNone;
}

bool Ancestry::Before(uint32_t a, uint32_t b) const {
  return a == b || (a < b && Get(clocks_[b], chain_[a]) > a);
}

void Ancestry::KeepLatest(std::vector<uint32_t>& operations) {
  std::sort(operations.begin(), operations.end(), std::greater<>());
  Clock all;
  size_t kept = 0;
  for (const uint32_t op : operations) {
    if (Get(all, chain_[op]) > op) continue;
    Merge(all, clocks_[op]);
    operations[kept++] = op;
  }
  operations.resize(kept);
  blocks_.resize(shared_);
}

}  // namespace heddle::plan
