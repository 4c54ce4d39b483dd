// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_LIVE_PROGRAM_H_
#define HEDDLE_TESTS_UNIT_LIVE_PROGRAM_H_

// Graphs of kernels over a few buffers, and what they leave behind when they
// run one node after another.

#include <cstdint>
#include <random>
#include <vector>

namespace heddle::live {

using Random = std::mt19937;
inline uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

constexpr uint32_t kCount = 8;  // values of a buffer; no grid has more blocks
using Buffer = std::vector<unsigned>;
using Memory = std::vector<Buffer>;  // buffer 0 is the program's input

// One node. Whoever touches a buffer is ordered, by `after`, with whoever
// touched it before, unless both only read.
struct Step {
  std::vector<uint32_t> after;  // earlier nodes
  std::vector<uint32_t> reads;  // buffers, at most three
  uint32_t writes = 1;
  unsigned salt = 0;
  unsigned blocks = kCount;
  bool kernel = true;  // else a memset of the whole buffer to `salt`
};

struct Program {
  std::vector<Step> steps;
  uint32_t buffers = 2;

  Memory Start() const;
  // Every step in turn.
  void RunSerially(Memory* memory) const;

  // Each node reads what the one before it wrote, and the input.
  static Program Chain(uint32_t count, unsigned blocks);
  // One node, `width` that read it, one that reads them all (three a node).
  static Program ForkJoin(uint32_t width, unsigned blocks);
  static Program Any(Random& random, uint32_t max_nodes);
  // `width` chains of `length` nodes that share no memory but the input, which
  // all read, and a node that reads the results of three. Submitted in turns:
  // each node is behind the one before it, of another chain.
  static Program Lanes(uint32_t width, uint32_t length, unsigned blocks);
  // One node behind the other, over few buffers: every kind of conflict, and
  // order that nothing needs.
  static Program InLine(Random& random, uint32_t max_nodes, uint32_t buffers);
};

}  // namespace heddle::live

#endif  // HEDDLE_TESTS_UNIT_LIVE_PROGRAM_H_
