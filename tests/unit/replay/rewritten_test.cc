// SPDX-License-Identifier: Apache-2.0
//
// Replays of rewritten graphs on the host device, which reads the prologues
// that are in the images and runs what may overlap in any order.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/cubin/elf_view.h"
#include "tests/unit/replay/rewritten_replay.h"

namespace heddle::replay {
namespace {

constexpr plan::Style kStyles[] = {plan::Style::kProgrammaticEarly,
                                   plan::Style::kProgrammatic,
                                   plan::Style::kLaunchOrder};

const device::Driver& HostDevice() {
  static const device::Driver* const driver = [] {
    setenv("HEDDLE_HOSTDEVICE_KERNELS", HEDDLE_REPLAY_HOST_KERNELS, 1);
    auto loaded = device::Driver::Load(HEDDLE_HOSTDEVICE_LIBRARY);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new device::Driver(*std::move(loaded));
  }();
  return *driver;
}

std::vector<uint8_t> Image(bool variables) {
  std::ifstream file(
      variables ? HEDDLE_REPLAY_KERNELS : HEDDLE_REPLAY_PLAIN_KERNELS,
      std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The image with another first instruction of `kernel`: a relative branch, of
// which the patcher cannot make a copy elsewhere. Host devices run no code.
std::vector<uint8_t> Spoil(std::vector<uint8_t> image,
                           const std::string& kernel) {
  const auto elf = cubin::ElfView::Create(image);
  EXPECT_TRUE(elf.ok()) << elf.status();
  const cubin::ElfSection* text = elf->Find(".text." + kernel);
  EXPECT_NE(text, nullptr);
  const uint16_t branch = 0x7947;
  std::memcpy(image.data() + text->header.sh_offset, &branch, sizeof(branch));
  return image;
}

size_t LaunchesOf(const Program& program, uint32_t module) {
  size_t launches = 0;
  for (const Operation& operation : program.step.operations) {
    const LaunchWork* launch = operation.launch();
    if (launch != nullptr && program.kernels[launch->kernel].module == module) {
      ++launches;
    }
  }
  return launches;
}

TEST(RewrittenTest, RandomProgramsLeaveTheSameMemoryInEveryStyle) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    for (const plan::Style style : kStyles) {
      SCOPED_TRACE(absl::StrCat(RewrittenName(style), ", seed ", seed));
      std::mt19937 random(seed);
      Replay replay;
      replay.UseImage(Image(/*variables=*/false));
      replay.Start();
      for (int part = 0; part < 3; ++part) {
        replay.RandomWork(random, kA, kB, kStream1);
        replay.Order(kStream1, kStream2);
        replay.RandomWork(random, kB, kA, kStream1);
        replay.RandomWork(random, kC, kA, kStream2);
        replay.Order(kStream2, kStream1);
        replay.Add(kD, kB, kC);
      }
      ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
      auto form = replay.session().NewRewritten(style);
      ASSERT_TRUE(form.ok()) << form.status();
      if (style == plan::Style::kLaunchOrder) {
        // A launch-order edge needs nothing of the kernel that it comes from.
        EXPECT_GT(form->summary.patched, form->summary.kernels / 2);
      } else {
        EXPECT_EQ(form->summary.patched, form->summary.kernels);
      }
      EXPECT_EQ(form->summary.kernels, LaunchesOf(replay.program(), 0));
      EXPECT_EQ(form->summary.converted, form->summary.edges);
      EXPECT_EQ(form->executor->name(), RewrittenName(style));
      EXPECT_EQ(replay.Judge(*form, 10).verdict, Verdict::kIdentical);
    }
  }
}

TEST(RewrittenTest, AMissingEdgeIsFoundInEveryStyle) {
  for (const plan::Style style : kStyles) {
    for (int64_t edge = 0; edge < 3; ++edge) {
      SCOPED_TRACE(absl::StrCat(RewrittenName(style), ", edge ", edge));
      Replay replay;
      replay.UseImage(Image(/*variables=*/false));
      replay.Start();
      replay.Scale(kA, 2);
      replay.Scale(kB, 3, kStream2);
      replay.Order(kStream2, kStream1);
      replay.Add(kC, kA, kB);
      replay.Scale(kC, 0.5);
      ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
      auto form = replay.session().NewRewritten(
          style, GraphOptions{.drop_dependency = edge});
      ASSERT_TRUE(form.ok()) << form.status();
      ASSERT_EQ(form->summary.edges, 2U);
      const FormVerdict verdict = replay.Judge(*form, 60, edge);
      EXPECT_EQ(verdict.verdict, Verdict::kDifferent);
      ASSERT_FALSE(verdict.findings.empty());
      EXPECT_EQ(verdict.findings[0].writer.rfind("test_", 0), 0U);
    }
  }
}

TEST(RewrittenTest, AnImageWithVariablesIsLoadedPatchedOnce) {
  for (const plan::Style style : kStyles) {
    SCOPED_TRACE(RewrittenName(style));
    Replay replay;
    replay.UseImage(Image(/*variables=*/true));
    replay.Start();
    for (int i = 0; i < 4; ++i) {
      replay.Scale(kA, 1.5);
      replay.Add(kB, kB, kA);
      replay.FromTable(kC, kB);
    }
    ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
    const Modules& modules = replay.session().modules();
    EXPECT_EQ(modules.code()->replaced_count(), 1U);
    EXPECT_TRUE(modules.warnings().empty());
    auto form = replay.session().NewRewritten(style);
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_EQ(replay.Judge(*form, 10).verdict, Verdict::kIdentical);
    EXPECT_GE(form->summary.patched, 11U)
        << absl::StrJoin(form->summary.notes, "\n");
    EXPECT_EQ(form->summary.converted, 11U);
  }
}

TEST(RewrittenTest, AnImageWhoseVariablesTheHostKnowsHasNoSecondCopy) {
  static int loads = 0;
  device::Driver driver = HostDevice();
  driver.ModuleLoadData = [](CUmodule* module, const void* image) {
    ++loads;
    return HostDevice().ModuleLoadData(module, image);
  };
  for (const bool known : {false, true}) {
    loads = 0;
    Replay replay;
    replay.UseImage(Image(/*variables=*/true));
    if (known) replay.KnowTable();
    replay.Start();
    replay.Scale(kA, 1.5);
    replay.Scale(kA, 0.5);
    replay.FromTable(kB, kA);
    ASSERT_EQ(replay.Open(driver), absl::OkStatus());
    auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_EQ(form->summary.converted, 2U);
    EXPECT_EQ(loads, known ? 1 : 2);
    EXPECT_EQ(replay.Judge(*form, 10).verdict, Verdict::kIdentical);
  }
}

TEST(RewrittenTest, AKernelThatCannotBePatchedStaysAndIsNamedWithTheReason) {
  Replay replay;
  replay.UseImage(Spoil(Image(/*variables=*/false), "test_add"));
  replay.Start();
  for (int i = 0; i < 3; ++i) {
    replay.Scale(kA, 1.5);
    replay.Scale(kA, 0.5);
    replay.Add(kB, kB, kA);
  }
  ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
  auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->summary.patched, 6U);
  EXPECT_LT(form->summary.converted, form->summary.edges);
  ASSERT_FALSE(form->summary.notes.empty());
  EXPECT_NE(form->summary.notes[0].find("3 unpatched"), std::string::npos);
  EXPECT_NE(form->summary.notes[0].find("first instruction"),
            std::string::npos);
  EXPECT_EQ(replay.Judge(*form, 20).verdict, Verdict::kIdentical);
}

TEST(RewrittenTest, KernelsOfOneNameAreToldApartByTheirModules) {
  Replay replay;
  replay.UseImage(Image(/*variables=*/false));
  replay.Start();
  for (int i = 0; i < 3; ++i) replay.Scale(kA, 1.5);
  replay.UseImage(Spoil(Image(/*variables=*/false), "test_scale"));
  for (int i = 0; i < 2; ++i) replay.Scale(kA, 0.5);
  ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
  ASSERT_EQ(LaunchesOf(replay.program(), 0), 3U);
  ASSERT_EQ(LaunchesOf(replay.program(), 1), 2U);
  auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->summary.kernels, 5U);
  EXPECT_EQ(form->summary.patched, 3U);
  EXPECT_EQ(replay.Judge(*form, 10).verdict, Verdict::kIdentical);
}

