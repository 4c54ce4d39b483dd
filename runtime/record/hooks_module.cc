// SPDX-License-Identifier: Apache-2.0
// Hooks of contexts, of module and library loading, and of kernel look-up.

#include <vector>

#include "runtime/record/hooks.h"
#include "runtime/record/hooks_unsupported.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

template <typename Handle>
uint64_t Id(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// ---- contexts: only the thread's cached context id is at stake --------------

template <typename S, typename Fn>
struct ContextHook;
template <typename S, typename... Args>
struct ContextHook<S, CUresult (*)(Args...)> {
  static CUresult Hook(Args... args) {
    const CUresult result = S::Real(args...);
    Recorder::ForgetThreadContext();
    return result;
  }
};

#define HEDDLE_CONTEXT_HOOK(list, symbol)                      \
  AddHook<Symbol<#symbol, decltype(&::symbol)>>(               \
      list, &ContextHook<Symbol<#symbol, decltype(&::symbol)>, \
                         decltype(&::symbol)>::Hook)

// ---- loading ----------------------------------------------------------------

template <typename S>
CUresult ModuleLoad(CUmodule* module, const char* path) {
  const CUresult result = S::Real(module, path);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.images().LoadedFromFile(recorder, Id(*module), false, path,
                                       S::kName);
    });
  }
  return result;
}

void LoadedFromMemory(uint64_t handle, bool library, const void* code,
                      const char* api) {
  WithRecorder([&](Recorder& recorder) {
    recorder.images().LoadedFromMemory(recorder, handle, library, code, api);
  });
}

template <typename S>
CUresult ModuleLoadData(CUmodule* module, const void* image) {
  const CUresult result = S::Real(module, image);
  if (result == CUDA_SUCCESS) {
    LoadedFromMemory(Id(*module), false, image, S::kName);
  }
  return result;
}

template <typename S>
CUresult ModuleLoadDataEx(CUmodule* module, const void* image,
                          unsigned int count, CUjit_option* options,
                          void** values) {
  const CUresult result = S::Real(module, image, count, options, values);
  if (result == CUDA_SUCCESS) {
    LoadedFromMemory(Id(*module), false, image, S::kName);
  }
  return result;
}

template <typename S>
CUresult ModuleUnload(CUmodule module) {
  WithRecorder([&](Recorder& recorder) {
    recorder.images().Unloaded(recorder, Id(module));
  });
  return S::Real(module);
}

template <typename S>
CUresult LibraryLoadData(CUlibrary* library, const void* code,
                         CUjit_option* jit_options, void** jit_values,
                         unsigned int jit_count, CUlibraryOption* options,
                         void** values, unsigned int count) {
  const CUresult result = S::Real(library, code, jit_options, jit_values,
                                  jit_count, options, values, count);
  if (result == CUDA_SUCCESS) {
    LoadedFromMemory(Id(*library), true, code, S::kName);
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
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.images().LoadedFromFile(recorder, Id(*library), true, path,
                                       S::kName);
    });
  }
  return result;
}

template <typename S>
CUresult LibraryUnload(CUlibrary library) {
  WithRecorder([&](Recorder& recorder) {
    recorder.images().Unloaded(recorder, Id(library));
  });
  return S::Real(library);
}

// ---- look-up ----------------------------------------------------------------

template <typename S>
CUresult ModuleGetFunction(CUfunction* function, CUmodule module,
                           const char* name) {
  const CUresult result = S::Real(function, module, name);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.kernels().Register(Id(*function),
                                  {.module_handle = Id(module), .name = name});
    });
  }
  return result;
}

template <typename S>
CUresult ModuleEnumerateFunctions(CUfunction* functions, unsigned int count,
                                  CUmodule module) {
  const CUresult result = S::Real(functions, count, module);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      for (unsigned int i = 0; i < count; ++i) {
        if (functions[i] == nullptr) continue;
        const char* name = nullptr;
        if (recorder.driver().FuncGetName == nullptr ||
            recorder.driver().FuncGetName(&name, functions[i]) !=
                CUDA_SUCCESS) {
          continue;
        }
        recorder.kernels().Register(
            Id(functions[i]), {.module_handle = Id(module), .name = name});
      }
    });
  }
  return result;
}

