// SPDX-License-Identifier: Apache-2.0

// What the verbs print for traces/synthetic-decode.htrace, byte for byte, in
// expected/. To accept a change: HEDDLE_UPDATE_GOLDEN=1 golden_test, and look
// at the difference.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/golden/synthetic_trace.h"
#include "tests/e2e/golden/tool_runner.h"

namespace heddle::tools {
namespace {

constexpr char kTrace[] = "synthetic-decode.htrace";

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HEDDLE_EXPECTED_DIR) + "/" + name;
  if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr) WriteText(path, text);
  EXPECT_EQ(ReadText(path), text) << path;
}

// Runs a verb on the committed trace.
std::string Print(std::vector<std::string> args, int exit_code = 0) {
  args.push_back(kTrace);
  const ToolResult result = RunHeddle(args, HEDDLE_TRACES_DIR);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

TEST(Golden, Info) {
  ExpectGolden("info.txt", Print({"info"}));
  ExpectGolden("info-lists.txt",
               Print({"info", "--steps", "--kernels", "--params"}));
  ExpectGolden("info.json", Print({"info", "--json"}));
  ExpectGolden("info-recorded.txt", Print({"info", "--by=recorded"}));
}

TEST(Golden, InfoFitsOnOneScreen) {
  const std::string text = Print({"info"});
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30);
}

TEST(Golden, Dump) {
  ExpectGolden("dump.txt", Print({"dump"}));
  ExpectGolden("dump-step3.txt", Print({"dump", "--calls", "step3"}));
  ExpectGolden("dump-gemv.jsonl",
               Print({"dump", "--json", "--mangled", "--type=launch",
                      "--kernel=gemv", "--calls=0-100"}));
}

TEST(Golden, Convert) {
  ExpectGolden("convert.jsonl", Print({"convert"}));
  ExpectGolden("graphs.dot", Print({"convert", "--to=dot"}));
  ExpectGolden("step1.dot", Print({"convert", "--to=dot", "--step=1"}));
  const std::string chrome =
      Print({"convert", "--to=chrome", "--calls=step1-2"});
  EXPECT_TRUE(nlohmann::json::accept(chrome));
  ExpectGolden("chrome.json", chrome);
}

TEST(Golden, Graph) {
  ExpectGolden("graph.txt", Print({"graph"}));
  ExpectGolden("graph-all.txt", Print({"graph", "--all", "--step=1"}));
  ExpectGolden("graph.dot", Print({"graph", "--dot"}));
  ExpectGolden("graph-all.dot", Print({"graph", "--dot", "--all"}));
  const std::string json = Print({"graph", "--json"});
  EXPECT_TRUE(nlohmann::json::accept(json));
  ExpectGolden("graph.json", json);
  const TestFolder folder;
  EXPECT_EQ(Print({"graph", "--svg", folder.File("graph.svg")}), "");
  ExpectGolden("graph.svg", ReadText(folder.File("graph.svg")));
  EXPECT_EQ(Print({"graph", "-o", folder.File("graph.txt")}), "");
  EXPECT_EQ(ReadText(folder.File("graph.txt")), Print({"graph"}));
}

TEST(Golden, Explain) {
  ExpectGolden("explain-copy.txt", Print({"explain", "--launch=0"}));
  const std::string launch = Print({"explain", "--launch=3"});
  ExpectGolden("explain-launch.txt", launch);
  // The same one, by the number that dump shows.
  EXPECT_EQ(Print({"explain", "--call=107"}), launch);
  const std::string json = Print({"explain", "--json", "--launch=0"});
  EXPECT_TRUE(nlohmann::json::accept(json));
  ExpectGolden("explain-copy.json", json);
}

TEST(Golden, InfoAccessIsInfoAndWhatTheGraphSays) {
  const std::string info = Print({"info"});
  const std::string access = Print({"info", "--access"});
  ASSERT_EQ(access.substr(0, info.size()), info);
  ExpectGolden("info-access.txt", access.substr(info.size()));
  const auto json =
      nlohmann::json::parse(Print({"info", "--access", "--json"}));
  auto numbers = nlohmann::json::parse(Print({"graph", "--json"}))["summary"];
  numbers["step"] = 2;
  EXPECT_EQ(json["access"], numbers);
}

TEST(Golden, Plan) {
  ExpectGolden("plan.txt", Print({"plan", "--explain"}));
  ExpectGolden("plan.json", Print({"plan", "--json", "--explain", "-O1",
                                   "--style=launch-order"}));
}

TEST(Golden, Diff) {
  ExpectGolden("diff-steps.txt",
               Print({"diff", "--calls=step1", "--calls-b=step2", kTrace}, 1));
  ExpectGolden(
      "diff-steps.json",
      Print({"diff", "--json", "--calls=step1", "--calls-b=step2", kTrace}, 1));
  EXPECT_EQ(Print({"diff", kTrace}), "same: 84 operations\n");
}

TEST(Golden, Trim) {
  const TestFolder folder;
  std::filesystem::copy(std::string(HEDDLE_TRACES_DIR) + "/" + kTrace,
                        folder.File(kTrace));
  for (const std::string step : {"2", "3"}) {
    const ToolResult trimmed = RunHeddle(
        {"trim", "--step", step, "-o", "out.htrace", kTrace}, folder.path());
    EXPECT_EQ(trimmed.exit_code, 0) << trimmed.err;
    ExpectGolden("trim-step" + step + ".txt", trimmed.out);
    const ToolResult lines =
        RunHeddle({"convert", "out.htrace"}, folder.path());
    ExpectGolden("trim-step" + step + ".jsonl", lines.out);
  }
}

TEST(Golden, PackChangesNothingThatIsShown) {
  const TestFolder folder;
  const std::string trace = folder.File(kTrace);
  const std::string original = std::string(HEDDLE_TRACES_DIR) + "/" + kTrace;
  std::filesystem::copy(original, trace);
  const auto shown = [&] {
    std::string text;
    for (const std::string& line :
         {RunHeddle({"dump", kTrace}, folder.path()).out,
          RunHeddle({"info", "--params", "--steps", kTrace}, folder.path())
              .out}) {
      // But for the first line, which has the size.
      text += line.substr(text.empty() ? 0 : line.find('\n'));
    }
    return text;
  };
  const std::string before = ReadText(trace);
  const std::string shown_before = shown();
  ASSERT_EQ(RunHeddle({"pack", kTrace}, folder.path()).exit_code, 0);
  const std::string packed = ReadText(trace);
  EXPECT_LT(packed.size(), before.size());
  // Blobs that went into a block are no longer compressed by themselves.
  EXPECT_EQ(shown(), shown_before);
  ASSERT_EQ(RunHeddle({"pack", "--unpack", kTrace}, folder.path()).exit_code,
            0);
  EXPECT_EQ(ReadText(trace), before);
}

// The committed file is what the generator writes, but for what only a person
// who changes the format should change.
TEST(Golden, TheGeneratorStillWritesTheCommittedTrace) {
  const TestFolder folder;
  ASSERT_TRUE(WriteSyntheticTrace(folder.File(kTrace), {}).ok());
  EXPECT_EQ(RunHeddle({"convert", kTrace}, folder.path()).out,
            Print({"convert"}));
}

}  // namespace
}  // namespace heddle::tools
