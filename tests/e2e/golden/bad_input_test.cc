// SPDX-License-Identifier: Apache-2.0

// Every verb on files that are missing, foreign, torn or damaged: one clear
// line and exit code 2, or a result from what can be read; never a crash.

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/trace/writer.h"
#include "tests/e2e/golden/synthetic_trace.h"
#include "tests/e2e/golden/tool_runner.h"

namespace heddle::tools {
namespace {

using Args = std::vector<std::string>;

class BadInput : public testing::Test {
 protected:
  // The arguments of every verb that reads `trace`, the program that
  // replays it aside.
  std::vector<Args> Verbs(const std::string& trace) const {
    return {{"info", trace},
            {"info", "--json", trace},
            {"dump", trace},
            {"dump", "--json", "--calls", "step0", trace},
            {"convert", trace},
            {"convert", "--to=chrome", trace},
            {"convert", "--to=dot", trace},
            {"graph", trace},
            {"graph", "--json", "--all", trace},
            {"graph", "--svg", folder_.File("out.svg"), trace},
            {"explain", "--launch=0", trace},
            {"info", "--access", trace},
            {"diff", trace, trace},
            {"trim", "--step=1", "-o", folder_.File("out.htrace"), trace},
            {"plan", trace},
            {"plan", "--explain", "--json", trace},
            {"pack", "-o", folder_.File("out.htrace"), trace}};
  }

  void ExpectOneErrorLine(const Args& args, const std::string& contains) {
    const ToolResult result = RunHeddle(args);
    EXPECT_EQ(result.exit_code, 2) << args[0];
    EXPECT_EQ(result.err.rfind("heddle " + args[0] + ": ", 0), 0u)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_NE(result.err.find(contains), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.File("out.htrace")));
  }

  const TestFolder folder_;
};

TEST_F(BadInput, AMissingFileIsNamed) {
  const std::string path = folder_.File("missing.htrace");
  for (const Args& args : Verbs(path)) ExpectOneErrorLine(args, path);
}

TEST_F(BadInput, AFileThatIsNoTraceIsCalledWhatItIs) {
  const std::string path = folder_.File("foreign");
  for (const std::string& text :
       {std::string("hello\n"), std::string(), std::string(5000, '\0'),
        std::string("\x7f"
                    "ELF\2\1\1",
                    7) +
            std::string(100, 'x')}) {
    WriteText(path, text);
    for (const Args& args : Verbs(path)) ExpectOneErrorLine(args, path);
  }
}

TEST_F(BadInput, AFolderIsNoTrace) {
  for (const Args& args : Verbs(folder_.path())) {
    ExpectOneErrorLine(args, folder_.path());
  }
}

TEST_F(BadInput, ATraceOfAKilledProgramIsReadAndCalledTruncated) {
  const std::string path = folder_.File("killed.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {.close = false}).ok());
  for (const Args& args : Verbs(path)) {
    const ToolResult result = RunHeddle(args);
    EXPECT_EQ(result.exit_code, 0) << args[0] << ": " << result.err;
    if (args[0] != "info") {
      EXPECT_NE(result.err.find("is truncated"), std::string::npos) << args[0];
    }
  }
  const std::string info = RunHeddle({"info", path}).out;
  EXPECT_NE(info.find("TRUNCATED"), std::string::npos);
  // Packed, it ends properly and says what happened.
  const auto size = std::filesystem::file_size(path);
  EXPECT_EQ(RunHeddle({"pack", path}).exit_code, 0);
  EXPECT_LT(std::filesystem::file_size(path), size);
  const std::string packed = RunHeddle({"info", path}).out;
  EXPECT_EQ(packed.find("TRUNCATED"), std::string::npos);
  EXPECT_NE(packed.find("the recording was truncated"), std::string::npos);
}

TEST_F(BadInput, TornAndDamagedTracesNeverCrash) {
  const std::string good_path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(good_path, {}).ok());
  ASSERT_EQ(RunHeddle({"pack", good_path}).exit_code, 0);
  const std::string packed = ReadText(good_path);
  ASSERT_TRUE(WriteSyntheticTrace(good_path, {}).ok());
  const std::string path = folder_.File("bad.htrace");
  std::mt19937 random(13);
  for (const std::string& good : {ReadText(good_path), packed}) {
    for (int round = 0; round < 12; ++round) {
      std::string bytes = good;
      if (round % 2 == 0) {
        bytes.resize(random() % bytes.size());
      } else {
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << (round % 8));
      }
      WriteText(path, bytes);
      for (const Args& args : Verbs(path)) {
        const ToolResult result = RunHeddle(args);
        EXPECT_LE(result.exit_code, 2) << args[0] << " round " << round;
        if (result.exit_code == 2) {
          EXPECT_NE(result.err, "") << args[0];
        }
      }
    }
  }
}

