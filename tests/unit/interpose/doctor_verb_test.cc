// SPDX-License-Identifier: Apache-2.0
// `heddle doctor` as a whole: the tool, the preload library and the runtime.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/interpose/fixture.h"

namespace heddle::interpose_test {
namespace {

ProcessResult Doctor(std::vector<std::string> words,
                     const std::vector<std::string>& command,
                     const std::string& folder = kPrograms) {
  words.insert(words.begin(), {HEDDLE_TEST_TOOL, "doctor"});
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return RunProcess(words, Plain(), folder);
}

// What the program itself printed comes first.
nlohmann::json Json(const ProcessResult& result) {
  const size_t at = result.out.find('{');
  return at == std::string::npos
             ? nlohmann::json()
             : nlohmann::json::parse(result.out.substr(at), nullptr, false);
}

bool HasFinding(const nlohmann::json& json, const std::string& severity,
                const std::string& text) {
  for (const nlohmann::json& finding : json["findings"]) {
    if (finding["severity"] == severity &&
        finding["what"].get<std::string>().find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Doctor, ReportsTheRoutesOfAProgram) {
  const ProcessResult result =
      Doctor({"--json"}, {Program("scenario"), "float"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = Json(result);
  ASSERT_TRUE(json.is_object()) << result.out;
  ASSERT_EQ(json["processes"].size(), 1u) << json;
  const nlohmann::json& process = json["processes"][0];
  EXPECT_EQ(process["driver"], kDriverFolder + "/libcuda.so.1");
  nlohmann::json symbol;
  for (const nlohmann::json& candidate : process["symbols"]) {
    if (candidate["name"] == "cuParamSetf") symbol = candidate;
  }
  ASSERT_TRUE(symbol.is_object()) << process;
  EXPECT_EQ(symbol["calls"], 2);
  EXPECT_EQ(symbol["routes"]["dlsym"], 1);
  EXPECT_EQ(symbol["routes"]["elf"], 0);
  EXPECT_EQ(symbol["understood"], false);
  EXPECT_TRUE(HasFinding(json, "warning", "cuParamSetf")) << json;
}

TEST(Doctor, SaysThatDeepBindingDefeatsPreloading) {
  // With a library whose imports are bound when it is loaded.
  const std::string folder = Program("now");
  const nlohmann::json json =
      Json(Doctor({"--json"}, {Program("injected"), "deep"}, folder));
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(
      HasFinding(json, "warning", "preloading does not reach cuMemAlloc_v2"))
      << json;
  for (const std::string& other : {folder, kPrograms}) {
    const nlohmann::json shallow =
        Json(Doctor({"--json"}, {Program("injected")}, other));
    ASSERT_TRUE(shallow.is_object());
    EXPECT_FALSE(HasFinding(shallow, "warning", "preloading does not reach"))
        << shallow;
  }
}

TEST(Doctor, SaysWhenNoCallIsSeen) {
  const ProcessResult result = Doctor({}, {"/bin/true"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("error: no driver call"), std::string::npos)
      << result.out;
  const ProcessResult fixed = Doctor({}, {Program("static_program")});
  EXPECT_NE(fixed.out.find("linked statically"), std::string::npos)
      << fixed.out;
}

TEST(Doctor, PassesTheExitStatusOn) {
  EXPECT_EQ(Doctor({}, {"/bin/sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(Doctor({}, {"/nonexistent/program"}).exit_code, 2);
}

}  // namespace
}  // namespace heddle::interpose_test
