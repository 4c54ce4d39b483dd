// SPDX-License-Identifier: Apache-2.0
// cuLibrary*: modules that belong to no context. Here there is one device, so a
// library is one module with kernel handles of its own.

#include <utility>

#include "tests/hostdevice/api.h"
#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

CUresult LoadLibrary(CUlibrary* library, const void* image) {
  HD_ENTER(kInit);
  if (library == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // A library may be loaded before there is a context; it then goes into the
  // primary one.
  Device& device = Device::Get();
  Context* context = call.context();
  if (context == nullptr) {
    if (device.primary == nullptr) {
      device.primary = device.NewContext(true, device.primary_flags);
    }
    context = device.primary;
  }
  Module* module = nullptr;
  HD_TRY(LoadModule(image, context, &module));
  Library* loaded = device.libraries.New();
  loaded->module = module;
  module->library = loaded;
  for (const auto& [name, function] : module->functions) {
    Function* kernel = device.functions.New();
    *kernel = *function;
    kernel->library = loaded;
    kernel->function = function;
    loaded->kernels[name] = kernel;
  }
  *library = reinterpret_cast<CUlibrary>(loaded);
  return CUDA_SUCCESS;
}

}  // namespace

HD_API(cuLibraryLoadData,
       (CUlibrary * library, const void* code, CUjit_option* jitOptions,
        void** jitOptionsValues, unsigned int numJitOptions,
        CUlibraryOption* libraryOptions, void** libraryOptionValues,
        unsigned int numLibraryOptions)) {
  (void)jitOptions;  // for the compiler, which is not here
  (void)jitOptionsValues;
  (void)numJitOptions;
  (void)libraryOptions;  // whether to copy the image: always done
  (void)libraryOptionValues;
  (void)numLibraryOptions;
  return LoadLibrary(library, code);
}

HD_API(cuLibraryLoadFromFile,
       (CUlibrary * library, const char* fileName, CUjit_option* jitOptions,
        void** jitOptionsValues, unsigned int numJitOptions,
        CUlibraryOption* libraryOptions, void** libraryOptionValues,
        unsigned int numLibraryOptions)) {
  (void)jitOptions;
  (void)jitOptionsValues;
  (void)numJitOptions;
  (void)libraryOptions;
  (void)libraryOptionValues;
  (void)numLibraryOptions;
  if (fileName == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint8_t> image;
  HD_TRY(ReadImageFile(fileName, &image));
  return LoadLibrary(library, image.data());
}

HD_API(cuLibraryUnload, (CUlibrary library)) {
  HD_ENTER(kInit);
  Device& device = Device::Get();
  Library* found = device.libraries.Find(library);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HD_TRY(device.scheduler().WaitAll());
  for (const auto& [name, kernel] : found->kernels) {
    device.functions.Delete(kernel);
  }
  if (found->module != nullptr) UnloadModule(found->module);
  device.libraries.Delete(found);
  return CUDA_SUCCESS;
}

HD_API(cuLibraryGetKernel,
       (CUkernel * pKernel, CUlibrary library, const char* name)) {
  HD_ENTER(kInit);
  const Library* found = Device::Get().libraries.Find(library);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = found->kernels.find(name);
  if (it == found->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *pKernel = reinterpret_cast<CUkernel>(it->second);
  return CUDA_SUCCESS;
}

HD_API(cuLibraryGetKernelCount, (unsigned int* count, CUlibrary lib)) {
  HD_ENTER(kInit);
  const Library* found = Device::Get().libraries.Find(lib);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(found->kernels.size());
  return CUDA_SUCCESS;
}

HD_API(cuLibraryEnumerateKernels,
       (CUkernel * kernels, unsigned int numKernels, CUlibrary lib)) {
  HD_ENTER(kInit);
  const Library* found = Device::Get().libraries.Find(lib);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned i = 0;
  for (const auto& [name, kernel] : found->kernels) {
    if (i == numKernels) break;
    kernels[i++] = reinterpret_cast<CUkernel>(kernel);
  }
  return CUDA_SUCCESS;
}

HD_API(cuLibraryGetModule, (CUmodule * pMod, CUlibrary library)) {
  HD_ENTER(kContext);
  const Library* found = Device::Get().libraries.Find(library);
  if (found == nullptr || found->module == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pMod = reinterpret_cast<CUmodule>(found->module);
  return CUDA_SUCCESS;
}

HD_API(cuLibraryGetGlobal, (CUdeviceptr * dptr, size_t* bytes,
                            CUlibrary library, const char* name)) {
  HD_ENTER(kContext);
  const Library* found = Device::Get().libraries.Find(library);
  if (found == nullptr || found->module == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = found->module->globals.find(name);
  if (it == found->module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (dptr != nullptr) *dptr = it->second.first;
  if (bytes != nullptr) *bytes = it->second.second;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
