// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/kernels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/record/log.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

// What this thread knows of the handles it launches; direct-mapped. Most
// programs launch a few hundred kernels.
struct ThreadCache {
  static constexpr size_t kEntries = 1024;
  struct Entry {
    uint64_t handle = 0;
    const KernelInfo* info = nullptr;
    uint32_t generation = 0;
  };
  Entry entries[kEntries];
};
thread_local ThreadCache t_cache;

ThreadCache::Entry& CacheEntry(uint64_t handle) {
  // Handles are heap addresses: their low bits say little.
  const uint64_t mixed = handle * 0x9E3779B97F4A7C15u;
  return t_cache.entries[mixed >> (64 - 10)];
}

void BuildTemplate(KernelInfo* info) {
  flatbuffers::FlatBufferBuilder builder(256 + info->param_bytes);
  const std::vector<uint8_t> zeros(info->param_bytes, 0);
  const auto params = builder.CreateVector(zeros);
  fb::LaunchHead head;
  fb::LaunchBuilder launch(builder);
  launch.add_head(&head);
  launch.add_params(params);
  builder.Finish(launch.Finish());
  info->launch_template.assign(builder.GetBufferPointer(),
                               builder.GetBufferPointer() + builder.GetSize());
  const uint8_t* base = info->launch_template.data();
  const auto* root = flatbuffers::GetRoot<fb::Launch>(base);
  info->head_offset = static_cast<uint32_t>(
      reinterpret_cast<const uint8_t*>(root->head()) - base);
  info->params_offset = static_cast<uint32_t>(root->params()->Data() - base);
}

}  // namespace

void KernelTable::Register(uint64_t handle, Origin origin) {
  std::lock_guard<std::mutex> lock(mutex_);
  Origin& slot = origins_[handle];
  // The same look-up made again keeps what is known.
  if (slot.module_handle == origin.module_handle && slot.name == origin.name &&
      slot.is_kernel == origin.is_kernel) {
    return;
  }
  if (by_handle_.erase(handle) > 0) generation_.fetch_add(1);
  slot = std::move(origin);
}

void KernelTable::RegisterFunctionOf(uint64_t function, uint64_t kernel) {
  Origin origin;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = origins_.find(kernel);
    if (it == origins_.end()) return;
    origin = it->second;
  }
  origin.is_kernel = false;
  Register(function, std::move(origin));
}

void KernelTable::RegisterKernel(Recorder& recorder, CUkernel kernel) {
  const auto handle = reinterpret_cast<uint64_t>(kernel);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (origins_.contains(handle)) return;
  }
  const device::Driver& driver = recorder.driver();
  Origin origin;
  origin.library = true;
  origin.is_kernel = true;
  CUlibrary library = nullptr;
  if (driver.KernelGetLibrary != nullptr &&
      driver.KernelGetLibrary(&library, kernel) == CUDA_SUCCESS) {
    origin.module_handle = reinterpret_cast<uint64_t>(library);
  }
  const char* name = nullptr;
  if (driver.KernelGetName != nullptr &&
      driver.KernelGetName(&name, kernel) == CUDA_SUCCESS && name != nullptr) {
    origin.name = name;
  }
  Register(handle, std::move(origin));
}

void KernelTable::ForgetModule(uint64_t module_handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = origins_.begin(); it != origins_.end();) {
    if (it->second.module_handle == module_handle) {
      by_handle_.erase(it->first);
      origins_.erase(it++);
    } else {
      ++it;
    }
  }
  generation_.fetch_add(1);
}

uint32_t KernelTable::KnownId(uint64_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() || it->second == nullptr ? 0 : it->second->id;
}

const KernelInfo* KernelTable::Find(Recorder& recorder, CUfunction handle) {
  const auto key = reinterpret_cast<uint64_t>(handle);
  ThreadCache::Entry& entry = CacheEntry(key);
  if (entry.handle == key &&
      entry.generation == generation_.load(std::memory_order_acquire)) {
    return entry.info;
  }
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  const KernelInfo* info = FindSlow(recorder, handle);
  entry = {key, info, generation};
  return info;
}

