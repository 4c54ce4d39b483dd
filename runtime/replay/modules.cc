// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/modules.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

std::string NameOf(const ImageModule& module) {
  return absl::StrCat("module ", module.id, " (",
                      module.origin.empty() ? "from memory" : module.origin,
                      ", ", module.size, " bytes, hash ", module.hash.ToHex(),
                      ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Modules>> Modules::Load(
    const device::Driver& driver, CUdevice device, const trace::Reader& reader,
    const Program& program, const ModuleOptions& options) {
  auto modules = absl::WrapUnique(new Modules(driver));
  if (options.rewritable) {
    modules->code_ = std::make_unique<ModuleCode>(driver, device);
  }
  for (uint32_t i = 0; i < program.modules.size(); ++i) {
    const bool has_known_variables = std::any_of(
        program.variables.begin(), program.variables.end(),
        [i](const ModuleVariable& variable) { return variable.module == i; });
    absl::StatusOr<Loaded> loaded =
        modules->LoadImage(reader, program.modules[i], has_known_variables);
    if (!loaded.ok()) return loaded.status();
    modules->loaded_.push_back(*loaded);
  }
  for (const Kernel& kernel : program.kernels) {
    if (absl::Status s = modules->LoadKernel(device, program, kernel);
        !s.ok()) {
      return s;
    }
  }
  for (const ModuleVariable& variable : program.variables) {
    if (absl::Status s = modules->FindVariable(variable); !s.ok()) return s;
  }
  return modules;
}

Modules::~Modules() {
  for (const Loaded& loaded : loaded_) {
    if (loaded.library != nullptr) {
      driver_.LibraryUnload(loaded.library);
    } else if (loaded.module != nullptr) {
      driver_.ModuleUnload(loaded.module);
    }
  }
}

CUresult Modules::LoadBytes(const std::vector<uint8_t>& image, bool as_library,
                            Loaded* loaded) const {
  if (!as_library) return driver_.ModuleLoadData(&loaded->module, image.data());
  return driver_.LibraryLoadData(&loaded->library, image.data(), nullptr,
                                 nullptr, 0, nullptr, nullptr, 0);
}

absl::StatusOr<Modules::Loaded> Modules::LoadImage(const trace::Reader& reader,
                                                   const ImageModule& module,
                                                   bool has_known_variables) {
  if (module.kind == fb::ImageKind::kLtoIr) {
    return absl::UnimplementedError(absl::StrCat(
        NameOf(module), " is LTO-IR, which only a linker can load"));
  }
  if (!reader.HasBlob(module.hash)) {
    return absl::NotFoundError(
        absl::StrCat(NameOf(module), ": its image is not in ", reader.path(),
                     ": record with --images all"));
  }
  absl::StatusOr<std::vector<uint8_t>> bytes = reader.ReadBlob(module.hash);
  if (!bytes.ok()) {
    return absl::Status(
        bytes.status().code(),
        absl::StrCat(NameOf(module), ": ", bytes.status().message()));
  }
  // PTX is text: the driver reads up to a zero byte.
  if (module.kind == fb::ImageKind::kPtx &&
      (bytes->empty() || bytes->back() != 0)) {
    bytes->push_back(0);
  }
  images_.push_back(*std::move(bytes));
  const std::vector<uint8_t>& image = images_.back();
  const bool as_library = module.library &&
                          driver_.LibraryLoadData != nullptr &&
                          driver_.LibraryGetKernel != nullptr &&
                          driver_.KernelGetFunction != nullptr;
  const char* call = as_library ? "cuLibraryLoadData" : "cuModuleLoadData";
  Loaded loaded;
  CUresult result;
  if (code_ == nullptr) {
    result = LoadBytes(image, as_library, &loaded);
  } else {
    const std::vector<uint8_t>& preferred =
        code_->BeforeLoad(image, has_known_variables);
    result = LoadBytes(preferred, as_library, &loaded);
    std::string refused;
    if (result != CUDA_SUCCESS && code_->replaced()) {
      refused = absl::StrCat("the driver refused its patched form (",
                             driver_.ErrorName(result), ")");
      loaded = {};
      result = LoadBytes(image, as_library, &loaded);
    }
    code_->Loaded(refused);
    if (const std::string why = code_->WhyAsRecorded(); !why.empty()) {
      warnings_.push_back(absl::StrCat(NameOf(module),
                                       " has variables and is loaded "
                                       "unpatched, so its kernels stay as "
                                       "they are: ",
                                       why));
    }
  }
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
      result == CUDA_ERROR_INVALID_SOURCE) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(module), " has no code for this device (", call,
                     ": ", driver_.ErrorName(result),
                     "): replay on the kind of device that the "
                     "trace was recorded on"));
  }
  if (absl::Status s =
          driver_.Check(result, absl::StrCat(call, " of ", NameOf(module)));
      !s.ok()) {
    return s;
  }
  return loaded;
}