TEST_F(BadInput, SelectionsThatTheTraceDoesNotHaveAreErrors) {
  const std::string path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  const std::string out = folder_.File("out.htrace");
  ExpectOneErrorLine({"dump", "--calls=step99", path}, "6 steps, 0 to 5");
  ExpectOneErrorLine({"dump", "--calls=5-2", path}, "ends before it begins");
  ExpectOneErrorLine({"dump", "--kernel=(", path}, "--kernel");
  ExpectOneErrorLine({"dump", "--type=lunch", path}, "\"launch\"");
  ExpectOneErrorLine({"dump", "--calls=step0", "--by=magic", path}, "magic");
  ExpectOneErrorLine({"info", "--by=repeat:0", path}, "repeat:0");
  ExpectOneErrorLine({"trim", "--step=6", "-o", out, path}, "0 to 5");
  ExpectOneErrorLine({"trim", "--calls=9999", "-o", out, path}, "none of the");
  ExpectOneErrorLine({"trim", "--calls=0", "-o", out, path}, "no device work");
  ExpectOneErrorLine({"convert", "--to=dot", "--graph=7", path}, "graph 7");
  ExpectOneErrorLine({"convert", "--to=dot", "--step=7", path}, "step 7");
  ExpectOneErrorLine({"diff", "--calls-b=step9", path, path}, path);
  ExpectOneErrorLine({"graph", "--step=6", path}, "there is no step 6");
  ExpectOneErrorLine({"graph", "--by=magic", path}, "magic");
  ExpectOneErrorLine({"info", "--access", "--step=6", path}, "no step 6");
  ExpectOneErrorLine({"explain", "--launch=13", path}, "13 operations");
  ExpectOneErrorLine({"explain", "--launch=-1", path}, "counted from 0");
  ExpectOneErrorLine({"explain", "--call=1", path}, "records 102 to");
  ExpectOneErrorLine({"explain", "--call=107.2", path}, "107.2");
  ExpectOneErrorLine({"explain", "--call=x", path}, "a record number");
}

TEST_F(BadInput, FlagsThatExcludeEachOtherAreUsageErrors) {
  const std::string path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  for (const Args& args :
       {Args{"graph", "--json", "--dot", path},
        Args{"graph", "--step=-2", path}, Args{"graph"}, Args{"explain", path},
        Args{"explain", "--launch=1", "--call=107", path},
        Args{"explain", "--launch=1", "--step=-2", path},
        Args{"info", "--step=1", path}}) {
    const ToolResult result = RunHeddle(args);
    EXPECT_EQ(result.exit_code, 2) << args[0];
    EXPECT_EQ(result.out, "") << args[0];
    EXPECT_NE(result.err.find("heddle help " + args[0]), std::string::npos)
        << result.err;
  }
}

