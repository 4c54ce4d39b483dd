// SPDX-License-Identifier: Apache-2.0
// What the static analysis says of a launch against what the launch does: the
// machine of tests/sass_machine runs the kernels of traps.cu and logs every
// access; each must lie in what was predicted for its instruction.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/access/code_image.h"
#include "runtime/access/launch_access.h"
#include "tests/sass_machine/machine.h"
#include "tests/unit/access/coverage_check.h"
#include "tests/unit/access/trap_cases.h"

namespace heddle::access {
namespace {

constexpr int kLaunchesOfEach = 40;

std::vector<uint8_t> Image(const char* name) {
  std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + name,
                     std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// The launch's buffers are its allocations.
MemoryView ViewOf(const TrapCase& launch) {
  MemoryView view;
  view.allocation = [&launch](uint64_t address) -> std::optional<Extent> {
    for (const TrapBuffer& buffer : launch.buffers) {
      const Extent extent{buffer.address, buffer.content.size()};
      if (address >= extent.address && address < extent.end()) return extent;
    }
    return std::nullopt;
  };
  view.tensor_map = [](absl::Span<const uint8_t>) { return std::nullopt; };
  view.variables = ExtentSet({Extent{kTrapVariablesAt, 1 << 20}});
  return view;
}

// How often each way of knowing was enough.
struct Tally {
  int launches = 0;
  int unknown_reads = 0;
  int unknown_writes = 0;
  int assumed = 0;
  std::string why;
  uint64_t accesses = 0;
};

class CoverageTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    image_ = Image(GetParam());
    absl::StatusOr<std::unique_ptr<CodeImage>> code = CodeImage::Create(image_);
    ASSERT_TRUE(code.ok()) << code.status();
    code_ = *std::move(code);
  }

  KernelFootprint Analyze(const TrapCase& launch, const MemoryView& view,
                          LaunchValues* values) {
    const CodeImage::Kernel* kernel = code_->Find(launch.kernel);
    if (kernel == nullptr) {
      ADD_FAILURE() << launch.kernel << " is not in the image";
      return {};
    }
    values->grid = launch.grid;
    values->block = launch.block;
    values->param_base = kernel->param_base;
    values->params = launch.params;
    bool too_many = false;
    values->pointers = FindPointers(values->params, view, &too_many);
    EXPECT_FALSE(too_many);
    return AnalyzeKernel(kernel->code, *values);
  }

  std::vector<uint8_t> image_;
  std::unique_ptr<CodeImage> code_;
};

TEST_P(CoverageTest, EveryAccessIsWhereTheAnalysisSaidItsInstructionGoes) {
  std::map<std::string, Tally> tallies;
  for (const Trap& trap : Traps()) {
    std::mt19937_64 random(7);
    for (int i = 0; i < kLaunchesOfEach; ++i) {
      const TrapCase launch = trap.make(random);
      SCOPED_TRACE(absl::StrCat(launch.kernel, ", launch ", i));
      sass_machine::Memory memory;
      absl::StatusOr<sass_machine::Program> program =
          sass_machine::LoadProgram(image_, kTrapVariablesAt, &memory);
      ASSERT_TRUE(program.ok()) << program.status();
      for (const TrapBuffer& buffer : launch.buffers) {
        memory.Add(buffer.address, buffer.content);
      }
      sass_machine::AccessLog log;
      const absl::Status ran = sass_machine::Run(
          *program,
          {launch.kernel, launch.grid, launch.block, 0, launch.params}, &memory,
          &log);
      ASSERT_TRUE(ran.ok()) << ran;

      const MemoryView view = ViewOf(launch);
      LaunchValues values;
      const KernelFootprint footprint = Analyze(launch, view, &values);
      const AccessSet whole = AccessOfLaunch(footprint, values, view);
      Tally& tally = tallies[launch.kernel];
      ++tally.launches;
      if (!whole.reads_known()) tally.why = whole.unknown_reads;
      if (!whole.writes_known()) tally.why = whole.unknown_writes;
      tally.unknown_reads += whole.reads_known() ? 0 : 1;
      tally.unknown_writes += whole.writes_known() ? 0 : 1;
      for (const Access& access : whole.accesses) {
        if (access.provenance == Provenance::kAssumed) {
          ++tally.assumed;
          break;
        }
      }
      tally.accesses += log.size();
      const CoverageResult result = CheckCoverage(footprint, values, view, log);
      ASSERT_EQ(result.complaint, "");
    }
  }
  // What cannot be known from the code: pointers that lie in memory, and
  // variables that it writes. Everything else must be.
  std::set<std::string> unknown;
  std::set<std::string> bounded;
  for (const auto& [kernel, tally] : tallies) {
    std::printf(
        "%-18s %2d launches, %6lu accesses; unknown: reads %d, writes %d; "
        "assumed %d %s\n",
        kernel.c_str(), tally.launches,
        static_cast<unsigned long>(tally.accesses), tally.unknown_reads,
        tally.unknown_writes, tally.assumed, tally.why.c_str());
    if (tally.unknown_reads + tally.unknown_writes > 0) unknown.insert(kernel);
    if (tally.assumed == 0) bounded.insert(kernel);
  }
  EXPECT_EQ(unknown, (std::set<std::string>{"module_variables", "pointer_array",
                                            "through_pointer"}));
  // Proved down to the bytes, without a look at allocations.
  for (const char* kernel :
       {"calls", "copy_2d", "early_exit", "elementwise_2", "elementwise_4",
        "equal_values", "grid_stride", "long_index", "masked_rows", "one_past",
        "write_then_read"}) {
    EXPECT_TRUE(bounded.contains(kernel)) << kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Images, CoverageTest,
                         testing::Values("traps.sm_80.cubin",
                                         "traps.sm_89.cubin",
                                         "traps.sm_90.cubin"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) {
                               c = '_';
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace heddle::access
