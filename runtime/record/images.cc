// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/images.h"

#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/image.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

struct Search {
  uintptr_t address;
  size_t size;
  std::string path;
  bool found = false;
};

int VisitObject(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    // Read-only segments alone: what can be written can change after the load.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    if (search->address < begin || search->address - begin >= segment.p_memsz ||
        search->size > segment.p_memsz - (search->address - begin)) {
      continue;
    }
    search->found = true;
    search->path = info->dlpi_name;
    return 1;
  }
  return 0;
}

// Path of the library (or the executable) that is mapped now and whose
// read-only data holds `bytes`.
bool FindMappedObject(absl::Span<const uint8_t> bytes, std::string* path) {
  Search search{reinterpret_cast<uintptr_t>(bytes.data()), bytes.size(), "",
                false};
  dl_iterate_phdr(VisitObject, &search);
  if (!search.found) return false;
  *path = search.path.empty() ? "/proc/self/exe" : search.path;
  return true;
}

// A copy of bytes in the library `origin`; empty if it has been unmapped since,
// where reading them would crash the program.
std::vector<uint8_t> CopyIfMapped(absl::Span<const uint8_t> bytes,
                                  const std::string& origin) {
  std::string path;
  if (!FindMappedObject(bytes, &path) || path != origin) return {};
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

// Libraries whose device code is their vendor's. With --images own their bytes
// stay out of the trace.
bool IsVendorLibrary(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name =
      slash == std::string::npos ? path : path.substr(slash + 1);
  for (absl::string_view prefix :
       {"libcublas", "libcudnn", "libcufft", "libcusparse", "libcusolver",
        "libcurand", "libnvjpeg", "libnpp", "libcudart", "libnccl",
        "libcutensor", "libnvinfer", "libcuda.so"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

fb::ImageKind KindOf(cubin::ImageKind kind) {
  switch (kind) {
    case cubin::ImageKind::kElf:
      return fb::ImageKind::kCubin;
    case cubin::ImageKind::kFatbin:
      return fb::ImageKind::kFatbin;
    case cubin::ImageKind::kPtx:
      return fb::ImageKind::kPtx;
  }
  return fb::ImageKind::kUnknown;
}

}  // namespace

void ImageTable::Loaded(Recorder& recorder, uint64_t handle,
                        std::unique_ptr<Pending> pending) {
  pending->stamp = recorder.StampPtr();
  std::lock_guard<std::mutex> lock(mutex_);
  pending->id = next_module_id_++;
  modules_[handle] = std::move(pending);
}

void ImageTable::LoadedFromMemory(Recorder& recorder, uint64_t handle,
                                  bool library, const void* code,
                                  const char* api) {
  auto pending = std::make_unique<Pending>();
  pending->library = library;
  pending->api = api;
  absl::StatusOr<cubin::ImageView> image = cubin::IdentifyImage(code);
  if (!image.ok()) {
    recorder.Unsupported(api,
                         absl::StrCat("device code of an unknown kind (",
                                      std::string(image.status().message()),
                                      "): kernels of it cannot be replayed"));
  } else {
    pending->kind = KindOf(image->kind);
    pending->size = image->bytes.size();
    if (FindMappedObject(image->bytes, &pending->origin)) {
      pending->data = image->bytes.data();
    } else {
      pending->owned.assign(image->bytes.begin(), image->bytes.end());
      pending->data = pending->owned.data();
    }
  }
  Loaded(recorder, handle, std::move(pending));
}

void ImageTable::LoadedFromFile(Recorder& recorder, uint64_t handle,
                                bool library, const char* path,
                                const char* api) {
  auto pending = std::make_unique<Pending>();
  pending->library = library;
  pending->api = api;
  pending->origin = path == nullptr ? "" : path;
  std::ifstream file(pending->origin, std::ios::binary);
  pending->owned.assign(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  absl::StatusOr<cubin::ImageView> image =
      cubin::IdentifyImage(absl::MakeConstSpan(pending->owned));
  if (image.ok()) {
    pending->kind = KindOf(image->kind);
    // It begins where the file does; what follows it is none of ours.
    pending->owned.resize(image->bytes.size());
    pending->data = pending->owned.data();
    pending->size = pending->owned.size();
  } else {
    recorder.Unsupported(api,
                         absl::StrCat(pending->origin, ": ",
                                      std::string(image.status().message())));
  }
  Loaded(recorder, handle, std::move(pending));
}

void ImageTable::Alias(uint64_t module, uint64_t library) {
  std::lock_guard<std::mutex> lock(mutex_);
  aliases_[module] = library;
}

void ImageTable::Unloaded(Recorder& recorder, uint64_t handle) {
  recorder.kernels().ForgetModule(handle);
  std::unique_ptr<Pending> gone;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = modules_.find(handle);
    if (it == modules_.end()) return;
    gone = std::move(it->second);
    modules_.erase(it);
    for (auto alias = aliases_.begin(); alias != aliases_.end();) {
      if (alias->second == handle) {
        aliases_.erase(alias++);
      } else {
        ++alias;
      }
    }
  }
  if (!gone->written) return;
  fb::ModuleUnloadT record;
  record.stamp = recorder.StampPtr();
  record.module_id = gone->id;
  recorder.writer().AppendObject(record);
}

uint64_t ImageTable::ContainerOf(Recorder& recorder, CUmodule module) {
  const auto handle = reinterpret_cast<uint64_t>(module);
  std::lock_guard<std::mutex> lock(mutex_);
  if (modules_.contains(handle)) return handle;
  if (const auto alias = aliases_.find(handle); alias != aliases_.end()) {
    return alias->second;
  }
  const device::Driver& driver = recorder.driver();
  if (driver.LibraryGetModule == nullptr) return handle;
  for (const auto& [library, pending] : modules_) {
    // One that no kernel was run from is not asked: that could load it now.
    if (!pending->library || !pending->written) continue;
    CUmodule of_library = nullptr;
    if (driver.LibraryGetModule(&of_library, reinterpret_cast<CUlibrary>(
                                                 library)) == CUDA_SUCCESS &&
        of_library != nullptr) {
      aliases_[reinterpret_cast<uint64_t>(of_library)] = library;
    }
  }
  const auto alias = aliases_.find(handle);
  return alias != aliases_.end() ? alias->second : handle;
}

uint32_t ImageTable::EnsureWritten(Recorder& recorder, uint64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto alias = aliases_.find(handle);
  if (alias != aliases_.end()) handle = alias->second;
  const auto it = modules_.find(handle);
  if (it == modules_.end()) return 0;
  Pending& pending = *it->second;
  if (pending.written) return pending.id;
  pending.written = true;
  fb::ModuleT record;
  record.stamp = std::move(pending.stamp);
  record.id = pending.id;
  record.handle = handle;
  record.kind =
      pending.library ? fb::ModuleKind::kLibrary : fb::ModuleKind::kModule;
  record.api = pending.api;
  record.image = WriteImage(recorder, pending);
  recorder.writer().AppendObject(record);
  pending.owned = {};
  pending.data = nullptr;
  return pending.id;
}

uint32_t ImageTable::WriteImage(Recorder& recorder, Pending& pending) {
  if (pending.owned.empty() && pending.data != nullptr) {
    pending.owned = CopyIfMapped(
        absl::MakeConstSpan(pending.data, pending.size), pending.origin);
  }
  absl::Span<const uint8_t> bytes = pending.owned;
  std::vector<uint8_t> filtered;
  if (pending.kind == fb::ImageKind::kFatbin) {
    // Only what this device can use: a fatbin holds code for many chips.
    const device::Driver& driver = recorder.driver();
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    if (driver.CtxGetDevice(&device) == CUDA_SUCCESS) {
      driver.DeviceGetAttribute(
          &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
      driver.DeviceGetAttribute(
          &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    }
    absl::StatusOr<std::vector<uint8_t>> result =
        cubin::FilterFatbin(bytes, major, minor);
    if (result.ok() && result->size() < bytes.size()) {
      filtered = *std::move(result);
      bytes = filtered;
    }
  }
  const trace::Hash128 hash = trace::HashBytes(bytes);
  const auto known = images_.find(hash);
  if (known != images_.end()) return known->second;

  const ImagePolicy policy = recorder.options().images;
  const bool store =
      !bytes.empty() &&
      (policy == ImagePolicy::kAll ||
       (policy == ImagePolicy::kOwn && !IsVendorLibrary(pending.origin)));
  if (store) recorder.writer().AppendBlob(bytes);
  fb::ImageT record;
  record.id = static_cast<uint32_t>(images_.size() + 1);
  record.kind = pending.kind;
  record.hash = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  record.size = bytes.size();
  record.stored = store;
  record.origin = pending.origin;
  record.filtered = !filtered.empty();
  recorder.writer().AppendObject(record);
  images_[hash] = record.id;
  return record.id;
}

}  // namespace heddle::record
