// SPDX-License-Identifier: Apache-2.0
// Hooks of module and library loading and of kernel look-up.

#include "runtime/live/hooks.h"
#include "runtime/live/optimizer.h"
#include "runtime/record/log.h"

namespace heddle::live {
namespace {

template <typename Handle>
uint64_t Id(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// Loads `image`, or what heddle made of it, by `load(bytes)`.
template <typename Handle, typename Load>
CUresult LoadImage(const char* api, Handle* handle, bool library,
                   const void* image, Load load) {
  const Gate::Pass pass;
  std::shared_ptr<LoadedCode::Load> prepared;
  WithOptimizer([&](Optimizer& optimizer) {
    prepared = optimizer.code().BeforeLoad(image);
  });
  if (prepared == nullptr) return load(image);
  bool accepted = prepared->replaced;
  CUresult result = load(prepared->image);
  if (result != CUDA_SUCCESS && accepted) {
    accepted = false;
    result = load(image);
    if (result == CUDA_SUCCESS) {
      record::Log(record::LogLevel::kWarn,
                  std::string(api) +
                      ": the driver did not take a patched image; the "
                      "program's own is used");
    }
  }
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().Loaded(Id(*handle), library, prepared, accepted);
    });
  }
  return result;
}

template <typename S>
CUresult ModuleLoadData(CUmodule* module, const void* image) {
  return LoadImage(S::kName, module, false, image,
                   [&](const void* bytes) { return S::Real(module, bytes); });
}

template <typename S>
CUresult ModuleLoadDataEx(CUmodule* module, const void* image,
                          unsigned int count, CUjit_option* options,
                          void** values) {
  return LoadImage(S::kName, module, false, image, [&](const void* bytes) {
    return S::Real(module, bytes, count, options, values);
  });
}

template <typename S>
CUresult LibraryLoadData(CUlibrary* library, const void* code,
                         CUjit_option* jit_options, void** jit_values,
                         unsigned int jit_count, CUlibraryOption* options,
                         void** values, unsigned int count) {
  return LoadImage(S::kName, library, true, code, [&](const void* bytes) {
    return S::Real(library, bytes, jit_options, jit_values, jit_count, options,
                   values, count);
  });
}

void LoadedFile(uint64_t handle, bool library, const char* path) {
  WithOptimizer([&](Optimizer& optimizer) {
    optimizer.code().Loaded(handle, library,
                            optimizer.code().BeforeLoadFile(path), false);
  });
}

template <typename S>
CUresult ModuleLoad(CUmodule* module, const char* path) {
  const Gate::Pass pass;
  std::shared_ptr<LoadedCode::Load> prepared;
  WithOptimizer([&](Optimizer& optimizer) {
    prepared = optimizer.code().BeforeLoadFile(path);
  });
  CUresult result = CUDA_ERROR_NOT_FOUND;
  bool accepted = false;
  if (prepared != nullptr && prepared->replaced) {
    WithOptimizer([&](Optimizer& optimizer) {
      result = optimizer.driver().ModuleLoadData(module, prepared->image);
      accepted = result == CUDA_SUCCESS;
    });
  }
  if (!accepted) result = S::Real(module, path);
  if (result == CUDA_SUCCESS && prepared != nullptr) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().Loaded(Id(*module), false, prepared, accepted);
    });
  }
  return result;
}

template <typename S>
CUresult LibraryLoadFromFile(CUlibrary* library, const char* path,
                             CUjit_option* jit_options, void** jit_values,
                             unsigned int jit_count, CUlibraryOption* options,
                             void** values, unsigned int count) {
  const CUresult result = S::Real(library, path, jit_options, jit_values,
                                  jit_count, options, values, count);
  if (result == CUDA_SUCCESS) LoadedFile(Id(*library), true, path);
  return result;
}

template <typename S>
CUresult ModuleUnload(CUmodule module) {
  const Gate::Pass pass;
  WithOptimizer(
      [&](Optimizer& optimizer) { optimizer.code().Unloaded(Id(module)); });
  return S::Real(module);
}

template <typename S>
CUresult LibraryUnload(CUlibrary library) {
  const Gate::Pass pass;
  WithOptimizer(
      [&](Optimizer& optimizer) { optimizer.code().Unloaded(Id(library)); });
  return S::Real(library);
}

template <typename S>
CUresult ModuleGetFunction(CUfunction* function, CUmodule module,
                           const char* name) {
  const CUresult result = S::Real(function, module, name);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().SawFunction(*function, Id(module), name);
    });
  }
  return result;
}

template <typename S>
CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary library,
                          const char* name) {
  const CUresult result = S::Real(kernel, library, name);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().SawKernel(*kernel, library, name);
    });
  }
  return result;
}

template <typename S>
CUresult LibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = S::Real(module, library);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().SawModuleOf(*module, library);
    });
  }
  return result;
}

template <typename S>
CUresult KernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = S::Real(function, kernel);
  if (result == CUDA_SUCCESS) {
    WithOptimizer([&](Optimizer& optimizer) {
      optimizer.code().SawFunctionOf(*function, kernel);
    });
  }
  return result;
}

template <typename S>
CUresult ModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module,
                         const char* name) {
  WithOptimizer(
      [&](Optimizer& optimizer) { optimizer.AskedForVariable(Id(module)); });
  return S::Real(address, size, module, name);
}

template <typename S>
CUresult LibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                          const char* name) {
  WithOptimizer(
      [&](Optimizer& optimizer) { optimizer.AskedForVariable(Id(library)); });
  return S::Real(address, size, library, name);
}

}  // namespace

void AddCodeHooks(HookList* list) {
  HEDDLE_LIVE_HOOK(list, cuModuleLoad, ModuleLoad);
  HEDDLE_LIVE_HOOK(list, cuModuleLoadData, ModuleLoadData);
  HEDDLE_LIVE_HOOK(list, cuModuleLoadDataEx, ModuleLoadDataEx);
  HEDDLE_LIVE_HOOK(list, cuModuleLoadFatBinary, ModuleLoadData);
  HEDDLE_LIVE_HOOK(list, cuModuleUnload, ModuleUnload);
  HEDDLE_LIVE_HOOK(list, cuLibraryLoadData, LibraryLoadData);
  HEDDLE_LIVE_HOOK(list, cuLibraryLoadFromFile, LibraryLoadFromFile);
  HEDDLE_LIVE_HOOK(list, cuLibraryUnload, LibraryUnload);
  HEDDLE_LIVE_HOOK(list, cuModuleGetFunction, ModuleGetFunction);
  HEDDLE_LIVE_HOOK(list, cuLibraryGetKernel, LibraryGetKernel);
  HEDDLE_LIVE_HOOK(list, cuLibraryGetModule, LibraryGetModule);
  HEDDLE_LIVE_HOOK(list, cuKernelGetFunction, KernelGetFunction);
  HEDDLE_LIVE_HOOK(list, cuModuleGetGlobal_v2, ModuleGetGlobal);
  HEDDLE_LIVE_HOOK(list, cuLibraryGetGlobal, LibraryGetGlobal);
  HEDDLE_LIVE_HOOK(list, cuLibraryGetManaged, LibraryGetGlobal);
}

}  // namespace heddle::live
