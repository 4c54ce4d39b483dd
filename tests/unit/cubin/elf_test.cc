// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/elf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "tests/unit/cubin/test_images.h"

namespace heddle::cubin {
namespace {

// The parameter types of kernels.cu, laid out by this compiler: both follow the
// same ABI.
struct Mixed {
  int a;
  double b;
  char c[5];
};
struct alignas(16) Aligned16 {
  float x, y, z, w;
};
struct Large {
  char bytes[20000];
};
struct alignas(64) Opaque {
  unsigned long long words[16];
};

// Alignment counts from the start of the constant bank, not of the block: a
// first parameter of alignment 64 does not begin at offset 0.
template <typename... Params>
std::vector<KernelParam> LayoutOf(uint32_t base = 0) {
  std::vector<KernelParam> layout;
  uint32_t end = base;
  const auto add = [&](uint32_t size, uint32_t alignment) {
    const uint32_t offset = (end + alignment - 1) / alignment * alignment;
    layout.push_back({offset - base, size});
    end = offset + size;
  };
  (add(sizeof(Params), alignof(Params)), ...);
  return layout;
}

std::map<std::string, std::vector<KernelParam>> ExpectedKernels(int arch) {
  std::map<std::string, std::vector<KernelParam>> kernels = {
      {"no_params", {}},
      {"pointers", LayoutOf<float*, const float*, int>()},
      {"mixed", LayoutOf<char, short, Mixed, char, double*, Aligned16>()},
      {"large", LayoutOf<Large, int, char*>()},
      {"opaque",
       LayoutOf<Opaque, unsigned long long*>(arch == 80 ? 0x160 : 0x210)},
      {"bounded", LayoutOf<int*>()},
      {"spilling", LayoutOf<int*, int>()},
      {"_Z9templatedIiEvPT_S0_", LayoutOf<int*, int>()},
      {"_Z9templatedIdEvPT_S0_", LayoutOf<double*, double>()},
  };
  if (arch >= 90) kernels["clustered"] = LayoutOf<int*>();
  return kernels;
}

class ElfTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    image_ = TestImage("kernels.sm_" + std::to_string(GetParam()) + ".cubin");
    ASSERT_FALSE(image_.empty());
    absl::StatusOr<Cubin> cubin = ParseCubin(image_);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    cubin_ = *std::move(cubin);
  }

  std::vector<uint8_t> image_;
  Cubin cubin_;
};

TEST_P(ElfTest, ListsExactlyTheKernelsWithTheirParameterLayouts) {
  std::map<std::string, std::vector<KernelParam>> found;
  for (const Kernel& kernel : cubin_.kernels) {
    EXPECT_TRUE(found.emplace(kernel.name, kernel.params).second)
        << kernel.name << " twice";
  }
  const auto expected = ExpectedKernels(GetParam());
  for (const auto& [name, params] : expected) {
    ASSERT_TRUE(found.count(name)) << name;
    ASSERT_EQ(found[name].size(), params.size()) << name;
    for (size_t i = 0; i < params.size(); ++i) {
      EXPECT_EQ(found[name][i].offset, params[i].offset) << name << " " << i;
      EXPECT_EQ(found[name][i].size, params[i].size) << name << " " << i;
    }
  }
  EXPECT_EQ(found.size(), expected.size());
}

TEST_P(ElfTest, KnowsTheChipAndItsParameterBank) {
  EXPECT_EQ(cubin_.arch, static_cast<uint32_t>(GetParam()));
  const Kernel* kernel = cubin_.FindKernel("pointers");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->param_base, GetParam() == 80 ? 0x160u : 0x210u);
  EXPECT_EQ(kernel->param_size, 20u);
  EXPECT_EQ(cubin_.FindKernel("no_params")->param_size, 0u);
  EXPECT_EQ(cubin_.FindKernel("nobody"), nullptr);
}

