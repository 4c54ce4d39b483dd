// SPDX-License-Identifier: Apache-2.0
//
// Random programs on the host device: what is observed against what a model of
// them writes, and lies against what is found.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/unit/replay/observe_fixture.h"

namespace heddle::replay {
namespace {

// Random programs over 60 slots of memory, and what each operation must be
// seen to write by a model of memory on the host.
class RandomProgram {
 public:
  static constexpr uint64_t kSlots = 60;
  static constexpr uint64_t kSlot = 512;

  explicit RandomProgram(uint32_t seed)
      : random_(seed), memory_(Bytes(kSlots * kSlot, seed)) {
    // Masks and values of few kinds, so that equal ones are common.
    for (uint8_t& byte : memory_) byte = random_() % 3;
  }
  const std::vector<uint8_t>& memory() const { return memory_; }
  uint64_t Pick(uint64_t n) { return random_() % n; }
  // Three different slots.
  std::vector<uint64_t> Slots() {
    std::vector<uint64_t> slots;
    while (slots.size() < 3) {
      const uint64_t slot = Pick(kSlots);
      if (std::find(slots.begin(), slots.end(), slot) == slots.end()) {
        slots.push_back(slot);
      }
    }
    return slots;
  }

  // Offsets written, and the model after it.
  std::vector<uint64_t> Masked(uint64_t out, uint64_t in, uint64_t mask,
                               uint32_t n) {
    std::vector<uint64_t> written;
    for (uint32_t i = 0; i < n; ++i) {
      if (memory_[mask + i] == 0) continue;
      memory_[out + i] = memory_[in + i];
      written.push_back(out + i);
    }
    return written;
  }
  // Those alone that change.
  std::vector<uint64_t> Add(uint64_t at, uint32_t value, uint32_t n) {
    const std::vector<uint8_t> before = memory_;
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t x = 0;
      std::memcpy(&x, &memory_[at + 4 * i], 4);
      x += value;
      std::memcpy(&memory_[at + 4 * i], &x, 4);
    }
    std::vector<uint64_t> written;
    for (uint64_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i] != before[i]) written.push_back(i);
    }
    return written;
  }

 private:
  std::mt19937_64 random_;
  std::vector<uint8_t> memory_;
};

class RandomObserveTest : public ObserveTest,
                          public testing::WithParamInterface<uint32_t> {};

TEST_P(RandomObserveTest, WhatIsSeenIsWhatAModelOfTheProgramWrites) {
  constexpr int kOperations = 80;
  RandomProgram model(GetParam());
  trace_.Begin();
  trace_.Snapshot(
      fb::SnapshotWhen::kStepBegin,
      {{kA, Bytes(kBytes, 1)}, {kB, Bytes(kBytes, 2)}, {kC, model.memory()}});
  std::vector<ExtentSet> expected;
  const auto expect = [&](const std::vector<uint64_t>& offsets) {
    std::vector<Extent> extents;
    extents.reserve(offsets.size());
    for (const uint64_t offset : offsets) extents.push_back({kC + offset, 1});
    expected.emplace_back(std::move(extents));
  };
  for (int i = 0; i < kOperations; ++i) {
    const auto slots = model.Slots();
    const uint64_t a = slots[0] * RandomProgram::kSlot;
    if (model.Pick(4) == 0) {
      const auto n = static_cast<uint32_t>(1 + model.Pick(128));
      const auto value = static_cast<uint32_t>(model.Pick(2) << model.Pick(32));
      trace_.Launch(add_, 0, Pack(kC + a, value, n), 4);
      expect(model.Add(a, value, n));
    } else {
      const auto n = static_cast<uint32_t>(1 + model.Pick(400));
      const uint64_t b = slots[1] * RandomProgram::kSlot + model.Pick(100);
      const uint64_t c = slots[2] * RandomProgram::kSlot + model.Pick(100);
      const uint64_t out = a + model.Pick(100);
      trace_.Launch(masked_, 0, Pack(kC + out, kC + b, kC + c, n, uint32_t{0}),
                    13);
      expect(model.Masked(out, b, c, n));
    }
  }
  for (const bool invert_all : {false, true}) {
    Run({.invert_all = invert_all});
    ASSERT_EQ(seen_.operations.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(At(i).written, expected[i]) << "operation " << i;
      ASSERT_EQ(At(i).match, Match::kWithin) << "operation " << i;
      ASSERT_FALSE(At(i).unrepeatable) << "operation " << i;
    }
    EXPECT_TRUE(seen_.confirmed());
  }
}

TEST_P(RandomObserveTest, EveryLieIsFoundAndNoneIsInvented) {
  std::mt19937 random(GetParam());
  Start();
  std::vector<ExtentSet> lies;
  for (int i = 0; i < 40; ++i) {
    const bool lie = random() % 3 == 0;
    const uint64_t out = kC + 4 * (random() % 1000);
    const uint64_t where = kFar + 256 * i + random() % 200;
    const uint32_t count = lie ? 1 + random() % 50 : 0;
    // 0 and 255 are nowhere before.
    Spill(out, kA, where, count, random() % 2 == 0 ? 0 : 255);
    lies.push_back(count == 0 ? ExtentSet() : Range(where, count));
  }
  Run();
  ASSERT_EQ(seen_.operations.size(), lies.size());
  for (size_t i = 0; i < lies.size(); ++i) {
    EXPECT_EQ(At(i).match, lies[i].empty() ? Match::kWithin : Match::kOutside);
    // The ranges of two lies may meet; a value that is there shows as nothing.
    EXPECT_TRUE(At(i).outside.Minus(lies[i]).empty());
    EXPECT_EQ(At(i).outside.empty(), lies[i].empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomObserveTest,
                         testing::Range(uint32_t{1}, uint32_t{13}));

}  // namespace
}  // namespace heddle::replay
