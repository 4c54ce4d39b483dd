// SPDX-License-Identifier: Apache-2.0
//
// `heddle probe` as a user calls it, on the host device.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

using nlohmann::json;

constexpr uint64_t kA = 0x610000000000;
constexpr uint64_t kB = kA + 0x1000;
constexpr uint64_t kList = kA + 0x2000;
constexpr uint32_t kN = 256;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ProbeCliTest : public testing::Test {
 protected:
  ProbeCliTest() {
    const std::string image = ReadFile(HEDDLE_OBSERVE_KERNELS);
    trace_.Image({image.begin(), image.end()}, fb::ImageKind::kCubin, 9, 0);
    copy_ = trace_.Kernel("honest_copy", {8, 8, 4});
    spill_ = trace_.Kernel("spilling_copy", {8, 8, 4, 8, 4, 4});
    scatter_ = trace_.Kernel("scatter", {8, 8, 4});
    trace_.Alloc(kA, 4 * kN);
    trace_.Alloc(kB, 4 * kN);
    trace_.Alloc(kList, 8 * kN);
    trace_.Begin();
    std::vector<uint64_t> list(kN);
    for (uint32_t i = 0; i < kN; ++i) list[i] = kB + 4 * i;
    trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                    {{kA, PackVector(std::vector<float>(kN, 1.5F))},
                     {kB, PackVector(std::vector<float>(kN, 2.5F))},
                     {kList, PackVector(list)}});
    trace_.Launch(copy_, 0, Pack(kB, kA, kN), 8);
  }
  void Spill() {
    trace_.Launch(
        spill_, 0,
        Pack(kB, kA, kN, uint32_t{0}, kList + 24, uint32_t{8}, uint32_t{7}), 8);
  }

  // Runs `heddle probe <arguments> <trace>`; returns the exit code.
  int Probe(const std::string& arguments,
            const std::string& driver_folder = HEDDLE_HOSTDEVICE_DIR) {
    if (reader_ == nullptr) {
      trace_.End();
      reader_ = trace_.Read();
    }
    return Call(arguments + " " + trace_.path(), driver_folder);
  }
  int Call(const std::string& arguments,
           const std::string& driver_folder = HEDDLE_HOSTDEVICE_DIR) {
    const std::string out = trace_.path() + ".out";
    const std::string command =
        "LD_LIBRARY_PATH=" + driver_folder +
        " HEDDLE_HOSTDEVICE_KERNELS=" HEDDLE_OBSERVE_HOST_KERNELS
        " " HEDDLE_TOOL " probe " +
        arguments + " >" + out + " 2>" + out + ".err";
    const int status = std::system(command.c_str());
    out_ = ReadFile(out);
    err_ = ReadFile(out + ".err");
    std::remove(out.c_str());
    std::remove((out + ".err").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }
  bool Says(const std::string& text) const {
    return out_.find(text) != std::string::npos;
  }

  TestTrace trace_;
  uint32_t copy_ = 0;
  uint32_t spill_ = 0;
  uint32_t scatter_ = 0;
  std::unique_ptr<trace::Reader> reader_;
  std::string out_;
  std::string err_;
};

TEST_F(ProbeCliTest, ARightPredictionIsConfirmed) {
  EXPECT_EQ(Probe("--by=recorded"), 0) << err_;
  EXPECT_TRUE(Says("1 write what is predicted: 1.00 KiB of 1.00 KiB (100.0%)"))
      << out_;
  EXPECT_TRUE(Says("probe: nothing contradicts the prediction\n")) << out_;
  EXPECT_FALSE(Says("honest_copy")) << "is not remarkable";
  EXPECT_EQ(Probe("--by=recorded --all --quiet"), 0) << err_;
  EXPECT_TRUE(Says("0  within  honest_copy")) << out_;
  EXPECT_EQ(err_, "");
}

