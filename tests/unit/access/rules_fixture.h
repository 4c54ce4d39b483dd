// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_ACCESS_RULES_FIXTURE_H_
#define HEDDLE_TESTS_UNIT_ACCESS_RULES_FIXTURE_H_

// For tests of single rules of the analysis, in code by hand. All of it runs on
// the machine as well, where no access may be outside of what was predicted.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <ostream>
#include <vector>

#include "tests/unit/access/case_runner.h"
#include "tests/unit/access/sass_words.h"

namespace heddle::access {

inline constexpr int kThread = 0;
inline constexpr int kBlock = 1;
inline constexpr int kZero = 255;
inline constexpr uint32_t kFromParameters = 1000;  // all numbers among them

constexpr Condition Is(int predicate) { return {predicate, false}; }
constexpr Condition Not(int predicate) { return {predicate, true}; }

// Bytes behind the pointer that an access may begin at.
struct Reach {
  int64_t lo = 0;
  int64_t hi = 0;
  friend bool operator==(const Reach&, const Reach&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Reach& reach) {
    return out << reach.lo << " to " << reach.hi;
  }
};
inline constexpr Reach kNowhere = {0, -1};
inline constexpr Reach kAnywhere = {INT64_MIN, INT64_MAX};

class RulesTest : public testing::TestWithParam<int> {
 protected:
  RulesTest() : runner_({"traps"}, GetParam()) {
    base_ = runner_.image().Find("strided")->param_base;
    Add({Special(kThread, 0x21), Special(kBlock, 0x25), MoveConstant(20, base_),
         MoveConstant(21, base_ + 4)});
  }

  void Add(std::initializer_list<Word128> words) {
    code_.insert(code_.end(), words);
  }
  // A load from the pointer + R`number`.
  void Access(int number, Condition guard = {}) {
    Add({On(guard, WideSum(22, number, 20, true)),
         On(guard, LoadByte(kZero, 22))});
    accesses_.push_back(code_.size() - 1);
  }
  // A branch over what is added until Here(at).
  size_t Skip() {
    Add({NoOperation()});
    return code_.size() - 1;
  }
  void Here(size_t at, Condition guard) {
    code_[at] = On(guard, Branch(static_cast<int64_t>(code_.size() - at),
                                 static_cast<uint32_t>(GetParam())));
  }
  void Back(size_t to, Condition guard) {
    const auto by =
        static_cast<int64_t>(to) - static_cast<int64_t>(code_.size());
    Add({On(guard, Branch(by, static_cast<uint32_t>(GetParam())))});
  }

  Case Made() const {
    Case made;
    made.launch.kernel = "strided";  // its parameters are 64 bytes
    made.launch.grid = {blocks_, 1, 1};
    made.launch.block = {threads_, 1, 1};
    made.launch.params.resize(64);
    for (size_t at = 16; at < 64; at += 4) {
      std::memcpy(&made.launch.params[at], &kFromParameters, 4);
    }
    std::memcpy(&made.launch.params[0], &pointer_, 8);
    std::memcpy(&made.launch.params[8], &pointer_, 8);
    made.code = code_;
    made.code.push_back(Exit());
    return made;
  }

  // Of the accesses in order.
  std::vector<Reach> Reaches() {
    const Case made = Made();
    const CoverageResult result = runner_.Check(made);
    EXPECT_EQ(result.complaint, "");
    EXPECT_GT(result.checked, 0u);
    EXPECT_EQ(runner_.failed(), 0u);
    const KernelFootprint footprint = runner_.Analyze(made);
    EXPECT_EQ(footprint.unknown, "");
    std::map<uint32_t, Reach> by_offset;
    for (const Footprint& one : footprint.footprints) {
      by_offset[one.offset] =
          one.bounded && one.pointer >= 0 ? Reach{one.lo, one.hi} : kAnywhere;
    }
    std::vector<Reach> reaches;
    for (const size_t at : accesses_) {
      const auto found = by_offset.find(static_cast<uint32_t>(16 * at));
      reaches.push_back(found == by_offset.end() ? kNowhere : found->second);
    }
    return reaches;
  }
  Reach LastReach() { return Reaches().back(); }

  // R2 is 1000, and 5 where `guard` is true.
  void WriteUnder(Condition guard) {
    Add({MoveConstant(2, base_ + 16), On(guard, MoveNumber(2, 5))});
  }

  CaseRunner runner_;
  uint32_t base_ = 0;
  uint32_t threads_ = 32;
  uint32_t blocks_ = 1;
  uint64_t pointer_ = kFirst;
  std::vector<Word128> code_;
  std::vector<size_t> accesses_;
};

inline constexpr Reach kFive = {5, 5};

}  // namespace heddle::access

#endif  // HEDDLE_TESTS_UNIT_ACCESS_RULES_FIXTURE_H_
