// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/hostdevice/device_test.h"

namespace {

struct Mixed {
  char tag;
  double value;
  int list[3];
};

class LaunchTest : public DeviceTest {
 protected:
  // One block of one thread of `fill`, changed by `change`.
  template <typename Change>
  CUresult LaunchFill(Change change) {
    CUdeviceptr data = data_;
    int value = 1;
    void* pointers[] = {&data, &value};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    change(&config);
    return cuLaunchKernelEx(&config, Function("fill"), pointers, nullptr);
  }
  CUresult LaunchWith(CUlaunchAttributeID id, CUlaunchAttributeValue value) {
    CUlaunchAttribute attribute{};
    attribute.id = id;
    attribute.value = value;
    return LaunchFill([&](CUlaunchConfig* config) {
      config->gridDimX = 4;
      config->attrs = &attribute;
      config->numAttrs = 1;
    });
  }

  void SetUp() override {
    DeviceTest::SetUp();
    data_ = Ints(16);
  }
  CUdeviceptr data_ = 0;
};

TEST_F(LaunchTest, PassesParametersOfEverySize) {
  const CUdeviceptr out = Allocate(sizeof(double));
  ASSERT_CUDA(Launch("mixed", 1, nullptr, out, char{1},
                     Mixed{2, 3.5, {0, 0, 40}}, short{500}));
  double result = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&result, out, sizeof(result)));
  EXPECT_EQ(result, 546.5);
}

