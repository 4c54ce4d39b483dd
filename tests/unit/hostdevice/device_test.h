// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_HOSTDEVICE_DEVICE_TEST_H_
#define HEDDLE_TESTS_UNIT_HOSTDEVICE_DEVICE_TEST_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/hostdevice/control.h"

// The driver's name of an error in a failed comparison.
inline std::string ErrorName(CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  return name == nullptr ? std::to_string(result) : name;
}

#define EXPECT_CUDA(expected, call) \
  EXPECT_EQ(ErrorName(expected), ErrorName(call)) << "from " << #call
#define ASSERT_CUDA(call) \
  ASSERT_EQ("CUDA_SUCCESS", ErrorName(call)) << "from " << #call
#define EXPECT_OK(call) EXPECT_CUDA(CUDA_SUCCESS, call)

inline std::vector<char> ReadImage(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + name,
                     std::ios::binary);
  return std::vector<char>(std::istreambuf_iterator<char>(file), {});
}

// A primary context with the test kernels, both gone after each test.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    image_ = ReadImage("kernels.cubin");
    ASSERT_FALSE(image_.empty());
    ASSERT_CUDA(cuModuleLoadData(&module_, image_.data()));
    heddleHostDeviceSetSeed(1);
  }

  void TearDown() override {
    cuCtxSetCurrent(nullptr);
    EXPECT_OK(cuDevicePrimaryCtxRelease(0));
  }

  // Drops everything, a sticky error included, and starts again.
  void Restart() {
    cuDevicePrimaryCtxReset(0);
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    ASSERT_CUDA(cuModuleLoadData(&module_, image_.data()));
  }

  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_OK(cuModuleGetFunction(&function, module_, name));
    return function;
  }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_OK(cuMemAlloc(&address, bytes));
    return address;
  }
  // An array of `count` ints, all of this value.
  CUdeviceptr Ints(size_t count, int value = 0) {
    const CUdeviceptr address = Allocate(count * sizeof(int));
    EXPECT_OK(cuMemsetD32(address, static_cast<unsigned>(value), count));
    EXPECT_OK(cuCtxSynchronize());
    return address;
  }

  std::vector<int> Read(CUdeviceptr address, size_t count) {
    std::vector<int> out(count);
    EXPECT_OK(cuMemcpyDtoH(out.data(), address, count * sizeof(int)));
    return out;
  }

  CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }
  CUevent NewEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent event = nullptr;
    EXPECT_OK(cuEventCreate(&event, flags));
    return event;
  }

  // Launches `name` with `blocks` blocks of one thread.
  template <typename... Params>
  CUresult Launch(const char* name, unsigned blocks, CUstream stream,
                  Params... params) {
    void* pointers[] = {&params..., nullptr};
    return cuLaunchKernel(Function(name), blocks, 1, 1, 1, 1, 1, 0, stream,
                          pointers, nullptr);
  }
  // The same as a programmatic dependent launch.
  template <typename... Params>
  CUresult LaunchProgrammatic(const char* name, unsigned blocks,
                              CUstream stream, Params... params) {
    void* pointers[] = {&params..., nullptr};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, Function(name), pointers, nullptr);
  }

  // Adds a kernel node without dependencies.
  template <typename... Params>
  CUgraphNode AddKernel(CUgraph graph, const char* name, unsigned blocks,
                        Params... params) {
    void* pointers[] = {&params..., nullptr};
    CUDA_KERNEL_NODE_PARAMS node_params{};
    node_params.func = Function(name);
    node_params.gridDimX = blocks;
    node_params.gridDimY = node_params.gridDimZ = 1;
    node_params.blockDimX = node_params.blockDimY = node_params.blockDimZ = 1;
    node_params.kernelParams = pointers;
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &node_params));
    return node;
  }

  // The set of results of `run` over many seeds.
  template <typename Run>
  auto OverSeeds(int seeds, Run run) {
    std::set<decltype(run())> results;
    for (int seed = 1; seed <= seeds; ++seed) {
      heddleHostDeviceSetSeed(static_cast<uint64_t>(seed));
      results.insert(run());
    }
    return results;
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::vector<char> image_;
};

#endif  // HEDDLE_TESTS_UNIT_HOSTDEVICE_DEVICE_TEST_H_
