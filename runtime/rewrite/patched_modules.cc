// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/patched_modules.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace heddle::rewrite {
namespace {

// What a launch of a function depends on besides its code. Preferences that
// were never set read as 0 or -1 and are not copied.
constexpr CUfunction_attribute kAttributes[] = {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
};

}  // namespace

absl::Status PatchedModules::CopyAttributes(CUfunction from,
                                            CUfunction to) const {
  for (const CUfunction_attribute attribute : kAttributes) {
    int wanted = 0;
    int present = 0;
    if (driver_.FuncGetAttribute(&wanted, attribute, from) != CUDA_SUCCESS ||
        driver_.FuncGetAttribute(&present, attribute, to) != CUDA_SUCCESS ||
        wanted == present) {
      continue;
    }
    if (absl::Status status = driver_.Check(
            driver_.FuncSetAttribute(to, attribute, wanted),
            absl::StrCat("cuFuncSetAttribute(", attribute, ", ", wanted, ")"));
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

PatchedModules::Module& PatchedModules::Load(const Key& key,
                                             const DeviceCode& code) {
  std::unique_ptr<Module>& slot = modules_[key];
  if (slot != nullptr) return *slot;
  slot = std::make_unique<Module>();
  Module& module = *slot;
  absl::StatusOr<std::vector<uint8_t>> cubin = code.Unpack();
  if (!cubin.ok()) {
    module.status = cubin.status();
    return module;
  }
  absl::StatusOr<cubin::PatchedImage> image =
      cubin::PatchCubinCached(*cubin, {.prologue = std::get<3>(key)}, cache_);
  if (!image.ok()) {
    module.status = image.status();
    return module;
  }
  for (cubin::KernelPatch& kernel : image->kernels) {
    if (!kernel.patched) module.reasons[kernel.name] = kernel.reason;
  }
  module.status =
      driver_.Check(driver_.ModuleLoadData(&module.module, image->image.data()),
                    "cuModuleLoadData(patched image)");
  return module;
}

absl::StatusOr<CUfunction> PatchedModules::Get(const KernelSource& source,
                                               cubin::Prologue prologue,
                                               CUfunction original) {
  const DeviceCode& code = *source.code;
  if (code.with_state.contains(source.name)) {
    if (code.loaded_prologue == cubin::Prologue::kNone) {
      return absl::FailedPreconditionError(
          "it uses variables of its module, which was loaded unpatched");
    }
    if (code.loaded_prologue != prologue) {
      return absl::FailedPreconditionError(
          "it uses variables of its module, which was loaded with another "
          "prologue");
    }
    for (const cubin::KernelPatch& kernel : code.loaded_patches) {
      if (!kernel.patched && kernel.name == source.name) {
        return absl::FailedPreconditionError(kernel.reason);
      }
    }
    return original;
  }
  if (code.shown_to_host.load(std::memory_order_acquire)) {
    return absl::FailedPreconditionError(
        "the program asked where variables of its module are");
  }
  CUcontext context = nullptr;
  if (absl::Status status =
          driver_.Check(driver_.CtxGetCurrent(&context), "cuCtxGetCurrent");
      !status.ok()) {
    return status;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto start = std::chrono::steady_clock::now();
  Module& module = Load({context, code.hash.lo, code.hash.hi, prologue}, code);
  if (!module.status.ok()) return module.status;
  if (const auto reason = module.reasons.find(source.name);
      reason != module.reasons.end()) {
    return absl::FailedPreconditionError(reason->second);
  }
  CUfunction& function = module.functions[source.name];
  if (function == nullptr) {
    if (absl::Status status = driver_.Check(
            driver_.ModuleGetFunction(&function, module.module,
                                      source.name.c_str()),
            absl::StrCat("cuModuleGetFunction(", source.name, ")"));
        !status.ok()) {
      return status;
    }
  }
  // Each time: the program may have changed them since.
  absl::Status status = CopyAttributes(original, function);
  spent_ns_ += static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count());
  if (!status.ok()) return status;
  return function;
}

void PatchedModules::UnloadAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [key, module] : modules_) {
    if (module->module != nullptr) driver_.ModuleUnload(module->module);
  }
  modules_.clear();
}

}  // namespace heddle::rewrite
