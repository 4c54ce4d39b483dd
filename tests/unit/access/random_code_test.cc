// SPDX-License-Identifier: Apache-2.0
// Random code, run by the machine of tests/sass_machine and analyzed: no access
// may be outside of what was predicted for its instruction. Looks for wrong
// models of instructions, where the analysis is narrower than the machine.

#include "tests/unit/access/random_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/access/case_runner.h"
#include "tests/unit/access/random_guards.h"
#include "tests/unit/access/trap_cases.h"

namespace heddle::access {
namespace {

constexpr const char* kKernel = "strided";  // its parameters are 64 bytes

// HEDDLE_RANDOM_PROGRAMS and HEDDLE_RANDOM_SEED, for longer hunts.
uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

class RandomCodeTest : public testing::TestWithParam<int> {
 protected:
  RandomCodeTest()
      : runner_({"traps", "semantics", "adversarial"}, GetParam()) {
    pool_.AddPool(runner_.program("traps"));
    pool_.AddPool(runner_.program("semantics"));
  }

  Case Make(std::mt19937_64& random) const {
    Case made;
    made.code = pool_.Make(runner_.image().Find(kKernel)->param_base, random);
    Draw(kKernel, random, &made);
    return made;
  }

  // A launch with two pointers and six numbers.
  void Draw(const std::string& kernel, std::mt19937_64& random,
            Case* drawn) const {
    Case& made = *drawn;
    made.launch.kernel = kernel;
    const auto draw = [&](int low, int high) {
      return static_cast<uint32_t>(
          std::uniform_int_distribution<int>(low, high)(random));
    };
    made.launch.grid = {draw(1, 3), draw(0, 3) == 0 ? 2u : 1u, 1};
    made.launch.block = {draw(0, 1) == 0 ? 32u : draw(1, 64), 1, 1};
    if (draw(0, 4) == 0) made.launch.block[1] = 3;
    std::vector<uint64_t> params(8);
    // Close to a multiple of 2^32, so that sums carry.
    params[0] = kFirst + (uint64_t{draw(0, 4)} << 32) - 16 * draw(0, 20);
    params[1] = kFirst + (uint64_t{draw(0, 4)} << 32) - 1000 + draw(0, 2000);
    for (size_t i = 2; i < params.size(); ++i) {
      const auto half = [&]() -> uint64_t {
        switch (draw(0, 4)) {
          case 0:
            return draw(0, 9);
          case 1:
            return static_cast<uint32_t>(-1 - static_cast<int>(draw(0, 9)));
          case 2:
            return uint32_t{1} << draw(0, 31);
          case 3:
            return draw(0, 3000);
          default:
            return static_cast<uint32_t>(random());
        }
      };
      const uint64_t low = half();
      params[i] = low | half() << 32;
      if (draw(0, 2) == 0) params[i] = draw(0, 100);
    }
    made.launch.params.resize(64);
    std::memcpy(made.launch.params.data(), params.data(), 64);
  }

  // Checks `count` cases, made from a seed of their own each.
  void CheckAll(uint64_t count,
                const std::function<Case(std::mt19937_64&)>& make) {
    const uint64_t programs = Setting("HEDDLE_RANDOM_PROGRAMS", count);
    const uint64_t seed = Setting("HEDDLE_RANDOM_SEED", 1);
    uint64_t checked = 0;
    uint64_t proved = 0;
    uint64_t complaints = 0;
    for (uint64_t i = 0; i < programs; ++i) {
      std::mt19937_64 random(seed * 1'000'000 + i);
      const Case made = make(random);
      const CoverageResult result = runner_.Check(made);
      checked += result.checked;
      proved += result.proved;
      if (result.complaint.empty()) continue;
      const Case small = runner_.Smallest(made);
      ADD_FAILURE() << "program " << seed * 1'000'000 + i << " of "
                    << made.launch.kernel << ": "
                    << runner_.Check(small).complaint << "\n"
                    << runner_.Listing(small);
      if (++complaints == 6) break;
    }
    std::printf("%lu ended, %lu failed; %lu accesses checked, %lu proved\n",
                static_cast<unsigned long>(runner_.ended()),
                static_cast<unsigned long>(runner_.failed()),
                static_cast<unsigned long>(checked),
                static_cast<unsigned long>(proved));
    EXPECT_GT(proved, programs);
  }