const KernelInfo* KernelTable::FindSlow(Recorder& recorder, CUfunction handle) {
  const auto key = reinterpret_cast<uint64_t>(handle);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = by_handle_.find(key);
    if (it != by_handle_.end()) return it->second;
  }
  // Described outside the lock: it calls the driver. Two threads may do it at
  // once; the first to come back is kept, the other's record is harmless.
  const Origin origin = OriginOf(recorder, handle);
  std::unique_ptr<KernelInfo> info = Describe(recorder, handle, origin);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, inserted] = by_handle_.try_emplace(key, info.get());
  if (!inserted) return it->second;
  const KernelInfo* described = info.get();
  origins_[key] = origin;
  if (info->function != 0) {
    Origin of_function = origin;
    of_function.is_kernel = false;
    origins_[info->function] = std::move(of_function);
    by_handle_[info->function] = described;
  }
  all_.push_back(std::move(info));
  return described;
}

KernelTable::Origin KernelTable::OriginOf(Recorder& recorder,
                                          CUfunction handle) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = origins_.find(reinterpret_cast<uint64_t>(handle));
    if (it != origins_.end()) return it->second;
  }
  // A function that came from nowhere we watch: ask the driver.
  Origin origin;
  const device::Driver& driver = recorder.driver();
  CUmodule module = nullptr;
  if (driver.FuncGetModule != nullptr &&
      driver.FuncGetModule(&module, handle) == CUDA_SUCCESS) {
    origin.module_handle = recorder.images().ContainerOf(recorder, module);
  }
  return origin;
}

std::unique_ptr<KernelInfo> KernelTable::Describe(Recorder& recorder,
                                                  CUfunction handle,
                                                  const Origin& origin) {
  static std::atomic<uint32_t> next_id{1};
  const device::Driver& driver = recorder.driver();
  const auto kernel = reinterpret_cast<CUkernel>(handle);
  auto info = std::make_unique<KernelInfo>();
  fb::KernelT record;
  record.id = info->id = next_id.fetch_add(1);
  record.handle = reinterpret_cast<uint64_t>(handle);
  record.name = origin.name;
  if (record.name.empty() && driver.FuncGetName != nullptr) {
    const char* name = nullptr;
    if (driver.FuncGetName(&name, handle) == CUDA_SUCCESS && name != nullptr) {
      record.name = name;
    }
  }
  for (size_t index = 0;; ++index) {
    size_t offset = 0;
    size_t size = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (origin.is_kernel && driver.KernelGetParamInfo != nullptr) {
      result = driver.KernelGetParamInfo(kernel, index, &offset, &size);
    } else if (!origin.is_kernel && driver.FuncGetParamInfo != nullptr) {
      result = driver.FuncGetParamInfo(handle, index, &offset, &size);
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED && index == 0) {
      recorder.Unsupported("cuFuncGetParamInfo",
                           "this driver does not tell parameter sizes (needs "
                           "12.4): launches are recorded without parameters");
    }
    if (result != CUDA_SUCCESS) break;
    info->params.emplace_back(static_cast<uint32_t>(offset),
                              static_cast<uint32_t>(size));
    info->param_bytes =
        std::max(info->param_bytes, static_cast<uint32_t>(offset + size));
  }
  record.params = info->params;
  record.param_bytes = info->param_bytes;

  CUfunction function = handle;
  if (origin.is_kernel) {
    function = nullptr;
    if (driver.KernelGetFunction != nullptr) {
      driver.KernelGetFunction(&function, kernel);
    }
    info->function = reinterpret_cast<uint64_t>(function);
  }
  for (int attribute = 0;
       function != nullptr && attribute < CU_FUNC_ATTRIBUTE_MAX; ++attribute) {
    int value = 0;
    if (driver.FuncGetAttribute(&value,
                                static_cast<CUfunction_attribute>(attribute),
                                function) == CUDA_SUCCESS) {
      record.attributes.emplace_back(attribute, 0,
                                     static_cast<uint64_t>(value));
    }
  }
  record.module_id =
      recorder.images().EnsureWritten(recorder, origin.module_handle);
  recorder.writer().AppendObject(record);
  BuildTemplate(info.get());
  return info;
}

}  // namespace heddle::record
