// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/loaded_code.h"

#include <chrono>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/image.h"
#include "runtime/record/log.h"

namespace heddle::live {
namespace {

template <typename Handle>
uint64_t Id(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// A patched image in place of the program's own is what its plain launches run
// too. A wait changes nothing there; a trigger would start early what the
// program itself launches with programmatic dependencies.
constexpr cubin::Prologue kLoadedPrologue = cubin::Prologue::kWait;

}  // namespace

std::shared_ptr<LoadedCode::Load> LoadedCode::Prepare(
    absl::Span<const uint8_t> bytes, const void* image) {
  auto load = std::make_shared<Load>();
  load->image = image;
  CUdevice device = 0;
  // A library may be loaded while no context is current.
  if (driver_.CtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
  int major = 0;
  int minor = 0;
  driver_.DeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver_.DeviceGetAttribute(
      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  absl::StatusOr<std::shared_ptr<rewrite::DeviceCode>> code =
      rewrite::MakeDeviceCode(bytes, major, minor);
  if (!code.ok()) {
    load->status = code.status();
    return load;
  }
  load->code = *std::move(code);
  if (load->code->with_state.empty()) return load;
  absl::StatusOr<std::vector<uint8_t>> cubin = load->code->Unpack();
  absl::StatusOr<cubin::PatchedImage> patched = absl::UnknownError("");
  if (!cubin.ok()) {
    patched = cubin.status();
  } else {
    patched =
        cubin::PatchCubinCached(*cubin, {.prologue = kLoadedPrologue}, cache_);
  }
  if (!patched.ok()) {
    load->status = patched.status();
    return load;
  }
  record::Log(record::LogLevel::kDebug,
              absl::StrCat(load->code->with_state.size(), " of ",
                           load->code->kernels.size(),
                           " kernels of an image use its variables (",
                           *load->code->with_state.begin(),
                           "): it is loaded with prologues"));
  load->patched = std::move(patched->image);
  load->code->loaded_patches = std::move(patched->kernels);
  load->image = load->patched.data();
  load->replaced = true;
  return load;
}

std::shared_ptr<LoadedCode::Load> LoadedCode::BeforeLoad(const void* image) {
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<Load> load;
  absl::StatusOr<cubin::ImageView> view = cubin::IdentifyImage(image);
  if (view.ok()) {
    load = Prepare(view->bytes, image);
  } else {
    load = std::make_shared<Load>();
    load->image = image;
    load->status = view.status();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  ++cost_.images;
  cost_.replaced += load->replaced ? 1 : 0;
  cost_.nanoseconds += static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count());
  return load;
}

std::shared_ptr<LoadedCode::Load> LoadedCode::BeforeLoadFile(const char* path) {
  std::ifstream file(path == nullptr ? "" : path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  auto load = std::make_shared<Load>();
  absl::StatusOr<cubin::ImageView> view =
      cubin::IdentifyImage(absl::MakeConstSpan(bytes));
  if (!view.ok()) {
    load->status = view.status();
    return load;
  }
  return Prepare(view->bytes, nullptr);
}

void LoadedCode::Loaded(uint64_t handle, bool library,
                        std::shared_ptr<Load> load, bool accepted_patched) {
  if (load->replaced && accepted_patched) {
    load->code->loaded_prologue = kLoadedPrologue;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  containers_[handle] = {library, std::move(load)};
}

void LoadedCode::Unloaded(uint64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  containers_.erase(handle);
  absl::erase_if(library_of_,
                 [handle](const auto& item) { return item.second == handle; });
  absl::erase_if(functions_, [handle](const auto& item) {
    return item.second.container == handle;
  });
  for (auto it = kernels_.begin(); it != kernels_.end();) {
    const auto current = it++;
    if (current->second.container != handle) continue;
    by_name_[current->second.name].erase(current->first);
    kernels_.erase(current);
  }
}

void LoadedCode::SawFunction(CUfunction function, uint64_t module,
                             const char* name) {
  std::lock_guard<std::mutex> lock(mutex_);
  functions_[Id(function)] = {module, name};
}

void LoadedCode::SawKernel(CUkernel kernel, CUlibrary library,
                           const char* name) {
  std::lock_guard<std::mutex> lock(mutex_);
  kernels_[Id(kernel)] = {Id(library), name};
  by_name_[name].insert(Id(kernel));
}

void LoadedCode::SawFunctionOf(CUfunction function, CUkernel kernel) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = kernels_.find(Id(kernel));
  if (known != kernels_.end()) functions_[Id(function)] = known->second;
}

void LoadedCode::SawModuleOf(CUmodule module, CUlibrary library) {
  std::lock_guard<std::mutex> lock(mutex_);
  library_of_[Id(module)] = Id(library);
}

absl::StatusOr<LoadedCode::Known> LoadedCode::Identify(CUfunction function) {
  // The driver also takes a CUkernel where it wants a CUfunction.
  if (const auto kernel = kernels_.find(Id(function));
      kernel != kernels_.end()) {
    return kernel->second;
  }
  const char* name = nullptr;
  CUmodule module = nullptr;
  if (driver_.FuncGetName == nullptr || driver_.FuncGetModule == nullptr ||
      driver_.FuncGetName(&name, function) != CUDA_SUCCESS || name == nullptr ||
      driver_.FuncGetModule(&module, function) != CUDA_SUCCESS) {
    return absl::NotFoundError("the driver does not say which kernel it is");
  }
  if (containers_.contains(Id(module))) return Known{Id(module), name};
  if (const auto library = library_of_.find(Id(module));
      library != library_of_.end()) {
    return Known{library->second, name};
  }
  if (driver_.KernelGetFunction != nullptr) {
    for (const uint64_t kernel : by_name_[name]) {
      CUfunction of_kernel = nullptr;
      if (driver_.KernelGetFunction(
              &of_kernel, reinterpret_cast<CUkernel>(kernel)) == CUDA_SUCCESS &&
          of_kernel == function) {
        return kernels_[kernel];
      }
    }
  }
  if (driver_.LibraryGetModule != nullptr) {
    // Only libraries that have such a kernel are asked: the question may load
    // one that is not yet.
    for (const auto& [handle, container] : containers_) {
      if (!container.library || container.load->code == nullptr ||
          !container.load->code->kernels.contains(name)) {
        continue;
      }
      CUmodule of_library = nullptr;
      if (driver_.LibraryGetModule(&of_library, reinterpret_cast<CUlibrary>(
                                                    handle)) != CUDA_SUCCESS) {
        continue;
      }
      library_of_[Id(of_library)] = handle;
      if (of_library == module) return Known{handle, name};
    }
  }
  return absl::NotFoundError("its code came from a call that was not seen");
}

absl::StatusOr<rewrite::KernelSource> LoadedCode::SourceOf(
    const Known& known) const {
  const auto it = containers_.find(known.container);
  if (it == containers_.end()) {
    return absl::NotFoundError("its module was unloaded");
  }
  const Load& load = *it->second.load;
  if (load.code == nullptr) return load.status;
  if (!load.code->kernels.contains(known.name)) {
    return absl::NotFoundError("its image has no such kernel");
  }
  return rewrite::KernelSource{load.code, known.name};
}

absl::StatusOr<rewrite::KernelSource> LoadedCode::Find(CUfunction function) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = functions_.find(Id(function));
  if (known != functions_.end()) return SourceOf(known->second);
  absl::StatusOr<Known> identified = Identify(function);
  if (!identified.ok()) return identified.status();
  functions_[Id(function)] = *identified;
  return SourceOf(*identified);
}

bool LoadedCode::SawVariable(uint64_t container) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto library = library_of_.find(container);
      library != library_of_.end()) {
    container = library->second;
  }
  const auto it = containers_.find(container);
  if (it == containers_.end() || it->second.load->code == nullptr) return false;
  return !it->second.load->code->shown_to_host.exchange(true);
}

std::vector<LoadedCode::Variable> LoadedCode::VariablesOf(
    const rewrite::DeviceCode& code) {
  std::vector<Variable> variables;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [handle, container] : containers_) {
    if (container.load->code.get() != &code) continue;
    // Kernels cannot write constants.
    for (const std::string& variable : code.global_variables) {
      CUdeviceptr address = 0;
      size_t size = 0;
      const CUresult result =
          container.library
              ? (driver_.LibraryGetGlobal == nullptr
                     ? CUDA_ERROR_NOT_SUPPORTED
                     : driver_.LibraryGetGlobal(
                           &address, &size, reinterpret_cast<CUlibrary>(handle),
                           variable.c_str()))
              : driver_.ModuleGetGlobal(&address, &size,
                                        reinterpret_cast<CUmodule>(handle),
                                        variable.c_str());
      if (result == CUDA_SUCCESS && address != 0 && size != 0) {
        variables.push_back({address, size});
      }
    }
  }
  return variables;
}

LoadedCode::Cost LoadedCode::cost() {
  std::lock_guard<std::mutex> lock(mutex_);
  return cost_;
}

}  // namespace heddle::live
