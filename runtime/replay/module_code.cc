// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/module_code.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/patch.h"

namespace heddle::replay {
namespace {

// The first chips with griddepcontrol (PTX ISA, griddepcontrol).
constexpr int kFirstMajor = 9;

// What rewrite::Rewrite expects of kernels that exist only once.
constexpr cubin::Prologue kForVariables = cubin::Prologue::kWait;

}  // namespace

ModuleCode::ModuleCode(const device::Driver& driver, CUdevice device) {
  CUresult result = driver.DeviceGetAttribute(
      &major_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result == CUDA_SUCCESS) {
    result = driver.DeviceGetAttribute(
        &minor_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  }
  supported_ = driver.Check(result, "cuDeviceGetAttribute");
  if (supported_.ok() && major_ < kFirstMajor) {
    supported_ = absl::UnimplementedError(absl::StrCat(
        "this device is sm_", major_, minor_,
        ", and kernels can start early only from sm_", kFirstMajor, "0 on"));
  }
}

void ModuleCode::ReadImage(const std::vector<uint8_t>& image, bool host_writes,
                           Entry* entry) const {
  absl::StatusOr<std::shared_ptr<rewrite::DeviceCode>> code =
      rewrite::MakeDeviceCode(image, major_, minor_);
  if (!code.ok()) {
    entry->status = code.status();
    return;
  }
  entry->code = *std::move(code);
  if (host_writes && entry->code->has_variables) {
    entry->code->with_state = entry->code->kernels;
  }
  if (entry->code->with_state.empty()) return;
  absl::StatusOr<std::vector<uint8_t>> cubin = entry->code->Unpack();
  if (!cubin.ok()) {
    entry->why_as_recorded = absl::StrCat(cubin.status().message());
    return;
  }
  absl::StatusOr<cubin::PatchedImage> patched =
      cubin::PatchCubin(*cubin, {.prologue = kForVariables});
  if (!patched.ok()) {
    entry->why_as_recorded = absl::StrCat(patched.status().message());
    return;
  }
  entry->code->loaded_patches = std::move(patched->kernels);
  entry->patched =
      std::make_unique<std::vector<uint8_t>>(std::move(patched->image));
}

const std::vector<uint8_t>& ModuleCode::BeforeLoad(
    const std::vector<uint8_t>& image, bool host_writes) {
  Entry& entry = entries_.emplace_back();
  entry.status = supported_;
  if (supported_.ok()) ReadImage(image, host_writes, &entry);
  return entry.patched != nullptr ? *entry.patched : image;
}

void ModuleCode::Loaded(const std::string& refused) {
  Entry& entry = entries_.back();
  if (entry.patched == nullptr) return;
  if (refused.empty()) {
    entry.code->loaded_prologue = kForVariables;
    ++replaced_count_;
    return;
  }
  entry.why_as_recorded = refused;
  entry.patched = nullptr;
}

bool ModuleCode::replaced() const { return entries_.back().patched != nullptr; }

std::string ModuleCode::WhyAsRecorded() const {
  return entries_.back().why_as_recorded;
}

void ModuleCode::SawFunction(CUfunction function, uint32_t module,
                             const std::string& kernel) {
  known_[reinterpret_cast<uint64_t>(function)] = {module, kernel};
}

void ModuleCode::SawKernel(CUkernel kernel, uint32_t module,
                           const std::string& name) {
  known_[reinterpret_cast<uint64_t>(kernel)] = {module, name};
}

absl::StatusOr<rewrite::KernelSource> ModuleCode::Find(CUfunction function) {
  const auto known = known_.find(reinterpret_cast<uint64_t>(function));
  if (known == known_.end()) {
    return absl::NotFoundError("its code came from a call that was not seen");
  }
  const Entry& entry = entries_[known->second.module];
  if (entry.code == nullptr) return entry.status;
  if (!entry.code->kernels.contains(known->second.name)) {
    return absl::NotFoundError("its image has no such kernel");
  }
  return rewrite::KernelSource{entry.code, known->second.name};
}

}  // namespace heddle::replay