  RandomCode pool_;
  CaseRunner runner_;
};

TEST_P(RandomCodeTest, NoAccessIsOutsideOfWhatWasPredicted) {
  CheckAll(1000, [this](std::mt19937_64& random) { return Make(random); });
}

TEST_P(RandomCodeTest, GuardedCodeStaysWithinWhatIsPredictedOfIt) {
  CheckAll(1500, [this](std::mt19937_64& random) {
    // Others on each chip.
    random.discard(static_cast<uint64_t>(GetParam()));
    Case made;
    made.code = MakeGuardedCode(runner_.image().Find(kKernel)->param_base,
                                static_cast<uint32_t>(GetParam()), random);
    Draw(kKernel, random, &made);
    return made;
  });
}

// Kernels as compiled, with any numbers for parameters, and with one or two
// instructions changed.
TEST_P(RandomCodeTest, MutantsOfKernelsStayWithinWhatIsPredictedOfThem) {
  // Where calls and jumps by a table go is not what is tested; variables are
  // not in memory here.
  const std::set<std::string> left_out = {"calls", "switched",
                                          "module_variables"};
  CheckAll(400, [&](std::mt19937_64& random) {
    const Trap* trap;
    do {
      trap = &Traps()[random() % Traps().size()];
    } while (left_out.count(trap->kernel) != 0);
    const TrapCase launch = trap->make(random);
    Case made;
    made.buffers = launch.buffers;
    made.launch = {launch.kernel, launch.grid, launch.block, 0, launch.params};
    for (uint32_t& size : made.launch.grid) size = std::min(size, 3u);
    made.code = runner_.CodeOf(launch.kernel);
    for (uint64_t i = random() % 3; i > 0; --i)
      pool_.Mutate(&made.code, random);
    if (random() % 3 != 0) return made;
    bool too_many;
    const std::vector<uint32_t> pointers =
        FindPointers(made.launch.params, OneAllocation(), &too_many);
    for (uint32_t at = 0; at + 4 <= made.launch.params.size(); at += 4) {
      if (std::count(pointers.begin(), pointers.end(), at & ~7u) != 0) continue;
      if (random() % 2 != 0) continue;
      const auto number =
          static_cast<uint32_t>(random() >> (32 + random() % 32)) *
          (random() % 3 == 0 ? ~0u : 1u);
      std::memcpy(&made.launch.params[at], &number, 4);
    }
    return made;
  });
}

// Compiled from code that is made to be misunderstood.
TEST_P(RandomCodeTest, AdversarialKernelsStayWithinWhatIsPredictedOfThem) {
  runner_.Use("adversarial");
  std::vector<std::string> names;
  for (const auto& [name, kernel] : runner_.program().kernels)
    names.push_back(name);
  CheckAll(300, [&](std::mt19937_64& random) {
    Case made;
    const std::string& name = names[random() % names.size()];
    Draw(name, random, &made);
    made.code = runner_.CodeOf(name);
    // Where returns go is not what is tested.
    const std::vector<sass_machine::Code>& code =
        runner_.program().kernels.at(name).code;
    const bool calls = std::any_of(
        code.begin(), code.end(), [](const sass_machine::Code& instruction) {
          return instruction.decoded.flow == cubin::SassFlow::kCall;
        });
    if (!calls && random() % 2 == 0) pool_.Mutate(&made.code, random);
    return made;
  });
}

INSTANTIATE_TEST_SUITE_P(Chips, RandomCodeTest, testing::Values(80, 89, 90));

}  // namespace
}  // namespace heddle::access
