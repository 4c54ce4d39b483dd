// SPDX-License-Identifier: Apache-2.0
// The second way in, CUDA_INJECTION64_PATH, and what it reaches that preloading
// does not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

Environment Injected(Environment environment) {
  environment["CUDA_INJECTION64_PATH"] = kPreload;
  return environment;
}

Environment WithoutPreload(Environment environment) {
  environment.erase("LD_PRELOAD");
  return environment;
}

constexpr char kAllHooked[] =
    "import: driver 1 hook 1\n"
    "import of a library: driver 2 hook 2\n"
    "read-only pointer: driver 1 hook 1\n"
    "pointer: driver 1 hook 1\n"
    "stored pointer: driver 1 hook 1\n"
    "pointer in a table: driver 1 hook 1\n"
    "dlsym afterwards: driver 1 hook 1\n";

class Injection : public testing::TestWithParam<std::string> {
 protected:
  ProcessResult Run(const Environment& environment, bool deep = false) {
    std::vector<std::string> command = {Program(GetParam())};
    if (deep) command.push_back("deep");
    return RunProcess(command, environment, kPrograms);
  }
};

TEST_P(Injection, ReachesAProgramThatWasNotPreloaded) {
  const ProcessResult result = Run(Injected(WithoutPreload(Hooked())));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, kAllHooked);
  EXPECT_EQ(result.err, "");
}

TEST_P(Injection, ReachesADeeplyBoundLibraryToo) {
  EXPECT_EQ(Run(Injected(WithoutPreload(Hooked())), true).out, kAllHooked);
}

TEST_P(Injection, MendsWhatPreloadingMisses) {
  // RTLD_DEEPBIND defeats preloading ...
  const ProcessResult preloaded = Run(Hooked(), true);
  EXPECT_NE(preloaded.out.find("import of a library: driver 2 hook 1\n"),
            std::string::npos)
      << preloaded.out;
  // ... and not both together.
  EXPECT_EQ(Run(Injected(Hooked()), true).out, kAllHooked);
}

TEST_P(Injection, ChangesNothingInAPreloadedProgram) {
  EXPECT_EQ(Run(Hooked()).out, kAllHooked);
  const ProcessResult both = Run(Injected(Hooked()));
  EXPECT_EQ(both.out, kAllHooked);
  EXPECT_EQ(both.err, "");
}

TEST_P(Injection, DoesNothingWhenNothingAsksForHeddle) {
  Environment environment = Injected(Plain());
  const ProcessResult result = Run(environment);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, Run(Plain()).out);
  environment = Injected(WithoutPreload(Hooked()));
  environment["HEDDLE_DISABLE"] = "1";
  EXPECT_EQ(Run(environment).out, Run(Plain()).out);
}

TEST_P(Injection, SaysWhatItReplaced) {
  Environment environment = Injected(WithoutPreload(Hooked()));
  environment["HEDDLE_LOG"] = "info";
  const ProcessResult result = Run(environment);
  EXPECT_NE(result.err.find("heddle: injected: "), std::string::npos)
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(All, Injection,
                         testing::Values("injected", "injected_now"),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace heddle::interpose_test
