// SPDX-License-Identifier: Apache-2.0

// The entry of the fuzzer, driven over the golden trace and many mutations of
// it, so that a build without libFuzzer runs it too.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/fuzz/trace_reader_entry.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

constexpr char kGolden[] = HEDDLE_TRACES_DIR "/golden-v1.htrace";

// One random change, of the kinds that fuzzers make.
void Mutate(std::vector<uint8_t>& bytes, std::mt19937& random) {
  const size_t at = random() % bytes.size();
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
  const size_t length = std::min<size_t>(1 + random() % 32, bytes.size() - at);
  const auto end = begin + static_cast<ptrdiff_t>(length);
  switch (random() % 7) {
    case 0:
      *begin ^= static_cast<uint8_t>(1u << (random() % 8));
      break;
    case 1:
      *begin = static_cast<uint8_t>(random());
      break;
    case 2:  // a small or an extreme number
      std::fill(begin, end, static_cast<uint8_t>(random() % 2 == 0 ? 0 : 255));
      break;
    case 3:
      *begin = static_cast<uint8_t>(*begin + 1 - 2 * (random() % 2));
      break;
    case 4:
      bytes.erase(begin, end);
      break;
    case 5: {
      const std::vector<uint8_t> copy(begin, end);
      bytes.insert(
          bytes.begin() + static_cast<ptrdiff_t>(random() % (bytes.size() + 1)),
          copy.begin(), copy.end());
      break;
    }
    default:
      std::copy(begin, end,
                bytes.begin() + static_cast<ptrdiff_t>(
                                    random() % (bytes.size() - length + 1)));
  }
  if (bytes.empty()) bytes.push_back(0);
}

TEST(FuzzEntryTest, GoldenTraceAndItsMutationsCrashNothing) {
  const std::vector<uint8_t> golden = ReadFile(kGolden);
  ASSERT_GT(golden.size(), 1000u);
  FuzzTraceReader(golden);
  std::mt19937 random(20240601);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> bytes = golden;
    const uint32_t changes = 1 + random() % 8;
    for (uint32_t i = 0; i < changes; ++i) Mutate(bytes, random);
    FuzzTraceReader(bytes);
  }
}

TEST(FuzzEntryTest, RandomBytesCrashNothing) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    FuzzTraceReader(RandomBytes(seed, seed));
  }
}

}  // namespace
}  // namespace heddle::trace