TEST_F(BadInput, PlansThatAreAskedForWronglyAreErrors) {
  const std::string path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  const std::string plan = folder_.File("out.hplan");
  ExpectOneErrorLine({"plan", "--step=6", path}, "no step 6");
  ExpectOneErrorLine({"plan", "-O3", path}, "--opt must be 1 or 2");
  ExpectOneErrorLine({"plan", "-O1", "--branches=2", path}, "-O2");
  ExpectOneErrorLine({"plan", "--branches=0", path}, "--branches");
  ExpectOneErrorLine({"plan", "--branches=65", path}, "1 and 64");
  ExpectOneErrorLine({"plan", "--style=sideways", path}, "sideways");
  ExpectOneErrorLine({"plan", "--measure", "--durations=x", path},
                     "exclude each other");
  ExpectOneErrorLine({"plan", "--durations", plan, path}, plan);
  WriteText(plan, "{\"timelines\": []}");
  ExpectOneErrorLine({"plan", "--durations", plan, path}, "no serial run");
  WriteText(plan, "hello");
  ExpectOneErrorLine({"plan", "--durations", plan, path}, "no report");
  ExpectOneErrorLine({"plan", "-o", folder_.File("no/such/out"), path},
                     "no/such/out");
  ASSERT_EQ(RunHeddle({"plan", "-q", "-o", plan, path}).exit_code, 0);
  EXPECT_EQ(RunHeddle({"plan", "--durations", plan, path}).exit_code, 0);
  ExpectOneErrorLine({"replay", "--orders=3", path}, "need --plan");
  ExpectOneErrorLine({"replay", "--seed=3", path}, "need --plan");
}

TEST_F(BadInput, ResultsThatCannotBeWrittenAreErrors) {
  const std::string path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  const std::string nowhere = folder_.File("no/such/folder/out");
  for (const Args& args :
       {Args{"trim", "--step=1", "-o", nowhere, path},
        Args{"pack", "-o", nowhere, path}, Args{"convert", "-o", nowhere, path},
        Args{"graph", "-o", nowhere, path},
        Args{"graph", "--svg", nowhere, path},
        Args{"record", "-o", nowhere, "--", "true"}}) {
    const ToolResult result = RunHeddle(args);
    EXPECT_EQ(result.exit_code, 2) << args[0];
    EXPECT_NE(result.err, "") << args[0];
  }
  EXPECT_EQ(RunHeddle({"convert", "-o", path, path}).exit_code, 2);
  EXPECT_EQ(RunHeddle({"graph", "-o", path, path}).exit_code, 2);
  EXPECT_EQ(RunHeddle({"graph", "--svg", path, path}).exit_code, 2);
  EXPECT_EQ(Tool("/bin/sh", {"-c", std::string(HEDDLE_BINARY) + " dump " +
                                       path + " > /dev/full"})
                .Wait()
                .exit_code,
            2);
}

TEST_F(BadInput, AFailedPackLeavesTheTraceAsItWas) {
  const std::string path = folder_.File("good.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  const std::string before = ReadText(path);
  // No file may be larger than 8 KiB.
  const ToolResult result =
      Tool("/bin/sh", {"-c", std::string("ulimit -f 8; exec ") + HEDDLE_BINARY +
                                 " pack " + path})
          .Wait();
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(ReadText(path), before);
  const auto files = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(BadInput, ATraceThatIsBeingWrittenIsNotPacked) {
  const std::string path = folder_.File("live.htrace");
  auto writer = trace::Writer::Create(path, {});
  ASSERT_TRUE(writer.ok());
  fb::NoteT note;
  (*writer)->AppendObject(note);
  const ToolResult result = RunHeddle({"pack", path});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("is being written"), std::string::npos)
      << result.err;
  EXPECT_EQ(RunHeddle({"info", path}).exit_code, 0);
}

TEST_F(BadInput, PackKeepsTheModeOfTheFileAndFollowsLinks) {
  const std::string path = folder_.File("good.htrace");
  const std::string link = folder_.File("link.htrace");
  ASSERT_TRUE(WriteSyntheticTrace(path, {}).ok());
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(symlink("good.htrace", link.c_str()), 0);
  const auto size = std::filesystem::file_size(path);
  ASSERT_EQ(RunHeddle({"pack", link}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_LT(std::filesystem::file_size(path), size);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

}  // namespace
}  // namespace heddle::tools
