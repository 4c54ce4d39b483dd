// SPDX-License-Identifier: Apache-2.0

// `heddle record` around programs that call no CUDA, with a stand-in for the
// preload library.

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/golden/synthetic_trace.h"
#include "tests/e2e/golden/tool_runner.h"

namespace heddle::tools {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

// An installation: bin/heddle and lib/heddle/libheddle_preload.so.
class Record : public testing::Test {
 protected:
  Record() : heddle_(folder_.File("bin/heddle")) {
    namespace fs = std::filesystem;
    fs::create_directories(folder_.File("bin"));
    fs::create_directories(folder_.File("lib/heddle"));
    fs::create_directories(folder_.File("work"));
    fs::copy(HEDDLE_BINARY, heddle_);
    fs::copy(HEDDLE_STUB_PRELOAD, preload_);
    EXPECT_TRUE(WriteSyntheticTrace(folder_.File("stub.htrace"), {}).ok());
    std::filesystem::copy(folder_.File("stub.htrace"),
                          folder_.File("work/other.htrace"));
  }

  ToolResult Run(const std::vector<std::string>& args,
                 const Environment& environment = {}) {
    return Tool(heddle_, args, folder_.File("work"), environment).Wait();
  }
  Environment WithTrace() const {
    return {{"STUB_TRACE", folder_.File("stub.htrace")}};
  }

  const TestFolder folder_;
  const std::string heddle_;
  const std::string preload_ = folder_.File("lib/heddle/libheddle_preload.so");
};

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

TEST_F(Record, FlagsReachTheRecorderThroughTheEnvironment) {
  const ToolResult result =
      Run({"record", "-o", "a-%p.htrace", "--memory=full", "--images=own",
           "--step=3,7", "--range=decode", "--window=steps", "--compress=5",
           "--max-bytes=4G", "--inject", "--", "env"},
          {{"HEDDLE_DISABLE", "1"}, {"KEPT", "yes"}});
  EXPECT_EQ(result.exit_code, 0);
  const std::set<std::string> lines = Lines(result.out);
  for (const std::string& line :
       {"LD_PRELOAD=" + preload_,
        "HEDDLE_TRACE=" + folder_.File("work/a-%p.htrace"),
        std::string("HEDDLE_TRACE_KEEP=1"), std::string("HEDDLE_MEMORY=full"),
        std::string("HEDDLE_IMAGES=own"), std::string("HEDDLE_STEP=3,7"),
        std::string("HEDDLE_RANGE=decode"), std::string("HEDDLE_WINDOW=steps"),
        std::string("HEDDLE_COMPRESS=5"),
        std::string("HEDDLE_MAX_BYTES=4294967296"),
        "NVTX_INJECTION64_PATH=" + preload_,
        "CUDA_INJECTION64_PATH=" + preload_, std::string("KEPT=yes")}) {
    EXPECT_EQ(lines.count(line), 1u) << line << "\n" << result.out;
  }
  EXPECT_EQ(result.out.find("HEDDLE_DISABLE"), std::string::npos);
}

TEST_F(Record, WhatTheUserPreloadsStaysBehindHeddle) {
  const ToolResult result = Run({"record", "--", "env"},
                                {{"LD_PRELOAD", "libother.so"},
                                 {"NVTX_INJECTION64_PATH", "/their/nvtx.so"}});
  const std::set<std::string> lines = Lines(result.out);
  EXPECT_EQ(lines.count("LD_PRELOAD=" + preload_ + ":libother.so"), 1u);
  EXPECT_EQ(lines.count("NVTX_INJECTION64_PATH=/their/nvtx.so"), 1u);
  EXPECT_EQ(lines.count("HEDDLE_TRACE=" + folder_.File("work/env.htrace")), 1u);
  EXPECT_EQ(result.out.find("CUDA_INJECTION64_PATH"), std::string::npos);
}

TEST_F(Record, TheTracesThatWereWrittenAreSummed) {
  const ToolResult result =
      Run({"record", "-o", "run.htrace", "--", "true"}, WithTrace());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("work/run.htrace: "), std::string::npos);
  EXPECT_NE(result.err.find("70 launches, 1 graph launches, steps: 6 x 11 "
                            "launches (repeat), 2 snapshots"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("heddle info " + folder_.File("work/run.htrace")),
            std::string::npos);
  // One that lay there before is not of this run.
  EXPECT_EQ(result.err.find("other.htrace"), std::string::npos);
}

TEST_F(Record, AnOldTraceOfTheNameIsReplacedAndAnythingElseIsNot) {
  EXPECT_EQ(Run({"record", "-o", "other.htrace", "--", "true"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("work/other.htrace")));
  WriteText(folder_.File("work/notes.txt"), "precious");
  const ToolResult result = Run({"record", "-o", "notes.txt", "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("is not a trace"), std::string::npos);
  EXPECT_EQ(ReadText(folder_.File("work/notes.txt")), "precious");
}

TEST_F(Record, WithoutATraceItSaysWhatToDo) {
  const ToolResult result = Run({"record", "--", "true", "x"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("no trace was written"), std::string::npos);
  EXPECT_NE(result.err.find("heddle doctor -- true x"), std::string::npos);
}

TEST_F(Record, TheExitStatusIsTheProgramsOwn) {
  EXPECT_EQ(Run({"record", "--", "sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(Run({"record", "--", "sh", "-c", "kill -9 $$"}).exit_code, 137);
}

TEST_F(Record, AProgramThatCannotBeStartedIsAnError) {
  const ToolResult missing = Run({"record", "--", "no-such-program"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err,
            "heddle record: cannot run no-such-program: No such file or "
            "directory\n");
  EXPECT_EQ(Run({"record", "--", "/"}).exit_code, 2);
}

TEST_F(Record, WithoutThePreloadLibraryItSaysWhereItLooked) {
  std::filesystem::remove(preload_);
  const ToolResult result = Run({"record", "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find(preload_), std::string::npos) << result.err;
}

TEST_F(Record, SignalsArePassedOn) {
  Tool tool(heddle_,
            {"record", "--", "sh", "-c",
             "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"},
            folder_.File("work"));
  for (int i = 0; i < 600 && tool.OutSoFar().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_EQ(tool.OutSoFar(), "ready\n");
  kill(tool.pid(), SIGTERM);
  EXPECT_EQ(tool.Wait().exit_code, 5);
}

}  // namespace
}  // namespace heddle::tools
