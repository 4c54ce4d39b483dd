// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

struct NvtxRun {
  ProcessResult result;
  std::string events;  // what the runtime was told
};

NvtxRun RunNvtx(const std::string& mode) {
  const std::string log = testing::TempDir() + "heddle-nvtx-test-" +
                          std::to_string(getpid()) + ".log";
  std::remove(log.c_str());
  Environment environment = Active();
  environment["NVTX_INJECTION64_PATH"] = kPreload;
  environment["TEST_LOG"] = log;
  NvtxRun run;
  run.result = RunProcess({Program("nvtx_program"), mode}, environment);
  std::ifstream in(log);
  run.events.assign(std::istreambuf_iterator<char>(in), {});
  std::remove(log.c_str());
  return run;
}

TEST(Nvtx, RangesReachTheRuntimeAndLevelsComeBack) {
  const auto [result, events] = RunNvtx("driver");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out,
            "push 0\npush 1\npush 2\n"
            "other thread: push 0\nother thread: pop 0\n"
            "pop 2\npop 1\npop 0\npop too many negative\n"
            "range ids differ\n"
            "domains ok\n"
            "domain push 0\ndomain push 1\nother domain push 0\n"
            "domain pop 1\nother domain pop 0\ndomain pop 0\n");
  EXPECT_EQ(events,
            "attach\n"
            "push domain=0 id=0 name=outer\n"
            "push domain=0 id=0 name=Gr\u00fc\u00dfe \U0001F9F5\n"
            "push domain=0 id=0 name=ex\n"
            "push domain=0 id=0 name=thread\n"
            "pop domain=0 id=0 name=\n"
            "pop domain=0 id=0 name=\n"
            "pop domain=0 id=0 name=\n"
            "pop domain=0 id=0 name=\n"
            "start domain=0 id=1 name=a\n"
            "start domain=0 id=2 name=b\n"
            "end domain=0 id=1 name=\n"
            "end domain=0 id=2 name=\n"
            "mark domain=0 id=0 name=mark a\n"
            "mark domain=0 id=0 name=mark w\n"
            "mark domain=0 id=0 name=ex\n"
            "mark domain=0 id=0 name=(null)\n"
            "push domain=1 id=0 name=registered\n"
            "push domain=1 id=0 name=\u4e2d\n"
            "push domain=2 id=0 name=\u4e2d\n"
            "pop domain=1 id=0 name=\n"
            "pop domain=2 id=0 name=\n"
            "pop domain=1 id=0 name=\n"
            "start domain=1 id=3 name=wide\n"
            "end domain=1 id=3 name=\n"
            "mark domain=1 id=0 name=wide\n"
            "at_exit\n");
}

TEST(Nvtx, AProcessWithoutADriverStaysWithoutARuntime) {
  const auto [result, events] = RunNvtx("");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, RunNvtx("driver").result.out);
  EXPECT_EQ(events, "");
}

TEST(Nvtx, RangesThatBeganBeforeTheRuntimeEndUnseen) {
  const auto [result, events] = RunNvtx("across");
  EXPECT_EQ(result.out, "push 0\npush 1\npop 1\npop 0\npush 0\npop 0\n");
  EXPECT_EQ(events,
            "attach\n"
            "push domain=0 id=0 name=after\n"
            "pop domain=0 id=0 name=\n"
            "push domain=0 id=0 name=later\n"
            "pop domain=0 id=0 name=\n"
            "at_exit\n");
}

TEST(Nvtx, IsLeftAloneWhenNothingAsksForHeddle) {
  Environment environment = Plain();
  const std::string plain =
      RunProcess({Program("nvtx_program")}, environment).out;
  environment["NVTX_INJECTION64_PATH"] = kPreload;
  EXPECT_EQ(RunProcess({Program("nvtx_program")}, environment).out, plain);
}

}  // namespace
}  // namespace heddle::interpose_test
