// SPDX-License-Identifier: Apache-2.0
// What TensorMaps::Decode reads against what the driver's encoder was given.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "runtime/access/tensor_maps.h"
#include "runtime/device/driver.h"

namespace heddle::access {
namespace {

constexpr int kMaps = 20000;
// Bytes of an element of each CUtensorMapDataType.
constexpr std::array<uint64_t, 13> kBytes = {1, 2, 4, 4, 8, 8, 2,
                                             4, 8, 2, 4, 4, 4};

class TensorMapGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<device::Driver> driver = device::Driver::Load();
    if (!driver.ok()) GTEST_SKIP() << driver.status();
    driver_ = *std::move(driver);
    auto context = device::ScopedContext::Create(driver_, 0);
    if (!context.ok()) GTEST_SKIP() << context.status();
    context_ = *std::move(context);
    std::array<char, 256> name{};
    int major = 0;
    int minor = 0;
    ASSERT_EQ(
        driver_.DeviceGetName(name.data(), name.size() - 1, context_->device()),
        CUDA_SUCCESS);
    driver_.DeviceGetAttribute(&major,
                               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                               context_->device());
    driver_.DeviceGetAttribute(&minor,
                               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                               context_->device());
    if (major != 9 || minor != 0 ||
        std::strstr(name.data(), "host device") != nullptr) {
      GTEST_SKIP() << name.data() << ": the maps of sm_90 are looked at";
    }
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    encode_ = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(
        dlsym(library, "cuTensorMapEncodeTiled"));
    if (encode_ == nullptr) GTEST_SKIP() << "a driver without tensor maps";
  }

  uint64_t UpTo(uint64_t most) {
    return 1 + std::uniform_int_distribution<uint64_t>(0, most - 1)(random_);
  }
  // Of any magnitude.
  uint64_t Wide(double bits) {
    return static_cast<uint64_t>(
        std::exp2(std::uniform_real_distribution<double>(0, bits)(random_)));
  }

  std::mt19937_64 random_{20};
  device::Driver driver_;
  std::unique_ptr<device::ScopedContext> context_;
  decltype(&cuTensorMapEncodeTiled) encode_ = nullptr;
};

TEST_F(TensorMapGpuTest, DecodeReadsWhatTheDriverWrote) {
  int encoded = 0;
  for (int i = 0; i < kMaps; ++i) {
    const auto rank = static_cast<cuuint32_t>(UpTo(5));
    const auto type = static_cast<CUtensorMapDataType>(UpTo(kBytes.size()) - 1);
    const uint64_t address = Wide(40) * 256 + 256;
    std::array<cuuint64_t, 5> dims{};
    std::array<cuuint64_t, 5> strides{};
    std::array<cuuint32_t, 5> box{};
    std::array<cuuint32_t, 5> steps{};
    for (cuuint32_t d = 0; d < rank; ++d) {
      dims[d] = Wide(32);
      strides[d] = 16 * Wide(36);
      box[d] = static_cast<cuuint32_t>(d == 0 ? 16 / kBytes[type] : UpTo(8));
      steps[d] = static_cast<cuuint32_t>(UpTo(2));
    }
    const auto interleave = static_cast<CUtensorMapInterleave>(
        rank >= 3 && UpTo(4) == 1 ? UpTo(2) : 0);
    alignas(64) CUtensorMap map{};
    if (encode_(&map, type, rank, reinterpret_cast<void*>(address), dims.data(),
                strides.data(), box.data(), steps.data(), interleave,
                static_cast<CUtensorMapSwizzle>(UpTo(4) - 1),
                static_cast<CUtensorMapL2promotion>(UpTo(4) - 1),
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
      continue;
    }
    ++encoded;
    const auto shape = TensorMaps::Decode(
        {reinterpret_cast<const uint8_t*>(&map), sizeof(map)});
    ASSERT_EQ(shape.has_value(), interleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
    if (!shape.has_value()) continue;
    ASSERT_EQ(shape->address, address);
    ASSERT_EQ(shape->dims,
              std::vector<uint64_t>(dims.begin(), dims.begin() + rank));
    ASSERT_EQ(shape->strides, std::vector<uint64_t>(
                                  strides.begin(), strides.begin() + rank - 1));
    ASSERT_EQ(kBytes[shape->data_type], kBytes[type]);
  }
  EXPECT_GT(encoded, kMaps / 20);
}

}  // namespace
}  // namespace heddle::access