template <typename S>
CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary library,
                          const char* name) {
  const CUresult result = S::Real(kernel, library, name);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.kernels().Register(Id(*kernel), {.module_handle = Id(library),
                                                .library = true,
                                                .is_kernel = true,
                                                .name = name});
    });
  }
  return result;
}

template <typename S>
CUresult LibraryEnumerateKernels(CUkernel* kernels, unsigned int count,
                                 CUlibrary library) {
  const CUresult result = S::Real(kernels, count, library);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      for (unsigned int i = 0; i < count; ++i) {
        if (kernels[i] == nullptr) continue;
        const char* name = nullptr;
        if (recorder.driver().KernelGetName == nullptr ||
            recorder.driver().KernelGetName(&name, kernels[i]) !=
                CUDA_SUCCESS) {
          continue;
        }
        recorder.kernels().Register(Id(kernels[i]),
                                    {.module_handle = Id(library),
                                     .library = true,
                                     .is_kernel = true,
                                     .name = name});
      }
    });
  }
  return result;
}

template <typename S>
CUresult LibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = S::Real(module, library);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.images().Alias(Id(*module), Id(library));
    });
  }
  return result;
}

template <typename S>
CUresult KernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = S::Real(function, kernel);
  if (result == CUDA_SUCCESS) {
    WithRecorder([&](Recorder& recorder) {
      recorder.kernels().RegisterFunctionOf(Id(*function), Id(kernel));
    });
  }
  return result;
}

// ---- variables --------------------------------------------------------------

void RecordGlobal(uint64_t module, const char* name, CUdeviceptr address,
                  size_t size) {
  WithRecorder([&](Recorder& recorder) {
    fb::GlobalT record;
    record.stamp = recorder.StampPtr();
    record.module_id = recorder.images().EnsureWritten(recorder, module);
    record.name = name == nullptr ? "" : name;
    record.address = address;
    record.size = size;
    recorder.writer().AppendObject(record);
  });
}

// Both out-parameters are optional; one that the program does not want is asked
// for on heddle's account.
template <typename S, typename Container>
CUresult GetGlobalImpl(CUdeviceptr* address, size_t* size, Container container,
                       const char* name) {
  if (address == nullptr && size == nullptr) {
    return S::Real(address, size, container, name);
  }
  CUdeviceptr own_address = 0;
  size_t own_size = 0;
  CUdeviceptr* const at = address == nullptr ? &own_address : address;
  size_t* const bytes = size == nullptr ? &own_size : size;
  const CUresult result = S::Real(at, bytes, container, name);
  if (result == CUDA_SUCCESS) RecordGlobal(Id(container), name, *at, *bytes);
  return result;
}

template <typename S>
CUresult ModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module,
                         const char* name) {
  return GetGlobalImpl<S>(address, size, module, name);
}

template <typename S>
CUresult LibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                          const char* name) {
  return GetGlobalImpl<S>(address, size, library, name);
}

// ---- kernel attributes ------------------------------------------------------

void RecordAttribute(uint64_t handle, int attribute, int value,
                     const char* api) {
  WithRecorder([&](Recorder& recorder) {
    // Before a kernel's first launch there is nothing to write: its Kernel
    // record will hold the attributes as they are then.
    const uint32_t kernel = recorder.kernels().KnownId(handle);
    if (kernel == 0) return;
    fb::KernelAttributeT record;
    record.stamp = recorder.StampPtr();
    record.kernel = kernel;
    record.attribute = attribute;
    record.value = value;
    record.api = api;
    recorder.writer().AppendObject(record);
  });
}

template <typename S>
CUresult FuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                          int value) {
  const CUresult result = S::Real(function, attribute, value);
  if (result == CUDA_SUCCESS) {
    RecordAttribute(Id(function), attribute, value, S::kName);
  }
  return result;
}

template <typename S>
CUresult KernelSetAttribute(CUfunction_attribute attribute, int value,
                            CUkernel kernel, CUdevice device) {
  const CUresult result = S::Real(attribute, value, kernel, device);
  if (result == CUDA_SUCCESS) {
    RecordAttribute(Id(kernel), attribute, value, S::kName);
  }
  return result;
}

// A preference, no attribute: recorded under -1.
constexpr int kCacheConfig = -1;

