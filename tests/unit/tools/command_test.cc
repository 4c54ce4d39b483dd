// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

// What Main prints and returns.
struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

Result RunTool(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Result result;
  result.exit_code = Main(args);
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

TEST(Command, WithoutAVerbTheVerbsAreListedAndItIsAnError) {
  const Result result = RunTool({});
  EXPECT_EQ(result.exit_code, kExitBadInput);
  EXPECT_EQ(result.out, "");
  for (const Command* command : Commands()) {
    EXPECT_NE(result.err.find(command->synopsis), std::string::npos);
  }
  for (const char* word : {"help", "--help", "-h"}) {
    EXPECT_EQ(RunTool({word}).exit_code, kExitOk);
    EXPECT_EQ(RunTool({word}).out, result.err);
  }
}

TEST(Command, AMistypedVerbSuggestsTheNearest) {
  EXPECT_EQ(RunTool({"recrod"}).err,
            "heddle: unknown verb \"recrod\", did you mean \"record\"? `heddle "
            "help` lists the verbs.\n");
  EXPECT_EQ(RunTool({"recrod"}).exit_code, kExitBadInput);
  EXPECT_EQ(RunTool({"frobnicate"}).err,
            "heddle: unknown verb \"frobnicate\"; `heddle help` lists the "
            "verbs.\n");
  EXPECT_EQ(RunTool({"help", "inof"}).exit_code, kExitBadInput);
}

TEST(Command, VersionIsPrinted) {
  const Result result = RunTool({"--version"});
  EXPECT_EQ(result.exit_code, kExitOk);
  EXPECT_EQ(result.out.rfind("heddle 0.", 0), 0u);
}

TEST(Command, EveryVerbHasHelpWithItsFlagsInEightyColumns) {
  std::set<std::string> names;
  for (const Command* command : Commands()) {
    EXPECT_TRUE(names.insert(command->name).second);
    EXPECT_EQ(FindCommand(command->name), command);
    const Result result = RunTool({"help", command->name});
    EXPECT_EQ(result.exit_code, kExitOk);
    EXPECT_EQ(RunTool({command->name, "--help"}).out, result.out);
    EXPECT_NE(result.out.find("usage: heddle " + std::string(command->name)),
              std::string::npos);
    EXPECT_NE(result.out.find("flags:"), std::string::npos);
    size_t column = 0;
    std::string line;
    for (const char c : result.out) {
      if (c == '\n') {
        EXPECT_LE(column, 80u) << line;
        column = 0;
        line.clear();
        continue;
      }
      // Bytes that continue a character take no column.
      if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++column;
      line += c;
    }
    EXPECT_EQ(result.out.back(), '\n');
  }
}

TEST(Command, UsageErrorsAreOneLineThatPointsToTheHelp) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"info"},
           {"info", "a", "b"},
           {"info", "--jsno", "a"},
           {"dump", "--calls"},
           {"diff", "a"},
           {"trim", "a"},
           {"trim", "--step=1", "a"},
           {"trim", "--step=-1", "-o", "b"},
           {"pack", "--level=99", "a"},
           {"convert", "--to=xml", "a"},
           {"convert", "--step=1", "a"},
           {"record"},
           {"record", "--"},
           {"record", "true"},
           {"record", "--memory=x", "--"},
           {"run"},
           {"run", "true"},
           {"run", "-O3", "--", "true"},
           {"run", "--verify=0", "--", "true"},
           {"report"},
           {"replay", "--opt=3", "a"},
           {"replay", "--style=auto", "a"}}) {
    const Result result = RunTool(args);
    EXPECT_EQ(result.exit_code, kExitBadInput) << args[0];
    EXPECT_EQ(result.out, "") << args[0];
    EXPECT_EQ(result.err.rfind("heddle " + args[0] + ": ", 0), 0u)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_NE(result.err.find("heddle help " + args[0]), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::tools
