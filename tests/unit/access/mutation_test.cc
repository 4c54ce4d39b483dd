// SPDX-License-Identifier: Apache-2.0
// Damaged code and damaged images: the analysis comes to an end in time, and
// keeps its promises (tests/fuzz/kernel_analysis_entry.h).

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/access/code_image.h"
#include "tests/fuzz/kernel_analysis_entry.h"
#include "tests/unit/access/trap_cases.h"

namespace heddle::access {
namespace {

// Far above what any was seen to take (0.1 s, with sanitizers 0.7 s), for
// machines that are busy: it is there to find hangs.
constexpr double kSecondsEach = 30;

// HEDDLE_MUTANTS: more of them.
int Mutants(int otherwise) {
  const char* text = std::getenv("HEDDLE_MUTANTS");
  return text == nullptr ? otherwise : std::atoi(text);
}

std::vector<uint8_t> ReadImage(int arch) {
  std::ifstream file(
      absl::StrCat(HEDDLE_TEST_IMAGES, "/traps.sm_", arch, ".cubin"),
      std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

void Damage(std::mt19937_64& random, size_t from, std::vector<uint8_t>* bytes) {
  const auto any = [&] { return from + random() % (bytes->size() - from); };
  for (uint64_t i = random() % 12; i > 0; --i) {
    (*bytes)[any()] ^= static_cast<uint8_t>(1u << (random() % 8));
  }
  // One instruction over another.
  if (random() % 3 == 0 && bytes->size() >= from + 32) {
    const size_t count = (bytes->size() - from) / 16;
    const size_t to = from + random() % count * 16;
    const size_t of = from + random() % count * 16;
    std::copy_n(
        std::vector<uint8_t>(bytes->begin() + static_cast<int64_t>(of),
                             bytes->begin() + static_cast<int64_t>(of + 16))
            .begin(),
        16, bytes->begin() + static_cast<int64_t>(to));
  }
}

class MutationTest : public testing::TestWithParam<int> {};

TEST_P(MutationTest, DamagedCodeIsAnalyzedInTime) {
  const auto image = CodeImage::Create(ReadImage(GetParam()));
  ASSERT_TRUE(image.ok()) << image.status();
  std::mt19937_64 random(11);
  double longest = 0;
  for (int i = 0; i < Mutants(1500); ++i) {
    const Trap& trap = Traps()[random() % Traps().size()];
    const CodeImage::Kernel* kernel = (*image)->Find(trap.kernel);
    ASSERT_NE(kernel, nullptr);
    std::vector<uint8_t> input(kAnalysisHeader);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    input[0] = GetParam() == 80 ? 0 : (GetParam() == 89 ? 2 : 3);
    input.insert(input.end(), kernel->code.text.begin(),
                 kernel->code.text.end());
    Damage(random, kAnalysisHeader, &input);
    const auto begin = std::chrono::steady_clock::now();
    FuzzKernelAnalysis(input);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    EXPECT_LT(seconds, kSecondsEach) << "mutant " << i << " of " << trap.kernel;
    longest = std::max(longest, seconds);
  }
  RecordProperty("longest_ms", static_cast<int>(1000 * longest));
  std::printf("the longest took %.3f s\n", longest);
}

TEST_P(MutationTest, DamagedImagesAreReadOrRefused) {
  const std::vector<uint8_t> image = ReadImage(GetParam());
  std::mt19937_64 random(12);
  int refused = 0;
  const int count = Mutants(600);
  for (int i = 0; i < count; ++i) {
    std::vector<uint8_t> damaged = image;
    Damage(random, 4, &damaged);
    // The tables at the end and the header at the beginning matter most.
    for (uint64_t j = random() % 6; j > 0; --j) {
      const size_t near = random() % 4096;
      damaged[random() % 2 == 0 ? 4 + near % 60 : damaged.size() - 1 - near] =
          static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    FuzzKernelAnalysis(damaged);
    refused += CodeImage::Create(std::move(damaged)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, count / 10);
  EXPECT_LT(refused, count);
}

INSTANTIATE_TEST_SUITE_P(Chips, MutationTest, testing::Values(80, 89, 90));

}  // namespace
}  // namespace heddle::access
