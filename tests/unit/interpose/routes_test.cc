// SPDX-License-Identifier: Apache-2.0
// Whatever way a program comes to a driver function, it ends where it would
// have ended without heddle, and a hook on the function sees the call once. The
// oracle is the same program without the preload library.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

struct Route {
  std::string name;
  std::vector<std::string> command;
  Environment extra;
};

std::ostream& operator<<(std::ostream& out, const Route& route) {
  return out << route.name;
}

class Routes : public testing::TestWithParam<Route> {
 protected:
  ProcessResult Run(Environment environment) {
    for (const auto& [name, value] : GetParam().extra) {
      environment[name] = value;
    }
    return RunProcess(GetParam().command, environment);
  }

  static std::string BeforeBar(const std::string& line) {
    return line.substr(0, line.find(" |"));
  }

  static std::string Tail(const ProcessResult& result) {
    const size_t size = result.out.size();
    return result.out.substr(size > 500 ? size - 500 : 0) + result.err;
  }

  // Two runs must have reached the same, line by line.
  static void ExpectSame(const ProcessResult& plain, const ProcessResult& other,
                         bool family_matters) {
    ASSERT_EQ(plain.exit_code, 0) << Tail(plain);
    ASSERT_EQ(other.exit_code, 0) << Tail(other);
    EXPECT_EQ(other.err, "");
    const std::vector<std::string> a = Lines(plain.out);
    const std::vector<std::string> b = Lines(other.out);
    ASSERT_GT(a.size(), 600u);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      std::string expected = BeforeBar(a[i]);
      std::string actual = BeforeBar(b[i]);
      if (!family_matters) {
        for (std::string* line : {&expected, &actual}) {
          const size_t at = line->find(" proc/");
          if (at != std::string::npos) line->replace(at, 6, " elf/");
        }
      }
      ASSERT_EQ(actual, expected) << "line " << i;
    }
  }
};

TEST_P(Routes, EndInTheSameFunctionWhenNothingAsksForHeddle) {
  ExpectSame(Run(Plain()), Run(Preloaded()), true);
}

TEST_P(Routes, EndInTheSameFunctionWhenActiveWithoutHooks) {
  ExpectSame(Run(Plain()), Run(Active()), true);
}

TEST_P(Routes, PassTheHookOnceAndEndInTheSameFunction) {
  const ProcessResult hooked = Run(Hooked());
  // A hook goes on to the ELF function of its symbol.
  ExpectSame(Run(Plain()), hooked, false);
  int calls = 0;
  for (const std::string& line : Lines(hooked.out)) {
    const size_t bar = line.find(" | ");
    if (bar == std::string::npos || line.find("null |") != std::string::npos ||
        line.find("first ") == 0) {
      continue;
    }
    ++calls;
    // Nested look-ups (cuGetProcAddress itself) count as calls of their own, so
    // the second number, of all calls so far of this function's hook, only has
    // to be there.
    const std::string counts = line.substr(bar + 3);
    EXPECT_EQ(counts.substr(0, counts.find(' ')), "1") << line;
    EXPECT_NE(counts.substr(counts.find(' ') + 1), "0") << line;
  }
  EXPECT_GT(calls, 600);
}

TEST_P(Routes, AreAsWithoutHeddleWhenItIsDisabledByVariable) {
  Environment environment = Hooked();
  environment["HEDDLE_DISABLE"] = "1";
  const ProcessResult result = Run(environment);
  ExpectSame(Run(Plain()), result, true);
  EXPECT_TRUE(result.out == Run(Plain()).out) << "a hook was called";
}

INSTANTIATE_TEST_SUITE_P(
    All, Routes,
    testing::Values(
        Route{"Elf", {Program("probe_direct")}, {}},
        Route{"ElfBoundAtStart", {Program("probe_direct_now")}, {}},
        Route{
            "ElfNotPositionIndependent", {Program("probe_direct_no_pie")}, {}},
        Route{"Dlsym", {Program("probe_lookup"), "dlsym"}, {}},
        Route{"DlsymDefault", {Program("probe_lookup"), "default"}, {}},
        Route{"ProcAddress", {Program("probe_lookup"), "proc"}, {}},
        Route{"ProcAddressOfUnlikeAddresses",
              {Program("probe_lookup"), "proc"},
              {{"FAKE_PROC_ALIAS", "1"}}}),
    [](const testing::TestParamInfo<Route>& info) { return info.param.name; });

}  // namespace
}  // namespace heddle::interpose_test