absl::Status Modules::LoadKernel(CUdevice device, const Program& program,
                                 const Kernel& kernel) {
  const Loaded& loaded = loaded_[kernel.module];
  CUfunction function = nullptr;
  CUkernel library_kernel = nullptr;
  CUresult result;
  if (loaded.library != nullptr) {
    result = driver_.LibraryGetKernel(&library_kernel, loaded.library,
                                      kernel.name.c_str());
    if (result == CUDA_SUCCESS) {
      result = driver_.KernelGetFunction(&function, library_kernel);
    }
  } else {
    result = driver_.ModuleGetFunction(&function, loaded.module,
                                       kernel.name.c_str());
  }
  const std::string where = absl::StrCat(
      "kernel ", kernel.name, " of ", NameOf(program.modules[kernel.module]));
  if (absl::Status s = driver_.Check(result, where); !s.ok()) return s;
  if (code_ != nullptr) {
    code_->SawFunction(function, kernel.module, kernel.name);
    if (library_kernel != nullptr) {
      code_->SawKernel(library_kernel, kernel.module, kernel.name);
    }
  }
  for (const Kernel::Attribute& attribute : kernel.attributes) {
    const auto id = static_cast<CUfunction_attribute>(attribute.id);
    const int value = static_cast<int>(attribute.value);
    int present = 0;
    if (driver_.FuncGetAttribute(&present, id, function) == CUDA_SUCCESS &&
        present == value) {
      continue;
    }
    result = library_kernel != nullptr && driver_.KernelSetAttribute != nullptr
                 ? driver_.KernelSetAttribute(id, value, library_kernel, device)
                 : driver_.FuncSetAttribute(function, id, value);
    if (absl::Status s =
            driver_.Check(result, absl::StrCat("attribute ", attribute.id,
                                               " = ", value, " of ", where));
        !s.ok()) {
      return s;
    }
  }
  if (kernel.cache_config && driver_.FuncSetCacheConfig != nullptr) {
    // A hint: a device that has no use for it may refuse it.
    driver_.FuncSetCacheConfig(function,
                               static_cast<CUfunc_cache>(*kernel.cache_config));
  }
  functions_.push_back(function);
  return absl::OkStatus();
}

absl::Status Modules::FindVariable(const ModuleVariable& variable) {
  const Loaded& loaded = loaded_[variable.module];
  MovedVariable moved;
  moved.recorded = variable.address;
  moved.name = variable.name;
  size_t size = 0;
  CUresult result;
  if (loaded.library != nullptr && driver_.LibraryGetGlobal != nullptr) {
    result = driver_.LibraryGetGlobal(&moved.device, &size, loaded.library,
                                      variable.name.c_str());
  } else {
    CUmodule module = loaded.module;
    if (module == nullptr && driver_.LibraryGetModule != nullptr) {
      driver_.LibraryGetModule(&module, loaded.library);
    }
    result = driver_.ModuleGetGlobal(&moved.device, &size, module,
                                     variable.name.c_str());
  }
  if (absl::Status s =
          driver_.Check(result, absl::StrCat("variable ", variable.name,
                                             " of module ", variable.module));
      !s.ok()) {
    return s;
  }
  if (size < variable.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", variable.name, " has ", size,
                     " bytes, the trace says ", variable.size));
  }
  moved.size = variable.size;
  variables_.push_back(std::move(moved));
  return absl::OkStatus();
}

}  // namespace heddle::replay