template <typename S>
CUresult FuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  const CUresult result = S::Real(function, config);
  if (result == CUDA_SUCCESS) {
    RecordAttribute(Id(function), kCacheConfig, config, S::kName);
  }
  return result;
}

template <typename S>
CUresult KernelSetCacheConfig(CUkernel kernel, CUfunc_cache config,
                              CUdevice device) {
  const CUresult result = S::Real(kernel, config, device);
  if (result == CUDA_SUCCESS) {
    RecordAttribute(Id(kernel), kCacheConfig, config, S::kName);
  }
  return result;
}

}  // namespace

void AddModuleHooks(HookList* list) {
  HEDDLE_CONTEXT_HOOK(list, cuCtxCreate);
  HEDDLE_CONTEXT_HOOK(list, cuCtxCreate_v2);
  HEDDLE_CONTEXT_HOOK(list, cuCtxCreate_v3);
#if CUDA_VERSION >= 12050
  HEDDLE_CONTEXT_HOOK(list, cuCtxCreate_v4);
#endif
  HEDDLE_CONTEXT_HOOK(list, cuCtxDestroy);
  HEDDLE_CONTEXT_HOOK(list, cuCtxDestroy_v2);
  HEDDLE_CONTEXT_HOOK(list, cuCtxSetCurrent);
  HEDDLE_CONTEXT_HOOK(list, cuCtxPushCurrent);
  HEDDLE_CONTEXT_HOOK(list, cuCtxPushCurrent_v2);
  HEDDLE_CONTEXT_HOOK(list, cuCtxPopCurrent);
  HEDDLE_CONTEXT_HOOK(list, cuCtxPopCurrent_v2);
  HEDDLE_CONTEXT_HOOK(list, cuDevicePrimaryCtxReset);
  HEDDLE_CONTEXT_HOOK(list, cuDevicePrimaryCtxReset_v2);

  HEDDLE_HOOK(list, cuModuleLoad, ModuleLoad);
  HEDDLE_HOOK(list, cuModuleLoadData, ModuleLoadData);
  HEDDLE_HOOK(list, cuModuleLoadDataEx, ModuleLoadDataEx);
  HEDDLE_HOOK(list, cuModuleLoadFatBinary, ModuleLoadData);
  HEDDLE_HOOK(list, cuModuleUnload, ModuleUnload);
  HEDDLE_HOOK(list, cuLibraryLoadData, LibraryLoadData);
  HEDDLE_HOOK(list, cuLibraryLoadFromFile, LibraryLoadFromFile);
  HEDDLE_HOOK(list, cuLibraryUnload, LibraryUnload);

  HEDDLE_HOOK(list, cuModuleGetFunction, ModuleGetFunction);
  HEDDLE_HOOK(list, cuModuleEnumerateFunctions, ModuleEnumerateFunctions);
  HEDDLE_HOOK(list, cuLibraryGetKernel, LibraryGetKernel);
  HEDDLE_HOOK(list, cuLibraryEnumerateKernels, LibraryEnumerateKernels);
  HEDDLE_HOOK(list, cuLibraryGetModule, LibraryGetModule);
  HEDDLE_HOOK(list, cuKernelGetFunction, KernelGetFunction);

  HEDDLE_HOOK(list, cuModuleGetGlobal_v2, ModuleGetGlobal);
  HEDDLE_HOOK(list, cuLibraryGetGlobal, LibraryGetGlobal);
  HEDDLE_HOOK(list, cuLibraryGetManaged, LibraryGetGlobal);

  HEDDLE_HOOK(list, cuFuncSetAttribute, FuncSetAttribute);
  HEDDLE_HOOK(list, cuKernelSetAttribute, KernelSetAttribute);
  HEDDLE_HOOK(list, cuFuncSetCacheConfig, FuncSetCacheConfig);
  HEDDLE_HOOK(list, cuKernelSetCacheConfig, KernelSetCacheConfig);

  HEDDLE_UNSUPPORTED(list, cuModuleGetTexRef);
  HEDDLE_UNSUPPORTED(list, cuModuleGetSurfRef);
  HEDDLE_UNSUPPORTED(list, cuLibraryGetUnifiedFunction);
  HEDDLE_UNSUPPORTED(list, cuGreenCtxCreate);
}

}  // namespace heddle::record
