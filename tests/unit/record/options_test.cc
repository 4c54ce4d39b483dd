// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace heddle::record {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }

  static void Clear() {
    for (const char* name :
         {"HEDDLE_TRACE", "HEDDLE_TRACE_KEEP", "HEDDLE_MEMORY", "HEDDLE_IMAGES",
          "HEDDLE_STEP", "HEDDLE_RANGE", "HEDDLE_WINDOW", "HEDDLE_COMPRESS",
          "HEDDLE_MAX_BYTES", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
          "SLURM_PROCID"}) {
      unsetenv(name);
    }
  }
  static void Set(const char* name, const char* value) {
    setenv(name, value, 1);
  }
};

TEST_F(OptionsTest, NothingSetMeansNothingRecorded) {
  const auto options = OptionsFromEnvironment();
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->trace_path.empty());
  EXPECT_EQ(options->memory, MemoryPolicy::kSmall);
  EXPECT_EQ(options->images, ImagePolicy::kAll);
  EXPECT_TRUE(options->snapshot_steps);
  EXPECT_EQ(options->rank, -1);
}

TEST_F(OptionsTest, PathsExpandProcessRankAndHost) {
  Set("OMPI_COMM_WORLD_RANK", "3");
  Set("HEDDLE_TRACE", "/tmp/a-%p-%r%%-%q.htrace");
  const auto options = OptionsFromEnvironment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->trace_path,
            absl::StrCat("/tmp/a-", getpid(), "-3%-%q.htrace"));
  EXPECT_EQ(options->rank, 3);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  EXPECT_EQ(ExpandPath("%h", -1), host);
  EXPECT_EQ(ExpandPath("x%", -1), "x%");
}

TEST_F(OptionsTest, EveryPolicyParses) {
  Set("HEDDLE_MEMORY", "full");
  Set("HEDDLE_IMAGES", "own");
  Set("HEDDLE_STEP", "5,9");
  Set("HEDDLE_WINDOW", "steps");
  Set("HEDDLE_MAX_BYTES", "4G");
  const auto options = OptionsFromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->memory, MemoryPolicy::kFull);
  EXPECT_EQ(options->images, ImagePolicy::kOwn);
  EXPECT_EQ(options->steps, (std::vector<uint64_t>{5, 9}));
  EXPECT_TRUE(options->window_steps);
  EXPECT_EQ(options->max_bytes, uint64_t{4} << 30);
  EXPECT_EQ(options->ToString(),
            "--memory=full --images=own --window=steps --step=5,9");
}

TEST_F(OptionsTest, BadValuesNameTheVariableAndWhatIsAllowed) {
  const struct {
    const char* name;
    const char* value;
  } kBad[] = {{"HEDDLE_MEMORY", "big"},
              {"HEDDLE_IMAGES", "some"},
              {"HEDDLE_STEP", "1,x"},
              {"HEDDLE_WINDOW", "one"},
              {"HEDDLE_COMPRESS", "99"},
              {"HEDDLE_MAX_BYTES", "4X"},
              {"HEDDLE_MAX_BYTES", "99999999999999G"}};
  for (const auto& bad : kBad) {
    Clear();
    Set(bad.name, bad.value);
    const auto options = OptionsFromEnvironment();
    ASSERT_FALSE(options.ok()) << bad.name << "=" << bad.value;
    const std::string message(options.status().message());
    EXPECT_NE(message.find(absl::StrCat(bad.name, "=", bad.value)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace heddle::record
