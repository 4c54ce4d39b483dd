// SPDX-License-Identifier: Apache-2.0
// heddle's own kernels run here although no program gives their bodies.

#include <algorithm>
#include <random>

#include "tests/unit/hostdevice/device_test.h"

namespace {

using Random = std::mt19937;

class BuiltinKernelsTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    const std::vector<char> image = ReadImage("builtin_kernels.cubin");
    ASSERT_FALSE(image.empty());
    ASSERT_CUDA(cuModuleLoadData(&module_, image.data()));
    bytes_ = 1 + Below(4000);
    chunk_bytes_ = 1 + Below(300);
    chunks_ = (bytes_ + chunk_bytes_ - 1) / chunk_bytes_;
  }

  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }
  std::vector<uint8_t> Noise(size_t bytes) {
    std::vector<uint8_t> noise(bytes);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random_());
    return noise;
  }
  template <typename T>
  CUdeviceptr Upload(const std::vector<T>& values) {
    const CUdeviceptr address = Allocate(values.size() * sizeof(T));
    EXPECT_OK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)));
    return address;
  }
  template <typename T>
  std::vector<T> Download(CUdeviceptr address, size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
    return values;
  }
  // Some chunks, in any order, none twice.
  std::vector<uint64_t> SomeChunks() {
    std::vector<uint64_t> all(chunks_);
    for (uint64_t i = 0; i < chunks_; ++i) all[i] = i;
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(1 + Below(static_cast<uint32_t>(chunks_)));
    return all;
  }
  uint64_t SizeOf(uint64_t chunk) const {
    return std::min<uint64_t>(chunk_bytes_, bytes_ - chunk * chunk_bytes_);
  }

  Random random_{1};
  uint64_t bytes_ = 0;
  uint32_t chunk_bytes_ = 0;
  uint64_t chunks_ = 0;
};

TEST_F(BuiltinKernelsTest, CompareChunksFlagsEveryChunkThatDiffers) {
  const std::vector<uint8_t> a = Noise(bytes_);
  std::vector<uint8_t> b = a;
  std::vector<uint32_t> expected(chunks_);
  for (int i = 0; i < 5; ++i) {
    const uint32_t at = Below(static_cast<uint32_t>(bytes_));
    b[at] ^= 1;
  }
  for (uint64_t i = 0; i < bytes_; ++i) {
    if (a[i] != b[i]) expected[i / chunk_bytes_] = 1;
  }
  std::vector<uint32_t> before(chunks_);
  before[0] = expected[0] = 7;  // never cleared, and set to 1
  if (!std::equal(a.begin(), a.begin() + static_cast<ptrdiff_t>(SizeOf(0)),
                  b.begin())) {
    expected[0] = 1;
  }
  const CUdeviceptr device_a = Upload(a);
  const CUdeviceptr device_b = Upload(b);
  for (const unsigned grid : {1u, 3u, 1000u}) {
    const CUdeviceptr changed = Upload(before);
    EXPECT_OK(Launch("heddle_compare_chunks", grid, nullptr, device_a, device_b,
                     bytes_, chunk_bytes_, changed));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(Download<uint32_t>(changed, chunks_), expected);
  }
}

TEST_F(BuiltinKernelsTest, ScatterPutsBackWhatGatherTook) {
  const std::vector<uint8_t> whole = Noise(bytes_);
  const std::vector<uint8_t> other = Noise(bytes_);
  const std::vector<uint64_t> chunks = SomeChunks();
  const CUdeviceptr from = Upload(whole);
  const CUdeviceptr to = Upload(other);
  const CUdeviceptr indices = Upload(chunks);
  const CUdeviceptr packed = Allocate(chunks.size() * chunk_bytes_);
  const uint64_t count = chunks.size();
  EXPECT_OK(Launch("heddle_gather_chunks", 2, nullptr, from, packed, indices,
                   count, chunk_bytes_, bytes_));
  EXPECT_OK(Launch("heddle_scatter_chunks", 3, nullptr, packed, to, indices,
                   count, chunk_bytes_, bytes_));
  EXPECT_OK(cuCtxSynchronize());
  std::vector<uint8_t> expected = other;
  const auto gathered = Download<uint8_t>(packed, count * chunk_bytes_);
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t at = chunks[k] * chunk_bytes_;
    for (uint64_t i = 0; i < SizeOf(chunks[k]); ++i) {
      expected[at + i] = whole[at + i];
      ASSERT_EQ(gathered[k * chunk_bytes_ + i], whole[at + i]);
    }
  }
  EXPECT_EQ(Download<uint8_t>(to, bytes_), expected);
}

TEST_F(BuiltinKernelsTest, CompareGatheredFlagsEveryChunkThatDiffers) {
  std::vector<uint8_t> whole = Noise(bytes_);
  const std::vector<uint64_t> chunks = SomeChunks();
  const uint64_t count = chunks.size();
  const CUdeviceptr from = Upload(whole);
  const CUdeviceptr indices = Upload(chunks);
  const CUdeviceptr packed = Allocate(count * chunk_bytes_);
  EXPECT_OK(Launch("heddle_gather_chunks", 1, nullptr, from, packed, indices,
                   count, chunk_bytes_, bytes_));
  EXPECT_OK(cuCtxSynchronize());
  std::vector<uint32_t> expected(count);
  for (uint64_t k = 0; k < count; k += 2) {
    // The last byte of the chunk.
    whole[chunks[k] * chunk_bytes_ + SizeOf(chunks[k]) - 1] ^= 0x80;
    expected[k] = 1;
  }
  const CUdeviceptr mismatches = Upload(std::vector<uint32_t>(count));
  EXPECT_OK(Launch("heddle_compare_gathered", 4, nullptr, packed, Upload(whole),
                   indices, count, chunk_bytes_, bytes_, mismatches));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_EQ(Download<uint32_t>(mismatches, count), expected);
}

}  // namespace
