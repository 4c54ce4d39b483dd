// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_MODULE_H_
#define HEDDLE_TESTS_HOSTDEVICE_MODULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/cubin/elf.h"
#include "tests/hostdevice/device.h"
#include "tests/hostdevice/host_kernel.h"
#include "tests/hostdevice/prologue.h"

namespace heddle::hostdevice {

// What a CUfunction points to, and a CUkernel: launches take either.
struct Function {
  cubin::Kernel kernel;
  const char* name = nullptr;  // lives as long as the process
  Module* module = nullptr;
  Library* library = nullptr;    // of a CUkernel
  Function* function = nullptr;  // of a CUkernel: its CUfunction
  int max_dynamic_shared = 49152;
  int carveout = -1;
  int nonportable_cluster = 0;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  int arch = 90;
  // What the code does before the body, if heddle has patched it.
  std::vector<PrologueStep> prologue;

  // The body, looked up when first launched; nullptr if the program has none.
  HeddleHostKernelFn body = nullptr;
  bool looked_up = false;
};

struct Module {
  Context* context = nullptr;
  Library* library = nullptr;
  std::vector<uint8_t> image;  // the cubin that was chosen
  cubin::Cubin cubin;
  std::map<std::string, Function*> functions;
  std::map<std::string, std::pair<CUdeviceptr, size_t>> globals;
};

struct Library {
  Module* module = nullptr;
  std::map<std::string, Function*> kernels;
};

// Loads what `image` points to. CUDA_ERROR_INVALID_IMAGE,
// CUDA_ERROR_NO_BINARY_FOR_GPU as the driver.
CUresult LoadModule(const void* image, Context* context, Module** out);
CUresult ReadImageFile(const char* path, std::vector<uint8_t>* out);
void UnloadModule(Module* module);

// The body of a kernel, or nullptr. The first failure for a function is
// explained on standard error.
HeddleHostKernelFn FindBody(Function* function);

// Resolves a handle that may be a CUfunction or a CUkernel.
Function* FindFunction(const void* handle);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_MODULE_H_
