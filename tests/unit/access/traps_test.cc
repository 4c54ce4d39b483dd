// SPDX-License-Identifier: Apache-2.0
// The kernels of traps.cu in the machine of tests/sass_machine: right results,
// and a log that tells what happened to memory.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/sass_machine/machine.h"
#include "tests/unit/access/trap_cases.h"

namespace heddle::access {
namespace {

using sass_machine::AccessLog;
using sass_machine::AccessMode;
using sass_machine::LoggedAccess;
using sass_machine::Memory;
using sass_machine::Program;

std::vector<uint8_t> Image(const char* name) {
  std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + name,
                     std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

constexpr const char* kImages[] = {"traps.sm_80.cubin", "traps.sm_89.cubin",
                                   "traps.sm_90.cubin"};

void ExpectContent(const TrapCase& launch, const Memory& memory) {
  std::map<uint64_t, const TrapExpectation*> expected;
  for (const TrapExpectation& one : launch.expected) {
    expected[one.address] = &one;
  }
  for (const TrapBuffer& buffer : launch.buffers) {
    const auto found = expected.find(buffer.address);
    const std::vector<uint8_t> after = memory.Values<uint8_t>(buffer.address);
    if (found == expected.end()) {
      EXPECT_EQ(after, buffer.content) << "a buffer that nobody writes";
    } else if (!found->second->close) {
      EXPECT_EQ(after, found->second->content);
    } else {
      const std::vector<float> got = memory.Values<float>(buffer.address);
      ASSERT_EQ(got.size() * sizeof(float), found->second->content.size());
      for (size_t i = 0; i < got.size(); ++i) {
        float wanted = 0;
        std::memcpy(&wanted, &found->second->content[i * 4], 4);
        ASSERT_NEAR(got[i], wanted, 2e-5 * (1 + std::fabs(wanted))) << i;
      }
    }
  }
}

// Every byte that changed was logged as written, and all that was logged is in
// buffers.
void ExpectLogExplains(const TrapCase& launch, const Memory& memory,
                       const AccessLog& log) {
  std::set<uint64_t> written;
  for (const LoggedAccess& access : log) {
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_LT(access.block[i], launch.grid[i]);
      ASSERT_LT(access.thread[i], launch.block[i]);
    }
    if (access.mode == AccessMode::kRead) continue;
    for (uint64_t i = 0; i < access.bytes; ++i) {
      written.insert(access.address + i);
    }
  }
  for (const TrapBuffer& buffer : launch.buffers) {
    const std::vector<uint8_t> after = memory.Values<uint8_t>(buffer.address);
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] != buffer.content[i]) {
        ASSERT_EQ(written.count(buffer.address + i), 1u);
      }
    }
  }
}

class TrapsTest : public testing::TestWithParam<const char*> {};

TEST_P(TrapsTest, ComputesWhatTheKernelSays) {
  const std::vector<uint8_t> image = Image(GetParam());
  ASSERT_FALSE(image.empty());
  for (const Trap& trap : Traps()) {
    size_t accesses = 0;
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      SCOPED_TRACE(std::string(trap.kernel) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const TrapCase launch = trap.make(random);
      EXPECT_EQ(launch.kernel, trap.kernel);
      Memory memory;
      for (const TrapBuffer& buffer : launch.buffers) {
        memory.Add(buffer.address, buffer.content);
      }
      const absl::StatusOr<Program> program =
          sass_machine::LoadProgram(image, kTrapVariablesAt, &memory);
      ASSERT_TRUE(program.ok()) << program.status();
      AccessLog log;
      const absl::Status status = sass_machine::Run(
          *program,
          {launch.kernel, launch.grid, launch.block, 0, launch.params}, &memory,
          &log, {.block_order_seed = seed % 2 == 0 ? seed : 0});
      ASSERT_TRUE(status.ok()) << status;
      ExpectContent(launch, memory);
      ExpectLogExplains(launch, memory, log);
      accesses += log.size();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    EXPECT_GT(accesses, 0u) << trap.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, TrapsTest, testing::ValuesIn(kImages),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(6, 2) + "_" + name.substr(9, 2);
                         });

}  // namespace
}  // namespace heddle::access
