// SPDX-License-Identifier: Apache-2.0
//
// `heddle replay` as a user calls it, on the host device.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

using nlohmann::json;

constexpr uint64_t kA = 0x610000000000;
constexpr uint64_t kB = kA + 0x1000;
constexpr uint32_t kN = 256;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CliTest : public testing::Test {
 protected:
  CliTest() {
    const std::string image = ReadFile(HEDDLE_REPLAY_KERNELS);
    trace_.Image({image.begin(), image.end()}, fb::ImageKind::kCubin, 9, 0);
    const uint32_t scale = trace_.Kernel("test_scale", {8, 4, 4});
    const uint32_t add = trace_.Kernel("test_add", {8, 8, 8, 4});
    trace_.Alloc(kA, 4 * kN);
    trace_.Alloc(kB, 4 * kN);
    trace_.Begin();
    trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                    {{kA, PackVector(std::vector<float>(kN, 1.5F))},
                     {kB, PackVector(std::vector<float>(kN, 2.5F))}});
    for (int i = 0; i < 5; ++i) {
      trace_.Launch(scale, 5, Pack(kA, 1.25F, kN), 8);
      trace_.Launch(add, 5, Pack(kB, kB, kA, kN, uint32_t{0}), 8);
    }
    trace_.End();
    reader_ = trace_.Read();
  }

  // Runs `heddle replay <arguments> <trace>`; returns the exit code.
  int Replay(const std::string& arguments,
             const std::string& driver_folder = HEDDLE_HOSTDEVICE_DIR) {
    const std::string out = trace_.path() + ".out";
    const std::string command =
        "LD_LIBRARY_PATH=" + driver_folder +
        " HEDDLE_HOSTDEVICE_KERNELS=" HEDDLE_REPLAY_HOST_KERNELS " " HEDDLE_TOOL
        " replay --by=recorded " +
        arguments + " " + trace_.path() + " >" + out + " 2>" + out + ".err";
    const int status = std::system(command.c_str());
    out_ = ReadFile(out);
    err_ = ReadFile(out + ".err");
    std::remove(out.c_str());
    std::remove((out + ".err").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

  TestTrace trace_;
  std::unique_ptr<trace::Reader> reader_;
  std::string out_;
  std::string err_;
};

TEST_F(CliTest, PrintsTimesAndTheVerdictOfBothInputs) {
  EXPECT_EQ(Replay("--verify --loop 3"), 0) << err_;
  EXPECT_NE(out_.find("10 launches of 2 kernels"), std::string::npos) << out_;
  EXPECT_NE(out_.find("verify: passed"), std::string::npos);
  EXPECT_NE(out_.find("input 2: identical"), std::string::npos);
  EXPECT_NE(out_.find("serial "), std::string::npos);
  EXPECT_NE(out_.find("graph "), std::string::npos);
}

TEST_F(CliTest, AGraphWithoutAnEdgeFailsWithExitCodeOne) {
  // Some orders are right by chance, so try the edges of the chain.
  int failed = 0;
  for (int edge = 0; edge < 9; ++edge) {
    const int code =
        Replay("--verify --loop 0 --drop-dependency " + std::to_string(edge));
    ASSERT_LE(code, 1) << err_;
    if (code == 1) {
      EXPECT_NE(out_.find("verify: FAILED"), std::string::npos);
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
}

TEST_F(CliTest, JsonHoldsTheWholeResult) {
  EXPECT_EQ(Replay("--verify --json --loop 3"), 0) << err_;
  const json result = json::parse(out_, nullptr, false);
  ASSERT_TRUE(result.is_object()) << out_;
  EXPECT_EQ(result["launches"], 10);
  EXPECT_EQ(result["dependencies"], 9);
  EXPECT_EQ(result["timings"].size(), 2U);
  EXPECT_EQ(result["verify"]["passed"], true);
  EXPECT_EQ(result["verify"]["inputs"][1]["verdict"], "identical");
  EXPECT_EQ(result["step"]["source"], "recorded");
}

TEST_F(CliTest, WritesReportsOfEveryForm) {
  const std::string base = trace_.path();
  EXPECT_EQ(Replay("--loop 3 --report " + base + ".svg," + base +
                   ".trace.json," + base + ".json," + base + ".txt,-"),
            0)
      << err_;
  EXPECT_EQ(ReadFile(base + ".svg").rfind("<svg", 0), 0U);
  const json trace = json::parse(ReadFile(base + ".trace.json"));
  size_t kernels = 0;
  for (const json& event : trace["traceEvents"]) {
    kernels += event["ph"] == "X" ? 1 : 0;
  }
  EXPECT_EQ(kernels, 20U) << "ten in each mode";
  EXPECT_EQ(json::parse(ReadFile(base + ".json"))["timelines"].size(), 2U);
  EXPECT_NE(ReadFile(base + ".txt").find("test_scale"), std::string::npos);
  EXPECT_NE(out_.find("busy"), std::string::npos);
  for (const char* extension : {".svg", ".trace.json", ".json", ".txt"}) {
    std::remove((base + extension).c_str());
  }
}

TEST_F(CliTest, OneModeAloneCanBeAskedFor) {
  EXPECT_EQ(Replay("--mode graph --json --loop 2"), 0) << err_;
  const json result = json::parse(out_, nullptr, false);
  ASSERT_EQ(result["timings"].size(), 1U);
  EXPECT_EQ(result["timings"][0]["name"], "graph");
}

TEST_F(CliTest, TheRewrittenGraphIsVerifiedComparedAndReported) {
  EXPECT_EQ(Replay("--opt 1 --style programmatic --compare --verify --loop 3"),
            0)
      << err_;
  EXPECT_NE(out_.find("O1 programmatic: 10 of 10 kernels patched, 9 of 9 edges "
                      "converted"),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("1 image with variables: patched in all modes"),
            std::string::npos);
  EXPECT_NE(out_.find("against graph"), std::string::npos);
  EXPECT_NE(out_.find("\nO1 programmatic "), std::string::npos);
  EXPECT_NE(out_.find("fastest: "), std::string::npos);
  EXPECT_NE(out_.find("2 serial, 3 graph and 3 O1 programmatic runs"),
            std::string::npos);
  EXPECT_NE(out_.find("verify: passed"), std::string::npos);
}

TEST_F(CliTest, JsonHoldsTheRewritingToo) {
  const std::string report = trace_.path() + ".json";
  EXPECT_EQ(
      Replay("--opt 1 --style programmatic-early --verify --json --loop 3 "
             "--report " +
             report),
      0)
      << err_;
  const json result = json::parse(out_, nullptr, false);
  ASSERT_TRUE(result.is_object()) << out_;
  const json& rewriting = result["rewriting"];
  EXPECT_EQ(rewriting["replaced_modules"], 1);
  ASSERT_EQ(rewriting["forms"].size(), 1U);
  const json& form = rewriting["forms"][0];
  EXPECT_EQ(form["run"], true);
  EXPECT_EQ(form["style"], "programmatic-early");
  EXPECT_EQ(form["nodes"], 10);
  EXPECT_EQ(form["patched"], 10);
  EXPECT_EQ(form["converted"], 9);
  ASSERT_EQ(result["timings"].size(), 3U);
  const json& graph = result["timings"][1];
  const json& rewritten = result["timings"][2];
  EXPECT_EQ(rewritten["name"], "O1 programmatic-early");
  EXPECT_FALSE(graph.contains("against_graph"));
  EXPECT_DOUBLE_EQ(
      rewritten["against_graph"]["ratio"].get<double>(),
      graph["median_us"].get<double>() / rewritten["median_us"].get<double>());
  EXPECT_EQ(rewriting["fastest"], graph["median_us"] <= rewritten["median_us"]
                                      ? graph["name"]
                                      : rewritten["name"]);
  const json& input = result["verify"]["inputs"][0];
  ASSERT_EQ(input["forms"].size(), 2U);
  EXPECT_EQ(input["forms"][1]["name"], "O1 programmatic-early");
  EXPECT_EQ(input["forms"][1]["verdict"], "identical");
  const json timelines = json::parse(ReadFile(report))["timelines"];
  ASSERT_EQ(timelines.size(), 3U);
  EXPECT_EQ(timelines[2]["name"], "O1 programmatic-early");
  std::remove(report.c_str());
}

TEST_F(CliTest, AutomaticStyleSaysOfEachFormWhatBecameOfIt) {
  EXPECT_EQ(Replay("--opt 1 --json --loop 2"), 0) << err_;
  const json result = json::parse(out_, nullptr, false);
  const json& forms = result["rewriting"]["forms"];
  ASSERT_EQ(forms.size(), 2U) << out_;
  EXPECT_EQ(forms[0]["name"], "O1 programmatic");
  EXPECT_EQ(forms[0]["run"], true);
  EXPECT_EQ(forms[1]["name"], "O1 launch-order");
  size_t run = 0;
  for (const json& form : forms) {
    run += form["run"] == true ? 1 : 0;
    EXPECT_EQ(form["run"] == true, !form.contains("reason"));
  }
  EXPECT_EQ(result["timings"].size(), 2 + run);
}

TEST_F(CliTest, ARewrittenGraphWithoutAnEdgeFailsWithExitCodeOne) {
  int failed = 0;
  for (int edge = 0; edge < 9; ++edge) {
    const int code = Replay(
        "--opt 1 --style programmatic --verify --loop 0 --drop-dependency " +
        std::to_string(edge));
    ASSERT_LE(code, 1) << err_;
    if (code == 1 &&
        out_.find("   O1 programmatic: DIFFERENT") != std::string::npos) {
      EXPECT_NE(out_.find("verify: FAILED"), std::string::npos);
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
}

TEST_F(CliTest, APlanIsRunVerifiedComparedAndTriedInRandomOrders) {
  const std::string plan = trace_.path() + ".hplan";
  // For the recorded device it would not fit this one.
  const std::string here =
      "LD_LIBRARY_PATH=" HEDDLE_HOSTDEVICE_DIR
      " HEDDLE_HOSTDEVICE_KERNELS=" HEDDLE_REPLAY_HOST_KERNELS " ";
  ASSERT_EQ(std::system((HEDDLE_TOOL " plan --by=recorded -q -o " + plan + " " +
                         trace_.path() + " >/dev/null")
                            .c_str()),
            0);
  EXPECT_EQ(Replay("--plan " + plan), 2);
  EXPECT_NE(err_.find("another device"), std::string::npos) << err_;
  ASSERT_EQ(
      std::system((here + HEDDLE_TOOL " plan --by=recorded --device 0 -q -o " +
                   plan + " " + trace_.path() + " >/dev/null")
                      .c_str()),
      0);
  EXPECT_EQ(Replay("--plan " + plan + " --orders 7 --compare --loop 3"), 0)
      << err_;
  EXPECT_NE(out_.find("plan O2 programmatic: "), std::string::npos) << out_;
  EXPECT_NE(out_.find("and 7 random orders runs"), std::string::npos) << out_;
  EXPECT_NE(out_.find("verify: passed"), std::string::npos);
  EXPECT_NE(out_.find("\nplan O2 programmatic "), std::string::npos);
  // Beside O1, and as JSON.
  EXPECT_EQ(
      Replay("--opt 1 --style programmatic --json --loop 2 --plan " + plan), 0)
      << err_;
  const json result = json::parse(out_, nullptr, false);
  ASSERT_EQ(result["timings"].size(), 4U) << out_;
  EXPECT_EQ(result["timings"][3]["name"], "plan O2 programmatic");
  ASSERT_EQ(result["rewriting"]["forms"].size(), 2U);
  EXPECT_EQ(result["rewriting"]["forms"][1]["run"], true);
  // A plan that is none.
  std::ofstream(plan) << "hello";
  EXPECT_EQ(Replay("--plan " + plan), 2);
  EXPECT_NE(err_.find("is not a heddle plan"), std::string::npos) << err_;
  std::remove(plan.c_str());
  EXPECT_EQ(Replay("--plan " + plan), 2);
  EXPECT_NE(err_.find(plan), std::string::npos) << err_;
}

TEST_F(CliTest, MistakesAreExitCodeTwoAndSayWhatToDo) {
  EXPECT_EQ(Replay("--opt 4"), 2);
  EXPECT_EQ(Replay("--style programmatic"), 2);
  EXPECT_NE(err_.find("--opt 1"), std::string::npos) << err_;
  EXPECT_EQ(Replay("--opt 1 --style sideways"), 2);
  EXPECT_EQ(Replay("--compare --loop 0"), 2);
  EXPECT_EQ(Replay("--compare --mode serial"), 2);
  EXPECT_EQ(Replay("--report picture.pdf"), 2);
  EXPECT_NE(err_.find(".svg"), std::string::npos) << err_;
  EXPECT_EQ(Replay("--step 7"), 2);
  EXPECT_NE(err_.find("no step 7"), std::string::npos) << err_;
  EXPECT_EQ(Replay("--mode sideways"), 2);
  EXPECT_EQ(Replay("--device 5"), 2);
  EXPECT_NE(err_.find("cuDeviceGet(5)"), std::string::npos) << err_;
}

TEST_F(CliTest, WithoutADriverTheMessageNamesTheHostDevice) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    GTEST_SKIP() << "this machine has a driver";
  }
  EXPECT_EQ(Replay("", "/nonexistent"), 2);
  EXPECT_NE(err_.find("host device"), std::string::npos) << err_;
}

}  // namespace
}  // namespace heddle::replay
