// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_RANDOM_CODE_H_
#define HEDDLE_TESTS_UNIT_ACCESS_RANDOM_CODE_H_

// Random machine code for tests of what analyses it: pieces of compiled
// kernels with other registers, numbers and predicates, bits flipped, branches
// and loops at random, between instructions that load from what they compute.

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/access/interpreter.h"
#include "tests/sass_machine/program.h"
#include "tests/unit/access/sass_words.h"

namespace heddle::access {

// Decoded for both: the analysis has no better eyes than the machine.
sass_machine::Code DecodeCode(const Word128& word, uint64_t offset,
                              uint32_t arch);

class RandomCode {
 public:
  // Takes the integer instructions of the kernels of `program`.
  void AddPool(const sass_machine::Program& program);

  // A kernel with two pointers at the beginning of its parameters and six
  // 64-bit numbers behind. `param_base`: where they are in bank 0.
  std::vector<Word128> Make(uint32_t param_base, std::mt19937_64& random) const;

  // Changes one integer instruction of `code`, if a few tries find one that
  // the machine still knows.
  void Mutate(std::vector<Word128>* code, std::mt19937_64& random) const;

  uint32_t arch() const { return arch_; }

 private:
  bool Rename(Word128* word, const std::array<int, 16>& pairs,
              std::mt19937_64& random) const;

  uint32_t arch_ = 0;
  // Runs of instructions as they follow each other.
  std::vector<std::vector<Word128>> pool_;
};

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_RANDOM_CODE_H_