TEST(RewrittenTest, NothingToConvertIsNotFound) {
  Replay replay;
  replay.UseImage(Spoil(Image(/*variables=*/false), "test_scale"));
  replay.Start();
  replay.Scale(kA, 1.5);
  replay.Scale(kA, 0.5);
  ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
  const auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  EXPECT_TRUE(absl::IsNotFound(form.status())) << form.status();
  EXPECT_NE(form.status().message().find("first instruction"),
            std::string::npos)
      << form.status();
}

TEST(RewrittenTest, AnImageWithVariablesThatCannotBePatchedIsLoadedAsItIs) {
  std::vector<uint8_t> image = Image(/*variables=*/true);
  const uint16_t relocatable = 1;  // ET_REL in Elf64_Ehdr::e_type
  std::memcpy(image.data() + 16, &relocatable, sizeof(relocatable));
  Replay replay;
  replay.UseImage(image);
  replay.Start();
  replay.FromTable(kB, kA);
  replay.FromTable(kC, kB);
  ASSERT_EQ(replay.Open(HostDevice()), absl::OkStatus());
  const Modules& modules = replay.session().modules();
  EXPECT_EQ(modules.code()->replaced_count(), 0U);
  ASSERT_EQ(modules.warnings().size(), 1U);
  EXPECT_NE(modules.warnings()[0].find("not linked"), std::string::npos)
      << modules.warnings()[0];
  const auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  EXPECT_TRUE(absl::IsNotFound(form.status())) << form.status();
}