TEST_P(ElfTest, ReportsWhatABlockUses) {
  for (const Kernel& kernel : cubin_.kernels) {
    EXPECT_GT(kernel.registers, 0u) << kernel.name;
    EXPECT_LE(kernel.registers, 255u) << kernel.name;
  }
  const Kernel* bounded = cubin_.FindKernel("bounded");
  EXPECT_EQ(bounded->max_threads, 128u);
  EXPECT_EQ(bounded->static_shared_bytes, 512u);
  EXPECT_EQ(cubin_.FindKernel("pointers")->static_shared_bytes, 0u);
  EXPECT_EQ(cubin_.FindKernel("pointers")->max_threads, 0u);
  EXPECT_EQ(cubin_.FindKernel("spilling")->local_bytes, 256u);
  if (GetParam() >= 90) {
    EXPECT_EQ(cubin_.FindKernel("clustered")->cluster,
              (std::array<uint32_t, 3>{2, 1, 1}));
  }
}

TEST_P(ElfTest, ListsTheVariablesWithTheirStartingContent) {
  const Variable* zeroed = cubin_.FindVariable("zeroed");
  ASSERT_NE(zeroed, nullptr);
  EXPECT_EQ(zeroed->size, 4u);
  EXPECT_TRUE(zeroed->initial.empty());
  EXPECT_EQ(zeroed->space, VariableSpace::kGlobal);

  const Variable* initialized = cubin_.FindVariable("initialized");
  ASSERT_NE(initialized, nullptr);
  ASSERT_EQ(initialized->initial.size(), 4u);
  EXPECT_EQ(initialized->initial[0], 7);

  EXPECT_EQ(cubin_.FindVariable("table")->size, 400u);
  ASSERT_NE(cubin_.FindVariable("_ZN5inner6hiddenE"), nullptr);
  EXPECT_EQ(cubin_.FindVariable("_ZN5inner6hiddenE")->size, 2u);

  const Variable* coefficients = cubin_.FindVariable("coefficients");
  ASSERT_NE(coefficients, nullptr);
  EXPECT_EQ(coefficients->space, VariableSpace::kConstant);
  ASSERT_EQ(coefficients->initial.size(), 64u);
  EXPECT_EQ(coefficients->initial[4], 2);
  EXPECT_FALSE(coefficients->relocated);

  const Variable* pointer = cubin_.FindVariable("pointer_to_zeroed");
  ASSERT_NE(pointer, nullptr);
  EXPECT_TRUE(pointer->relocated);
  EXPECT_TRUE(cubin_.HasMutableState());
}

TEST_P(ElfTest, SurvivesDamage) {
  int parsed = 0;
  int refused = 0;
  ForEachDamaged(image_, [&](absl::Span<const uint8_t> bytes) {
    ++(ParseCubin(bytes).ok() ? parsed : refused);
  });
  // Both happen, else the damage tests nothing.
  EXPECT_GT(parsed, 0);
  EXPECT_GT(refused, 0);
}

TEST_P(ElfTest, RefusesAnAbiThatItDoesNotKnow) {
  constexpr int kOsAbi = 7;
  for (int abi = 0; abi < 256; ++abi) {
    image_[kOsAbi] = static_cast<uint8_t>(abi);
    const absl::StatusOr<Cubin> cubin = ParseCubin(image_);
    if (abi == 0x33 || abi == 0x41) {
      EXPECT_TRUE(cubin.ok()) << cubin.status();
      EXPECT_EQ(cubin->abi, abi == 0x33 ? 7 : 8);
    } else {
      EXPECT_EQ(cubin.status().code(), absl::StatusCode::kUnimplemented);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, ElfTest, testing::Values(80, 90),
                         [](const testing::TestParamInfo<int>& info) {
                           return "sm_" + std::to_string(info.param);
                         });

TEST(ParseCubinTest, RefusesAHostProgram) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<uint8_t> self(std::istreambuf_iterator<char>(file), {});
  EXPECT_FALSE(ParseCubin(self).ok());
  EXPECT_FALSE(ParseCubin({}).ok());
}

}  // namespace
}  // namespace heddle::cubin
