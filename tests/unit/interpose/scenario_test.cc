// SPDX-License-Identifier: Apache-2.0
// Situations that a program checks from inside: scenario.cc has the checks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

ProcessResult Scenario(const std::string& name,
                       const Environment& environment) {
  return RunProcess({Program("scenario"), name}, environment, kPrograms);
}

void ExpectOk(const std::string& name, const Environment& environment) {
  const ProcessResult result = Scenario(name, environment);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "ok\n") << name;
  EXPECT_EQ(result.err, "") << name;
}

Environment With(Environment environment, const std::string& name,
                 const std::string& value) {
  environment[name] = value;
  return environment;
}

// A file name that is free; removed with the object.
class TemporaryName {
 public:
  TemporaryName() {
    std::string path = testing::TempDir() + "heddle-XXXXXX";
    close(mkstemp(path.data()));
    path_ = path;
    unlink(path_.c_str());
  }
  ~TemporaryName() { unlink(path_.c_str()); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  const std::string& path() const { return path_; }
  std::string Read() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

TEST(Dispatch, HooksAreSetAndClearedAtAnyTime) {
  ExpectOk("hooks_come_and_go", Active());
}

TEST(Dispatch, HooksChangeUnderCallsOfOtherThreads) {
  ExpectOk("hooks_under_fire", Active());
}

TEST(Dispatch, DisablingLeadsEveryCallToTheDriverAndSaysSoOnce) {
  const ProcessResult result = Scenario("disable", Active());
  EXPECT_EQ(result.out, "ok\n");
  EXPECT_EQ(result.err, "heddle: disabled: the test says so\n");
}

TEST(Dispatch, CallsAreCountedOnlyWhileCountingIsOn) {
  ExpectOk("counting", Active());
}

TEST(Dispatch, EachRouteIsCounted) { ExpectOk("route_counts", Active()); }

TEST(Dispatch, ASymbolThatTheDriverLacksIsNotFound) {
  Environment old = Active();
  old["LD_LIBRARY_PATH"] = kOldDriverFolder;
  ExpectOk("old_driver", old);
  ExpectOk("missing_symbol", old);
  old["HEDDLE_DISABLE"] = "1";
  ExpectOk("missing_symbol", old);
}

TEST(Dispatch, WithoutADriverCallsFailAndNothingElseHappens) {
  Environment environment = Active();
  environment.erase("LD_LIBRARY_PATH");
  ExpectOk("no_driver_at_all", environment);
}

TEST(Dispatch, FloatingPointArgumentsSurviveTheFirstCall) {
  ExpectOk("float", Plain());
  ExpectOk("float", Preloaded());
  ExpectOk("float", Active());
}

TEST(Dispatch, ErrnoSurvivesTheFirstCall) { ExpectOk("keeps_errno", Active()); }

TEST(Lookup, AnAddressOfUnlikeFunctionsIsLeftAlone) {
  ExpectOk("shared_stub", With(Hooked(), "FAKE_SHARED", "1"));
}

TEST(Lookup, ExportTablesPassUntouched) {
  ExpectOk("export_table", Plain());
  ExpectOk("export_table", Active());
  ExpectOk("export_table", Hooked());
}

TEST(Lookup, TheDriversOwnLookupsReachTheDriver) {
  ExpectOk("init", With(Plain(), "FAKE_WSL", "1"));
  ExpectOk("init", With(Active(), "FAKE_WSL", "1"));
  const ProcessResult hooked =
      Scenario("init", With(Hooked(), "FAKE_WSL", "1"));
  EXPECT_EQ(hooked.out, "ok\n") << hooked.err;
}

TEST(FirstCall, OfEightThreadsAtOnceIsSeenByTheHooks) {
  for (int i = 0; i < 5; ++i) {
    ExpectOk("first_call_race", With(Hooked(), "TEST_SLOW_ATTACH", "1"));
  }
}

TEST(Runtime, IsToldOfForksAndHooksWorkInTheChild) {
  const TemporaryName log;
  ExpectOk("fork", With(Active(), "TEST_LOG", log.path()));
  const std::vector<std::string> lines = Lines(log.Read());
  int before = 0, parent = 0, child = 0;
  for (const std::string& line : lines) {
    before += line == "before_fork";
    parent += line == "after_fork_parent";
    child += line == "after_fork_child";
  }
  EXPECT_EQ(before, 20);
  EXPECT_EQ(parent, 20);
  EXPECT_EQ(child, 20);
}

TEST(Runtime, IsToldOnceOfTheEndAndNotCalledAfterwards) {
  const TemporaryName log;
  const ProcessResult result =
      Scenario("call_at_exit", With(Hooked(), "TEST_LOG", log.path()));
  EXPECT_EQ(result.exit_code, 0);
  // Its at_exit runs before handlers that were registered before it.
  EXPECT_EQ(log.Read(), "attach\nat_exit\n");
  EXPECT_EQ(result.out, "ok\nhooked at exit: 1\n");
}

TEST(Runtime, ItsOwnLookupsReachTheDriver) {
  const TemporaryName log;
  ExpectOk("one_call", With(Active(), "TEST_LOG", log.path()));
  EXPECT_EQ(log.Read(), "attach\nat_exit\n");
}

TEST(Cost, OfPassingThroughIsAFewNanoseconds) {
  const auto run = [](const Environment& environment) {
    const ProcessResult result = Scenario("cost", environment);
    EXPECT_EQ(result.exit_code, 0) << result.out;
    return std::strtod(result.out.c_str(), nullptr);
  };
  const double plain = run(Plain());
  const double passing = run(Preloaded());
  const double active = run(Active());
  std::printf("ns for a call: %.2f plain, %.2f preloaded, %.2f active\n", plain,
              passing, active);
  RecordProperty("added_ns", std::to_string(active - plain));
  // Generous: the machine may be busy. Measured alone it is 1 to 2.
  EXPECT_LT(passing - plain, 20);
  EXPECT_LT(active - plain, 20);
}

}  // namespace
}  // namespace heddle::interpose_test
