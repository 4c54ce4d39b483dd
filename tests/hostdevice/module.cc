// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/module.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/image.h"
#include "tests/hostdevice/api.h"
#include "tests/hostdevice/capture.h"

namespace heddle::hostdevice {
namespace {

constexpr int kMajor = 9;
constexpr int kMinor = 0;

// Names that activities point to: they outlive their functions.
const char* Intern(const std::string& name) {
  static std::set<std::string>& names = *new std::set<std::string>;
  return names.insert(name).first->c_str();
}

// The cubin that a device of this capability runs.
CUresult ChooseCubin(const void* image, std::vector<uint8_t>* out) {
  absl::StatusOr<cubin::ImageView> view = cubin::IdentifyImage(image);
  if (!view.ok()) return CUDA_ERROR_INVALID_IMAGE;
  switch (view->kind) {
    case cubin::ImageKind::kElf:
      out->assign(view->bytes.begin(), view->bytes.end());
      return CUDA_SUCCESS;
    case cubin::ImageKind::kPtx:
      // There is no compiler here.
      return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    case cubin::ImageKind::kFatbin:
      break;
  }
  absl::StatusOr<std::vector<cubin::FatbinEntry>> entries =
      cubin::FatbinEntries(view->bytes);
  if (!entries.ok()) return CUDA_ERROR_INVALID_IMAGE;
  const cubin::FatbinEntry* best = nullptr;
  const auto rank = [](const cubin::FatbinEntry& entry) {
    return 2 * entry.arch + (entry.arch_specific ? 1 : 0);
  };
  for (const cubin::FatbinEntry& entry : *entries) {
    if (entry.kind != cubin::FatbinEntryKind::kElf ||
        !cubin::FatbinEntryFits(entry, kMajor, kMinor)) {
      continue;
    }
    if (best == nullptr || rank(entry) > rank(*best)) best = &entry;
  }
  if (best == nullptr) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  absl::StatusOr<std::vector<uint8_t>> content =
      cubin::FatbinEntryContent(*best);
  if (!content.ok()) return CUDA_ERROR_INVALID_IMAGE;
  *out = *std::move(content);
  return CUDA_SUCCESS;
}

CUresult MakeGlobals(Module* module) {
  for (const cubin::Variable& variable : module->cubin.variables) {
    if (variable.size == 0) continue;
    Allocation* allocation = nullptr;
    HD_TRY(Device::Get().memory().Allocate(
        variable.size, AllocationKind::kDevice, module->context, &allocation));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): device memory is host memory.
    auto* data = reinterpret_cast<void*>(allocation->address);
    std::memset(data, 0, variable.size);
    if (!variable.initial.empty()) {
      std::memcpy(data, variable.initial.data(), variable.initial.size());
    }
    module->globals[variable.name] = {allocation->address, variable.size};
  }
  return CUDA_SUCCESS;
}

CUresult LoadFor(CUmodule* module, const void* image) {
  HD_ENTER(kContext);
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* loaded = nullptr;
  HD_TRY(LoadModule(image, call.context(), &loaded));
  *module = reinterpret_cast<CUmodule>(loaded);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult LoadModule(const void* image, Context* context, Module** out) {
  auto module = std::make_unique<Module>();
  HD_TRY(ChooseCubin(image, &module->image));
  absl::StatusOr<cubin::Cubin> parsed = cubin::ParseCubin(module->image);
  if (!parsed.ok()) return CUDA_ERROR_INVALID_IMAGE;
  module->cubin = *std::move(parsed);
  if (module->cubin.arch / 10 != kMajor ||
      module->cubin.arch > kMajor * 10 + kMinor) {
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  module->context = context;
  if (CUresult result = MakeGlobals(module.get()); result != CUDA_SUCCESS) {
    for (const auto& [name, global] : module->globals) {
      Memory& memory = Device::Get().memory();
      memory.Free(memory.FindStart(global.first));
    }
    return result;
  }
  std::vector<std::vector<PrologueStep>> prologues =
      ReadPrologues(module->image, module->cubin);
  for (size_t i = 0; i < module->cubin.kernels.size(); ++i) {
    const cubin::Kernel& kernel = module->cubin.kernels[i];
    Function* function = Device::Get().functions.New();
    function->kernel = kernel;
    function->name = Intern(kernel.name);
    function->module = module.get();
    function->arch = static_cast<int>(module->cubin.arch);
    function->prologue = std::move(prologues[i]);
    module->functions[kernel.name] = function;
  }
  *out = Device::Get().modules.Add(std::move(module));
  context->modules.insert(*out);
  return CUDA_SUCCESS;
}

void UnloadModule(Module* module) {
  Device& device = Device::Get();
  for (const auto& [name, function] : module->functions) {
    device.functions.Delete(function);
  }
  for (const auto& [name, global] : module->globals) {
    if (Allocation* allocation = device.memory().FindStart(global.first)) {
      device.memory().Free(allocation);
    }
  }
  module->context->modules.erase(module);
  if (module->library != nullptr) module->library->module = nullptr;
  device.modules.Delete(module);
}

CUresult ReadImageFile(const char* path, std::vector<uint8_t>* out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  out->assign(std::istreambuf_iterator<char>(file), {});
  // LoadModule takes a pointer without a size: what it would read must be
  // there.
  if (!cubin::IdentifyImage(absl::MakeConstSpan(*out)).ok()) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  out->push_back(0);  // ends PTX
  return CUDA_SUCCESS;
}

Function* FindFunction(const void* handle) {
  return Device::Get().functions.Find(const_cast<void*>(handle));
}

HD_API(cuModuleLoadData, (CUmodule * module, const void* image)) {
  return LoadFor(module, image);
}

HD_API(cuModuleLoadDataEx,
       (CUmodule * module, const void* image, unsigned int numOptions,
        CUjit_option* options, void** optionValues)) {
  (void)options;  // for the compiler, which is not here
  (void)optionValues;
  (void)numOptions;
  return LoadFor(module, image);
}

HD_API(cuModuleLoadFatBinary, (CUmodule * module, const void* fatCubin)) {
  return LoadFor(module, fatCubin);
}

HD_API(cuModuleLoad, (CUmodule * module, const char* fname)) {
  if (fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint8_t> image;
  HD_TRY(ReadImageFile(fname, &image));
  return LoadFor(module, image.data());
}

HD_API(cuModuleUnload, (CUmodule hmod)) {
  HD_ENTER(kContext);
  Module* module = Device::Get().modules.Find(hmod);
  if (module == nullptr || module->library != nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  HD_TRY(CheckUnsafe());
  // Its kernels may still be running.
  HD_TRY(Device::Get().scheduler().WaitAll());
  UnloadModule(module);
  return CUDA_SUCCESS;
}

HD_API(cuModuleGetFunction,
       (CUfunction * hfunc, CUmodule hmod, const char* name)) {
  HD_ENTER(kContext);
  const Module* module = Device::Get().modules.Find(hmod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (hfunc == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = module->functions.find(name);
  if (it == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *hfunc = reinterpret_cast<CUfunction>(it->second);
  return CUDA_SUCCESS;
}

HD_API(cuModuleGetFunctionCount, (unsigned int* count, CUmodule mod)) {
  HD_ENTER(kContext);
  const Module* module = Device::Get().modules.Find(mod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

HD_API(cuModuleEnumerateFunctions,
       (CUfunction * functions, unsigned int numFunctions, CUmodule mod)) {
  HD_ENTER(kContext);
  const Module* module = Device::Get().modules.Find(mod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned i = 0;
  for (const auto& [name, function] : module->functions) {
    if (i == numFunctions) break;
    functions[i++] = reinterpret_cast<CUfunction>(function);
  }
  return CUDA_SUCCESS;
}

HD_API(cuModuleGetGlobal_v2,
       (CUdeviceptr * dptr, size_t* bytes, CUmodule hmod, const char* name)) {
  HD_ENTER(kContext);
  const Module* module = Device::Get().modules.Find(hmod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = module->globals.find(name);
  if (it == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (dptr != nullptr) *dptr = it->second.first;
  if (bytes != nullptr) *bytes = it->second.second;
  return CUDA_SUCCESS;
}

HD_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode)) {
  HD_ENTER(kInit);
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

}  // namespace heddle::hostdevice
