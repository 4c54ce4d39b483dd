// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/periods.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::trace {
namespace {

using Tokens = std::vector<uint32_t>;

bool HasPeriod(const Tokens& tokens, uint64_t begin, uint64_t end,
               uint64_t period) {
  for (uint64_t i = begin; i + period < end; ++i) {
    if (tokens[i] != tokens[i + period]) return false;
  }
  return true;
}

// All runs, by the definition.
std::vector<Repetition> BruteForce(const Tokens& tokens) {
  std::vector<Repetition> runs;
  const uint64_t n = tokens.size();
  for (uint64_t period = 1; 2 * period <= n; ++period) {
    for (uint64_t begin = 0; begin + 2 * period <= n;) {
      uint64_t end = begin + period;
      while (end < n && tokens[end] == tokens[end - period]) ++end;
      const bool maximal =
          begin == 0 || tokens[begin - 1] != tokens[begin - 1 + period];
      bool smallest = true;
      for (uint64_t p = 1; p < period && smallest; ++p) {
        smallest = !HasPeriod(tokens, begin, end, p);
      }
      if (end - begin >= 2 * period && maximal && smallest) {
        runs.push_back({begin, end, period});
      }
      ++begin;
    }
  }
  std::sort(
      runs.begin(), runs.end(), [](const Repetition& a, const Repetition& b) {
        return std::tuple(a.begin, a.period) < std::tuple(b.begin, b.period);
      });
  return runs;
}

std::vector<Repetition> Find(const Tokens& tokens) {
  return FindRepetitions(tokens, SequenceHash(tokens));
}

std::string Show(const Tokens& tokens) {
  std::string text;
  for (const uint32_t token : tokens) text += std::to_string(token) + " ";
  return text;
}

void ExpectAsBruteForce(const Tokens& tokens) {
  EXPECT_EQ(Find(tokens), BruteForce(tokens)) << Show(tokens);
}

TEST(Periods, ShortSequencesHaveNoRepetition) {
  EXPECT_TRUE(Find({}).empty());
  EXPECT_TRUE(Find({1}).empty());
  EXPECT_TRUE(Find({1, 2}).empty());
}

TEST(Periods, EveryBinarySequenceUpToTwelveTokensMatchesTheDefinition) {
  for (int length = 0; length <= 12; ++length) {
    for (uint32_t bits = 0; bits < (1u << length); ++bits) {
      Tokens tokens;
      for (int i = 0; i < length; ++i) tokens.push_back((bits >> i) & 1);
      ExpectAsBruteForce(tokens);
    }
  }
}

TEST(Periods, RandomSequencesMatchTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const uint32_t alphabet = 2 + random() % 4;
    Tokens tokens(random() % 80);
    for (uint32_t& token : tokens) token = random() % alphabet;
    ExpectAsBruteForce(tokens);
  }
}

TEST(Periods, PlantedNestedRepetitionsMatchTheDefinition) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    Tokens layer(1 + random() % 5);
    for (uint32_t& token : layer) token = random() % 3;
    Tokens step;
    for (uint32_t i = random() % 3; i > 0; --i) step.push_back(random() % 5);
    for (uint32_t i = 1 + random() % 4; i > 0; --i) {
      step.insert(step.end(), layer.begin(), layer.end());
    }
    Tokens tokens;
    for (uint32_t i = random() % 6; i > 0; --i) tokens.push_back(random() % 5);
    for (uint32_t i = 1 + random() % 5; i > 0; --i) {
      tokens.insert(tokens.end(), step.begin(), step.end());
    }
    for (uint32_t i = random() % 6; i > 0; --i) tokens.push_back(random() % 5);
    ExpectAsBruteForce(tokens);
  }
}

TEST(Periods, CommonPrefixAndSuffixAreExactAtEveryDistance) {
  std::mt19937 random(3);
  Tokens tokens(400, 7);
  for (int i = 0; i < 6; ++i) tokens[random() % tokens.size()] = i;
  const SequenceHash hash(tokens);
  const uint64_t n = tokens.size();
  for (uint64_t a = 0; a <= n; a += 3) {
    for (uint64_t b = a + 1; b <= n; b += 5) {
      uint64_t prefix = 0;
      while (b + prefix < n && tokens[a + prefix] == tokens[b + prefix]) {
        ++prefix;
      }
      uint64_t suffix = 0;
      while (suffix < a && tokens[a - suffix - 1] == tokens[b - suffix - 1]) {
        ++suffix;
      }
      EXPECT_EQ(hash.CommonPrefix(a, b), prefix);
      EXPECT_EQ(hash.CommonSuffix(a, b), suffix);
    }
  }
}

// Quadratic behaviour would take minutes at this size.
TEST(Periods, AMillionTokensTakeSecondsInTheWorstShapes) {
  constexpr size_t kTokens = 1'000'000;
  Tokens same(kTokens, 1);
  Tokens nested;
  for (uint32_t i = 0; nested.size() < kTokens; ++i) {
    nested.push_back(i % 1000 == 999 ? 9 : i % 10);
  }
  Tokens fibonacci = {0};  // many runs
  for (Tokens previous = {1}; fibonacci.size() < kTokens;) {
    Tokens next = fibonacci;
    next.insert(next.end(), previous.begin(), previous.end());
    previous = std::move(fibonacci);
    fibonacci = std::move(next);
  }
  fibonacci.resize(kTokens);
  for (const Tokens* tokens : {&same, &nested, &fibonacci}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(Find(*tokens).empty());
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(60));
  }
}

}  // namespace
}  // namespace heddle::trace
