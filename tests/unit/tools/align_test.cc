// SPDX-License-Identifier: Apache-2.0
#include "tools/align.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

using Tokens = std::vector<uint64_t>;

size_t LongestCommonSubsequence(const Tokens& a, const Tokens& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1,
                                        std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j]
                               ? best[i][j] + 1
                               : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best[a.size()][b.size()];
}

// Whether the pairs are a common subsequence.
void ExpectAlignment(const Tokens& a, const Tokens& b,
                     const std::vector<std::pair<uint64_t, uint64_t>>& pairs) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_LT(pairs[i].first, a.size());
    ASSERT_LT(pairs[i].second, b.size());
    EXPECT_EQ(a[pairs[i].first], b[pairs[i].second]);
    if (i == 0) continue;
    EXPECT_LT(pairs[i - 1].first, pairs[i].first);
    EXPECT_LT(pairs[i - 1].second, pairs[i].second);
  }
}

TEST(Align, RandomSequencesHaveALongestCommonSubsequence) {
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t alphabet = 1 + random() % 5;
    Tokens a(random() % 30);
    Tokens b(random() % 30);
    for (uint64_t& token : a) token = random() % alphabet;
    for (uint64_t& token : b) token = random() % alphabet;
    const auto pairs = Align(a, b);
    ExpectAlignment(a, b, pairs);
    EXPECT_EQ(pairs.size(), LongestCommonSubsequence(a, b));
  }
}

TEST(Align, EditedSequencesHaveALongestCommonSubsequence) {
  std::mt19937 random(9);
  for (int round = 0; round < 30; ++round) {
    Tokens a(600);
    for (uint64_t& token : a) token = random() % 40;
    Tokens b = a;
    for (int edit = 0; edit < 60; ++edit) {
      const size_t at = random() % b.size();
      if (random() % 2 == 0) {
        b.erase(b.begin() + static_cast<int64_t>(at));
      } else {
        b.insert(b.begin() + static_cast<int64_t>(at), random() % 40);
      }
    }
    const auto pairs = Align(a, b);
    ExpectAlignment(a, b, pairs);
    EXPECT_EQ(pairs.size(), LongestCommonSubsequence(a, b));
  }
}

TEST(Align, ALargeInsertionLeavesTheRestAligned) {
  Tokens a(50'000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = i * i % 977;
  Tokens b = a;
  b.insert(b.begin() + 20'000, 3'000, 12345);
  const auto pairs = Align(a, b);
  ExpectAlignment(a, b, pairs);
  EXPECT_EQ(pairs.size(), a.size());
}

TEST(Align, SequencesWithoutAnythingInCommonEndSoon) {
  Tokens a(200'000);
  Tokens b(200'000);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = i;
    b[i] = a.size() + i;
  }
  EXPECT_TRUE(Align(a, b).empty());
}

}  // namespace
}  // namespace heddle::tools
