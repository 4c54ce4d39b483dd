// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/unit/hostdevice/device_test.h"

namespace {

using CopyTest = DeviceTest;

TEST_F(CopyTest, ACopyFromPageableMemoryCanBeOvertaken) {
  // The call returns when the source is staged, not when the data is there.
  const CUdeviceptr data = Ints(1);
  const CUdeviceptr out = Ints(1);
  const CUstream stream = NewStream();
  const std::set<int> seen = OverSeeds(60, [&] {
    EXPECT_OK(cuMemsetD32(data, 1, 1));
    EXPECT_OK(cuCtxSynchronize());
    int value = 2;
    EXPECT_OK(cuMemcpyHtoD(data, &value, sizeof(value)));
    value = 3;  // already staged
    EXPECT_OK(Launch("copy", 1, stream, out, data));
    EXPECT_OK(cuStreamSynchronize(stream));
    EXPECT_OK(cuCtxSynchronize());
    return Read(out, 1)[0];
  });
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
}

TEST_F(CopyTest, AnAsynchronousCopyFromPinnedMemoryReadsItLater) {
  int* pinned = nullptr;
  ASSERT_CUDA(cuMemAllocHost(reinterpret_cast<void**>(&pinned), sizeof(int)));
  const CUdeviceptr data = Ints(1);
  const CUstream stream = NewStream();
  const std::set<int> seen = OverSeeds(40, [&] {
    *pinned = 1;
    EXPECT_OK(cuMemcpyHtoDAsync(data, pinned, sizeof(int), stream));
    *pinned = 2;  // a race that the program must not have
    EXPECT_OK(cuStreamSynchronize(stream));
    return Read(data, 1)[0];
  });
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
  EXPECT_OK(cuMemFreeHost(pinned));
}

TEST_F(CopyTest, CopiesPitchedPlanesAndBoxes) {
  // A 3 x 2 x 2 box of ints out of a 5 x 4 x 3 one.
  std::vector<int> source(60);
  for (int i = 0; i < 60; ++i) source[i] = i;
  const CUdeviceptr device = Allocate(60 * sizeof(int));
  ASSERT_CUDA(cuMemcpyHtoD(device, source.data(), 60 * sizeof(int)));
  std::vector<int> out(12, -1);
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = device;
  box.srcPitch = 5 * sizeof(int);
  box.srcHeight = 4;
  box.srcXInBytes = 1 * sizeof(int);
  box.srcY = 2;
  box.srcZ = 1;
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = out.data();
  box.dstPitch = 3 * sizeof(int);
  box.dstHeight = 2;
  box.WidthInBytes = 3 * sizeof(int);
  box.Height = 2;
  box.Depth = 2;
  ASSERT_CUDA(cuMemcpy3D(&box));
  std::vector<int> expected;
  for (int z = 1; z < 3; ++z) {
    for (int y = 2; y < 4; ++y) {
      for (int x = 1; x < 4; ++x) expected.push_back((z * 4 + y) * 5 + x);
    }
  }
  EXPECT_EQ(out, expected);

  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = device;
  plane.srcPitch = 5 * sizeof(int);
  plane.srcXInBytes = 2 * sizeof(int);
  plane.srcY = 1;
  plane.dstMemoryType = CU_MEMORYTYPE_HOST;
  plane.dstHost = out.data();
  plane.WidthInBytes = 2 * sizeof(int);
  plane.Height = 2;
  ASSERT_CUDA(cuMemcpy2D(&plane));
  EXPECT_EQ((std::vector<int>(out.begin(), out.begin() + 4)),
            (std::vector<int>{7, 8, 12, 13}));
}

TEST_F(CopyTest, SetsPitchedRowsOfEachWidth) {
  const CUdeviceptr data = Ints(16, -1);
  ASSERT_CUDA(cuMemsetD2D32(data, 16, 7, 2, 3));
  std::vector<int> values = Read(data, 16);
  EXPECT_EQ((std::vector<int>(values.begin(), values.begin() + 8)),
            (std::vector<int>{7, 7, -1, -1, 7, 7, -1, -1}));
  ASSERT_CUDA(cuMemsetD16(data, 0x1234, 2));
  EXPECT_EQ(Read(data, 1)[0], 0x12341234);
  ASSERT_CUDA(cuMemsetD8(data, 0x56, 4));
  EXPECT_EQ(Read(data, 1)[0], 0x56565656);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(data + 2, 0, 1));
}

TEST_F(CopyTest, RefusesWhatIsOutsideAnAllocation) {
  const CUdeviceptr data = Ints(4);
  int host[8] = {};
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(data, host, 20));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, data + 12, 8));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, 0, 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(data, 0, 17));
  EXPECT_OK(cuMemcpyHtoD(data, host, 16));
  EXPECT_OK(cuMemcpyHtoD(data, host, 0));
}

TEST_F(CopyTest, ACopyOfMemoryThatWentIsAnIllegalAddress) {
  const CUstream stream = NewStream();
  const CUdeviceptr out = Ints(4);
  CUdeviceptr gone = 0;
  ASSERT_CUDA(cuMemAllocAsync(&gone, 16, stream));
  // The free is held back, so that the memory is there when the copy is asked
  // for.
  const CUdeviceptr flag = Ints(1);
  ASSERT_CUDA(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  ASSERT_CUDA(cuMemFreeAsync(gone, stream));
  ASSERT_CUDA(cuMemcpyDtoDAsync(out, gone, 16, stream));
  ASSERT_CUDA(cuStreamWriteValue32(NewStream(), flag, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
  Restart();
}

TEST_F(CopyTest, TheUnifiedFormFindsOutWhereThePointersLead) {
  const CUdeviceptr data = Ints(2, 6);
  int out[2] = {};
  ASSERT_CUDA(cuMemcpy(reinterpret_cast<CUdeviceptr>(out), data, sizeof(out)));
  EXPECT_EQ(out[1], 6);
  const CUstream stream = NewStream();
  ASSERT_CUDA(cuMemcpyAsync(data, data + 4, 4, stream));
  ASSERT_CUDA(cuStreamSynchronize(stream));
}

TEST_F(CopyTest, TensorMapsDependOnTheirArgumentsAlone) {
  alignas(64) CUtensorMap maps[3];
  const CUdeviceptr data = Allocate(4096);
  const auto encode = [&](CUtensorMap* map, CUdeviceptr address,
                          cuuint32_t box) {
    const cuuint64_t dim[2] = {16, 16};
    const cuuint64_t strides[1] = {64};
    const cuuint32_t box_dim[2] = {box, 8};
    const cuuint32_t element_strides[2] = {1, 1};
    return cuTensorMapEncodeTiled(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
        reinterpret_cast<void*>(address), dim, strides, box_dim,
        element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  ASSERT_CUDA(encode(&maps[0], data, 8));
  ASSERT_CUDA(encode(&maps[1], data, 8));
  ASSERT_CUDA(encode(&maps[2], data, 4));
  EXPECT_EQ(std::memcmp(&maps[0], &maps[1], sizeof(CUtensorMap)), 0);
  EXPECT_NE(std::memcmp(&maps[0], &maps[2], sizeof(CUtensorMap)), 0);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, encode(&maps[0], data + 4, 8));
}

}  // namespace
