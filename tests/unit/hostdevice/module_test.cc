// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/unit/hostdevice/device_test.h"

namespace {

using ModuleTest = DeviceTest;

// What nvcc's host code passes to the driver.
struct Wrapper {
  int magic = 0x466243b1;
  int version = 1;
  const void* data = nullptr;
  void* unused = nullptr;
};

TEST_F(ModuleTest, LoadsCubinsFatbinsWrappersAndFiles) {
  const std::vector<char> fatbin = ReadImage("kernels.fatbin");
  ASSERT_FALSE(fatbin.empty());
  Wrapper wrapper;
  wrapper.data = fatbin.data();
  std::vector<CUmodule> modules(4);
  ASSERT_CUDA(cuModuleLoadData(&modules[0], fatbin.data()));
  ASSERT_CUDA(cuModuleLoadFatBinary(&modules[1], &wrapper));
  const std::string path = std::string(HEDDLE_TEST_IMAGES) + "/kernels.cubin";
  ASSERT_CUDA(cuModuleLoad(&modules[2], path.c_str()));
  ASSERT_CUDA(
      cuModuleLoadDataEx(&modules[3], image_.data(), 0, nullptr, nullptr));
  for (CUmodule module : modules) {
    CUfunction function = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(&function, module, "fill"));
    int arch = 0;
    ASSERT_CUDA(
        cuFuncGetAttribute(&arch, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
    EXPECT_EQ(arch, 90);
    CUdeviceptr data = Ints(1);
    int value = 4;
    void* pointers[] = {&data, &value};
    ASSERT_CUDA(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, pointers,
                               nullptr));
    EXPECT_EQ(Read(data, 1)[0], 4);
    ASSERT_CUDA(cuModuleUnload(module));
    EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE,
                cuModuleGetFunction(&function, module, "fill"));
  }
}

TEST_F(ModuleTest, RefusesWhatItCannotRun) {
  CUmodule module = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_IMAGE,
              cuModuleLoadData(&module, "not an image"));
  EXPECT_CUDA(CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
              cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n"));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, nullptr));
  EXPECT_CUDA(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere"));
  // The chip of an ABI 8 cubin: bits 8 to 15 of e_flags.
  constexpr size_t kChip = 0x30 + 1;
  image_[kChip] = 100;
  EXPECT_CUDA(CUDA_ERROR_NO_BINARY_FOR_GPU,
              cuModuleLoadData(&module, image_.data()));
}

TEST_F(ModuleTest, TellsTheParametersOfAFunction) {
  const CUfunction function = Function("mixed");
  const size_t offsets[] = {0, 8, 16, 48};
  const size_t sizes[] = {8, 1, 32, 2};
  for (size_t i = 0; i < 4; ++i) {
    size_t offset = 99;
    size_t size = 99;
    ASSERT_CUDA(cuFuncGetParamInfo(function, i, &offset, &size));
    EXPECT_EQ(offset, offsets[i]);
    EXPECT_EQ(size, sizes[i]);
  }
  size_t offset = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuFuncGetParamInfo(function, 4, &offset, nullptr));
  const char* name = nullptr;
  ASSERT_CUDA(cuFuncGetName(&name, function));
  EXPECT_STREQ(name, "mixed");
  CUmodule module = nullptr;
  ASSERT_CUDA(cuFuncGetModule(&module, function));
  EXPECT_EQ(module, module_);
  CUfunction none = nullptr;
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND,
              cuModuleGetFunction(&none, module_, "nobody"));
}

TEST_F(ModuleTest, EnumeratesItsFunctions) {
  unsigned count = 0;
  ASSERT_CUDA(cuModuleGetFunctionCount(&count, module_));
  std::vector<CUfunction> functions(count);
  ASSERT_CUDA(cuModuleEnumerateFunctions(functions.data(), count, module_));
  std::set<std::string> names;
  for (CUfunction function : functions) {
    const char* name = nullptr;
    ASSERT_CUDA(cuFuncGetName(&name, function));
    names.insert(name);
  }
  EXPECT_EQ(names.size(), count);
  EXPECT_TRUE(names.count("fill") && names.count("without_body"));
}

TEST_F(ModuleTest, VariablesHaveTheirStartingContentInEachModule) {
  CUmodule second = nullptr;
  ASSERT_CUDA(cuModuleLoadData(&second, image_.data()));
  CUdeviceptr first_address = 0;
  CUdeviceptr second_address = 0;
  size_t size = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&first_address, &size, module_, "counter"));
  EXPECT_EQ(size, 4u);
  ASSERT_CUDA(cuModuleGetGlobal(&second_address, nullptr, second, "counter"));
  EXPECT_EQ(Read(first_address, 1)[0], 5);
  ASSERT_CUDA(Launch("increment", 1, nullptr, first_address));
  EXPECT_EQ(Read(first_address, 1)[0], 6);
  EXPECT_EQ(Read(second_address, 1)[0], 5);
  CUdeviceptr zeros = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&zeros, &size, module_, "zeros"));
  EXPECT_EQ(size, 32u);
  EXPECT_EQ(Read(zeros, 8), std::vector<int>(8, 0));
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND,
              cuModuleGetGlobal(&zeros, &size, module_, "nobody"));
}

TEST_F(ModuleTest, LibrariesGiveKernelsThatLaunchAndFunctions) {
  CUlibrary library = nullptr;
  ASSERT_CUDA(cuLibraryLoadData(&library, image_.data(), nullptr, nullptr, 0,
                                nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  ASSERT_CUDA(cuLibraryGetKernel(&kernel, library, "fill"));
  CUfunction function = nullptr;
  ASSERT_CUDA(cuKernelGetFunction(&function, kernel));
  EXPECT_NE(static_cast<void*>(function), static_cast<void*>(kernel));
  size_t offset = 0;
  size_t size = 0;
  ASSERT_CUDA(cuKernelGetParamInfo(kernel, 1, &offset, &size));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 4u);
  CUlibrary owner = nullptr;
  ASSERT_CUDA(cuKernelGetLibrary(&owner, kernel));
  EXPECT_EQ(owner, library);
  CUmodule module = nullptr;
  ASSERT_CUDA(cuLibraryGetModule(&module, library));
  CUdeviceptr counter = 0;
  ASSERT_CUDA(cuLibraryGetGlobal(&counter, &size, library, "counter"));
  EXPECT_EQ(Read(counter, 1)[0], 5);
  CUdeviceptr data = Ints(1);
  int value = 21;
  void* pointers[] = {&data, &value};
  for (void* handle :
       {static_cast<void*>(kernel), static_cast<void*>(function)}) {
    ASSERT_CUDA(cuMemsetD32(data, 0, 1));
    ASSERT_CUDA(cuLaunchKernel(static_cast<CUfunction>(handle), 1, 1, 1, 1, 1,
                               1, 0, nullptr, pointers, nullptr));
    EXPECT_EQ(Read(data, 1)[0], 21);
  }
  // A kernel keeps its name for what it is in a node.
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS params{};
  params.kern = kernel;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = pointers;
  CUgraphNode node = nullptr;
  ASSERT_CUDA(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  CUDA_KERNEL_NODE_PARAMS got{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(node, &got));
  EXPECT_EQ(got.func, nullptr);
  EXPECT_EQ(got.kern, kernel);
  ASSERT_CUDA(cuGraphDestroy(graph));
  ASSERT_CUDA(cuLibraryUnload(library));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE,
              cuLibraryGetKernel(&kernel, library, "fill"));
}

}  // namespace