TEST(RewrittenTest, APatchedImageThatTheDriverRefusesIsReplacedByTheRecorded) {
  static std::vector<uint8_t>* const recorded =
      new std::vector<uint8_t>(Image(/*variables=*/true));
  device::Driver driver = HostDevice();
  driver.ModuleLoadData = [](CUmodule* module, const void* image) {
    if (std::memcmp(image, recorded->data(), recorded->size()) != 0) {
      return CUDA_ERROR_INVALID_IMAGE;
    }
    return HostDevice().ModuleLoadData(module, image);
  };
  Replay replay;
  replay.UseImage(*recorded);
  replay.Start();
  replay.FromTable(kB, kA);
  replay.FromTable(kC, kB);
  ASSERT_EQ(replay.Open(driver), absl::OkStatus());
  const Modules& modules = replay.session().modules();
  EXPECT_EQ(modules.code()->replaced_count(), 0U);
  ASSERT_EQ(modules.warnings().size(), 1U);
  EXPECT_NE(modules.warnings()[0].find("CUDA_ERROR_INVALID_IMAGE"),
            std::string::npos)
      << modules.warnings()[0];
  const auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  EXPECT_TRUE(absl::IsNotFound(form.status())) << form.status();
}

TEST(RewrittenTest, ADeviceBeforeSm90IsNamed) {
  device::Driver driver = HostDevice();
  driver.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute,
                                 CUdevice device) {
    if (attribute != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
      return HostDevice().DeviceGetAttribute(value, attribute, device);
    }
    *value = 8;
    return CUDA_SUCCESS;
  };
  Replay replay;
  replay.UseImage(Image(/*variables=*/true), /*major=*/8);
  replay.Start();
  replay.Scale(kA, 1.5);
  replay.Scale(kA, 0.5);
  ASSERT_EQ(replay.Open(driver), absl::OkStatus());
  EXPECT_TRUE(replay.session().modules().warnings().empty());
  const auto form = replay.session().NewRewritten(plan::Style::kProgrammatic);
  EXPECT_TRUE(absl::IsUnimplemented(form.status())) << form.status();
  EXPECT_NE(form.status().message().find("sm_80"), std::string::npos);
}

}  // namespace
}  // namespace heddle::replay