TEST_F(LaunchTest, TakesParametersAsOneBuffer) {
  struct {
    CUdeviceptr out;
    int value;
  } buffer{data_, 77};
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  const CUfunction fill = Function("fill");
  ASSERT_CUDA(
      cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(Read(data_, 1)[0], 77);
  size = 8;
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_VALUE,
      cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_VALUE,
      cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(LaunchTest, TheParametersAreReadWhenTheCallIsMade) {
  const CUstream stream = NewStream();
  CUdeviceptr data = data_;
  int value = 5;
  void* pointers[] = {&data, &value};
  ASSERT_CUDA(cuLaunchKernel(Function("fill"), 1, 1, 1, 1, 1, 1, 0, stream,
                             pointers, nullptr));
  value = 6;
  data = 0;
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(data_, 1)[0], 5);
}

TEST_F(LaunchTest, RefusesShapesThatNoDeviceTakes) {
  const auto with = [&](unsigned grid, unsigned block, unsigned shared) {
    return LaunchFill([=](CUlaunchConfig* config) {
      config->gridDimX = grid;
      config->blockDimX = block;
      config->sharedMemBytes = shared;
    });
  };
  EXPECT_OK(with(1, 1024, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, with(1, 1025, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, with(0, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, with(1, 0, 0));
  EXPECT_OK(with(1, 1, 48 << 10));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, with(1, 1, (48 << 10) + 1));
  EXPECT_OK(cuFuncSetAttribute(Function("fill"),
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               100 << 10));
  EXPECT_OK(with(1, 1, 100 << 10));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuFuncSetAttribute(
                  Function("fill"),
                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 << 10));
  // __launch_bounds__(64)
  CUdeviceptr data = data_;
  void* pointers[] = {&data};
  EXPECT_OK(cuLaunchKernel(Function("bounded"), 1, 1, 1, 64, 1, 1, 0, nullptr,
                           pointers, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernel(Function("bounded"), 1, 1, 1, 65, 1, 1, 0, nullptr,
                             pointers, nullptr));
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_HANDLE,
      cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers, nullptr));
}

TEST_F(LaunchTest, SharedMemoryIsThereAndUndefined) {
  const CUdeviceptr out = Ints(1);
  unsigned count = 3000;
  CUdeviceptr address = out;
  void* pointers[] = {&address, &count};
  ASSERT_CUDA(cuLaunchKernel(Function("shared_bytes"), 1, 1, 1, 32, 1, 1, count,
                             nullptr, pointers, nullptr));
  EXPECT_EQ(Read(out, 1)[0], 0) << "bytes that were zero";
}

TEST_F(LaunchTest, KnowsTheAttributesAndRefusesOthers) {
  CUlaunchAttributeValue value{};
  value.clusterDim.x = 2;
  value.clusterDim.y = value.clusterDim.z = 1;
  EXPECT_OK(LaunchWith(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
  value.clusterDim.x = 3;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE,
              LaunchWith(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
  value = {};
  value.priority = -1;
  EXPECT_OK(LaunchWith(CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  EXPECT_OK(LaunchWith(CU_LAUNCH_ATTRIBUTE_IGNORE, value));
  // No version of CUDA has this one.
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED,
              LaunchWith(static_cast<CUlaunchAttributeID>(30), value));
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED,
              LaunchWith(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
}

TEST_F(LaunchTest, CooperativeGridsMustFitTheDevice) {
  CUdeviceptr data = data_;
  int value = 3;
  void* pointers[] = {&data, &value};
  int per_sm = 0;
  ASSERT_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_sm, Function("fill"), 1, 0));
  int sms = 0;
  ASSERT_CUDA(
      cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  const unsigned fits = static_cast<unsigned>(per_sm * sms);
  EXPECT_OK(cuLaunchCooperativeKernel(Function("fill"), fits, 1, 1, 1, 1, 1, 0,
                                      nullptr, pointers));
  EXPECT_CUDA(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
              cuLaunchCooperativeKernel(Function("fill"), fits + 1, 1, 1, 1, 1,
                                        1, 0, nullptr, pointers));
  EXPECT_EQ(Read(data_, 1)[0], 3);
}

TEST_F(LaunchTest, AKernelWithoutABodyLoadsButDoesNotLaunch) {
  testing::internal::CaptureStderr();
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, Launch("without_body", 1, nullptr, data_));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("heddle_host_without_body"), std::string::npos) << text;
  EXPECT_NE(text.find("HEDDLE_HOSTDEVICE_KERNELS"), std::string::npos) << text;
}

TEST_F(LaunchTest, EventsOfLaunchesMustNotTellTheTime) {
  CUlaunchAttributeValue value{};
  value.launchCompletionEvent.event = NewEvent(CU_EVENT_DEFAULT);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              LaunchWith(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, value));
  value.launchCompletionEvent.event = NewEvent();
  EXPECT_OK(LaunchWith(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, value));
  EXPECT_OK(cuEventSynchronize(value.launchCompletionEvent.event));
}

TEST_F(LaunchTest, AProgrammaticEventLetsAnotherStreamBeginEarly) {
  const CUstream producer = NewStream();
  const CUstream consumer = NewStream();
  const CUevent event = NewEvent();
  const CUdeviceptr out = Ints(1);
  const auto run = [&](const char* kernel) {
    return OverSeeds(120, [&] {
      EXPECT_OK(cuMemsetD32(data_, 0, 6));
      EXPECT_OK(cuCtxSynchronize());
      CUlaunchAttribute attribute{};
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
      attribute.value.programmaticEvent.event = event;
      CUlaunchConfig config{};
      config.gridDimX = 6;
      config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = config.blockDimY = config.blockDimZ = 1;
      config.hStream = producer;
      config.attrs = &attribute;
      config.numAttrs = 1;
      int value = 100;
      void* pointers[] = {&data_, &value};
      EXPECT_OK(cuLaunchKernelEx(&config, Function("fill_trigger_first"),
                                 pointers, nullptr));
      EXPECT_OK(cuStreamWaitEvent(consumer, event, 0));
      EXPECT_OK(Launch(kernel, 1, consumer, out, data_, 6));
      EXPECT_OK(cuCtxSynchronize());
      return Read(out, 1)[0];
    });
  };
  EXPECT_EQ(run("sum_wait"), std::set<int>{615});
  EXPECT_GT(run("sum").size(), 2u);
}

}  // namespace