TEST_F(ProbeCliTest, ALieIsAFailureWithPlaceAndWhatThePredictionRestsOn) {
  Spill();
  EXPECT_EQ(Probe("--by=recorded"), 1) << err_;
  EXPECT_TRUE(Says("1  outside  spilling_copy")) << out_;
  EXPECT_TRUE(Says("0x610000002018: 0x610000002000 + 24 (of 2048 bytes)"))
      << out_;
  EXPECT_TRUE(Says("predicted: write 1.00 KiB, proved: ")) << out_;
  EXPECT_TRUE(Says("probe: FAILED")) << out_;
  EXPECT_TRUE(Says("sm_90")) << out_;
  EXPECT_EQ(Probe("--by=recorded --limit 1"), 0) << "is not reached";
  EXPECT_EQ(Probe("--by=recorded --watch=predicted"), 1);
  EXPECT_TRUE(
      Says("8 B at 0x610000002000 + 24 (of 2048 bytes), last by 1, "
           "spilling_copy"))
      << out_;
}

TEST_F(ProbeCliTest, JsonHoldsEveryOperation) {
  trace_.Launch(scatter_, 0, Pack(kList, kA, kN), 8);
  Spill();
  EXPECT_EQ(Probe("--by=recorded --json --use-observed"), 1) << err_;
  const json result = json::parse(out_, nullptr, false);
  ASSERT_TRUE(result.is_object()) << out_;
  EXPECT_EQ(result["schema"], 1);
  EXPECT_EQ(result["confirmed"], false);
  EXPECT_EQ(result["instruction_set"], "sm_90");
  EXPECT_EQ(result["matches"]["within"], 1);
  EXPECT_EQ(result["matches"]["outside"], 1);
  EXPECT_EQ(result["matches"]["unknown"], 1);
  EXPECT_EQ(result["edges"]["predicted"], 2);
  ASSERT_EQ(result["operations"].size(), 3U);
  const json& within = result["operations"][0];
  EXPECT_EQ(within["predicted"], 4 * kN);
  EXPECT_EQ(within["observed"], 4 * kN);
  EXPECT_EQ(within["inverted"], 4 * kN);
  EXPECT_EQ(within["repeats"], true);
  const json& unknown = result["operations"][1];
  EXPECT_TRUE(unknown["predicted"].is_null());
  EXPECT_EQ(unknown["observed"], 4 * kN);
  EXPECT_EQ(unknown["complete"], true);
  EXPECT_FALSE(unknown["unknown"].empty());
  const json& outside = result["operations"][2];
  EXPECT_EQ(outside["name"], "spilling_copy");
  ASSERT_EQ(outside["extents"].size(), 1U);
  EXPECT_EQ(outside["extents"][0]["address"], "0x610000002018");
  EXPECT_EQ(outside["extents"][0]["size"], 8);
  EXPECT_FALSE(outside["predicted_by"].empty());
}

TEST_F(ProbeCliTest, WrongUsageAndBadFilesAreRefusedInOneLine) {
  for (const char* arguments : {"--limit=-1", "--step=-2", "--device=-1",
                                "--watch=some", "--invert=some", "--step=99",
                                "--by=nothing", "--device=77", "--unknown"}) {
    EXPECT_EQ(Probe(std::string("-q ") + arguments), 2) << arguments;
    EXPECT_EQ(err_.rfind("heddle probe: ", 0), 0U) << err_;
    EXPECT_EQ(out_, "") << arguments;
  }
  EXPECT_EQ(Call(""), 2);
  EXPECT_EQ(Call("-q /nowhere/x.htrace"), 2);
  EXPECT_NE(err_.find("/nowhere/x.htrace"), std::string::npos);
  EXPECT_EQ(Call("-q " HEDDLE_OBSERVE_KERNELS), 2) << "is no trace";
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
}

TEST_F(ProbeCliTest, WithoutADriverItSaysSo) {
  EXPECT_EQ(Probe("-q --by=recorded", "/nowhere"), 2);
  EXPECT_NE(err_.find("libcuda"), std::string::npos) << err_;
}

}  // namespace
}  // namespace heddle::replay
