// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tests/unit/hostdevice/device_test.h"

// Not every cuda.h declares this form.
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

namespace {

using ContextTest = DeviceTest;

// In a child process: initialization happens once.
template <typename Check>
bool InFreshProcess(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(InitTest, NothingWorksBeforeInit) {
  // Runs in a process of its own under ctest; where another test came first,
  // there is nothing left to see.
  int count = 0;
  const CUresult early = cuDeviceGetCount(&count);
  if (early == CUDA_SUCCESS) GTEST_SKIP() << "already initialized";
  EXPECT_CUDA(CUDA_ERROR_NOT_INITIALIZED, early);
  EXPECT_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  EXPECT_OK(cuInit(0));
  EXPECT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
}

TEST_F(ContextTest, TellsWhatTheDeviceIs) {
  int version = 0;
  EXPECT_OK(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  char name[64];
  EXPECT_OK(cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ(name, "heddle host device");
  int major = 0;
  EXPECT_OK(cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(major, 9);
  size_t total = 0;
  EXPECT_OK(cuDeviceTotalMem(&total, 0));
  EXPECT_EQ(total, size_t{8} << 30);
  CUdevice device = -1;
  EXPECT_CUDA(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1));
  EXPECT_CUDA(
      CUDA_ERROR_INVALID_VALUE,
      cuDeviceGetAttribute(&major, static_cast<CUdevice_attribute>(100000), 0));
}

TEST_F(ContextTest, TheCurrentContextIsPerThreadAndAStack) {
  CUcontext current = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  std::thread([&] {
    CUcontext other = context_;
    EXPECT_OK(cuCtxGetCurrent(&other));
    EXPECT_EQ(other, nullptr);
    CUdeviceptr address = 0;
    EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&address, 4));
  }).join();

  CUcontext second = nullptr;
  ASSERT_CUDA(cuCtxCreate_v2(&second, 0, 0));
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, second);
  EXPECT_OK(cuCtxPopCurrent(&current));
  EXPECT_EQ(current, second);
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  EXPECT_OK(cuCtxPushCurrent(second));
  EXPECT_OK(cuCtxDestroy(second));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(second));
}

TEST_F(ContextTest, ThePrimaryContextIsCountedAndRefusesDestroy) {
  CUcontext again = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(again, context_);
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(again));
  EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  unsigned flags = 0;
  int active = 0;
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(ContextTest, EveryErrorThatItReturnsHasANameAndAText) {
  for (const CUresult error :
       {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_STREAM_CAPTURE_ISOLATION}) {
    const char* name = nullptr;
    const char* text = nullptr;
    EXPECT_OK(cuGetErrorName(error, &name));
    EXPECT_OK(cuGetErrorString(error, &text));
    EXPECT_EQ(std::strncmp(name, "CUDA_", 5), 0);
    EXPECT_GT(std::strlen(text), 0u);
  }
  const char* name = "untouched";
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGetErrorName(static_cast<CUresult>(12345), &name));
  EXPECT_EQ(name, nullptr);
}

TEST_F(ContextTest, UnknownHandlesAreErrorsNotCrashes) {
  const auto stream = reinterpret_cast<CUstream>(&context_);
  const auto event = reinterpret_cast<CUevent>(&context_);
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE,
              cuModuleUnload(reinterpret_cast<CUmodule>(&context_)));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuGraphDestroy(reinterpret_cast<CUgraph>(&context_)));
}

TEST_F(ContextTest, AForkedChildCanGoOnByItself) {
  // Not promised by CUDA; here there is no thread that would be missing.
  EXPECT_TRUE(InFreshProcess([this] {
    const CUdeviceptr data = Ints(2, 4);
    return Read(data, 2) == std::vector<int>(2, 4);
  }));
}

TEST_F(ContextTest, PrivateTablesAreNotThere) {
  const void* table = nullptr;
  CUuuid uuid{};
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &uuid));
  EXPECT_EQ(table, nullptr);
}

}  // namespace
