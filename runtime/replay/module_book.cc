// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/module_book.h"

#include <cuda.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace heddle::replay {
namespace {

std::string Text(const flatbuffers::String* string) {
  return string == nullptr ? std::string() : string->str();
}

bool Settable(int attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return true;
    default:
      return false;
  }
}

void SetAttribute(Kernel& kernel, int id, int64_t value) {
  if (!Settable(id)) return;
  for (Kernel::Attribute& attribute : kernel.attributes) {
    if (attribute.id != id) continue;
    // A limit that every launch so far must fit into: the largest serves all.
    attribute.value = id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                          ? std::max(attribute.value, value)
                          : value;
    return;
  }
  kernel.attributes.push_back({id, value});
}

bool Holds(const fb::Global& global, uint64_t address) {
  return address >= global.address() &&
         address - global.address() < global.size();
}

}  // namespace

void ModuleBook::Observe(const fb::KernelAttribute& attribute) {
  attributes_[attribute.kernel()].push_back(&attribute);
}

void ModuleBook::Observe(const fb::Global& global) {
  if (global.address() == 0 || global.size() == 0) return;
  if (global.size() > ~uint64_t{0} - global.address()) return;  // damage
  globals_.push_back(&global);
}

absl::StatusOr<uint32_t> ModuleBook::UseModule(uint32_t id, Program& program) {
  if (const auto it = used_modules_.find(id); it != used_modules_.end()) {
    return it->second;
  }
  const auto module = modules_.find(id);
  if (module == modules_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the trace does not hold module ", id));
  }
  const auto image = images_.find(module->second->image());
  if (image == images_.end() || image->second->hash() == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "the trace does not hold image ", module->second->image(),
        " of module ", id, ": it was loaded before recording began"));
  }
  ImageModule used;
  used.id = id;
  used.library = module->second->kind() == fb::ModuleKind::kLibrary;
  used.kind = image->second->kind();
  used.hash = {image->second->hash()->lo(), image->second->hash()->hi()};
  used.size = image->second->size();
  used.origin = Text(image->second->origin());
  const uint32_t index = static_cast<uint32_t>(program.modules.size());
  program.modules.push_back(std::move(used));
  used_modules_[id] = index;
  return index;
}

absl::StatusOr<uint32_t> ModuleBook::UseKernel(uint32_t id, Program& program) {
  if (const auto it = used_kernels_.find(id); it != used_kernels_.end()) {
    return it->second;
  }
  const auto found = kernels_.find(id);
  if (found == kernels_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the trace does not hold kernel ", id));
  }
  const fb::Kernel& recorded = *found->second;
  Kernel kernel;
  kernel.id = id;
  kernel.name = Text(recorded.name());
  if (recorded.module_id() == 0) {
    return absl::NotFoundError(
        absl::StrCat("the trace does not know the module of kernel ",
                     kernel.name, ": it was loaded before recording began"));
  }
  absl::StatusOr<uint32_t> module = UseModule(recorded.module_id(), program);
  if (!module.ok()) {
    return absl::Status(
        module.status().code(),
        absl::StrCat("kernel ", kernel.name, ": ", module.status().message()));
  }
  kernel.module = *module;
  kernel.param_bytes = recorded.param_bytes();
  if (recorded.params() != nullptr) {
    for (const fb::ParamInfo* param : *recorded.params()) {
      const uint64_t end = uint64_t{param->offset()} + param->size();
      if (end > kernel.param_bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("kernel ", kernel.name, ": a parameter ends at byte ",
                         end, " of ", kernel.param_bytes));
      }
      kernel.params.push_back({param->offset(), param->size()});
    }
  }
  if (recorded.attributes() != nullptr) {
    for (const fb::KeyValueU64* attribute : *recorded.attributes()) {
      SetAttribute(kernel, attribute->key(),
                   static_cast<int64_t>(attribute->value()));
    }
  }
  const uint32_t index = static_cast<uint32_t>(program.kernels.size());
  program.kernels.push_back(std::move(kernel));
  used_kernels_[id] = index;
  return index;
}

const fb::Global* ModuleBook::FindVariable(uint64_t address) const {
  // The latest wins: addresses are reused when modules are unloaded.
  for (auto it = globals_.rbegin(); it != globals_.rend(); ++it) {
    if (Holds(**it, address)) return *it;
  }
  return nullptr;
}

absl::Status ModuleBook::UseVariable(uint64_t address, Program& program) {
  const fb::Global* global = FindVariable(address);
  if (global == nullptr) return absl::OkStatus();
  return UseModule(global->module_id(), program).status();
}

absl::Status ModuleBook::Finish(Program& program) {
  for (Kernel& kernel : program.kernels) {
    const auto found = attributes_.find(kernel.id);
    if (found == attributes_.end()) continue;
    for (const fb::KernelAttribute* change : found->second) {
      if (Text(change->api()) == "cuFuncSetCacheConfig") {
        kernel.cache_config = static_cast<int>(change->value());
      } else {
        SetAttribute(kernel, change->attribute(), change->value());
      }
    }
  }
  for (const fb::Global* global : globals_) {
    const auto module = used_modules_.find(global->module_id());
    if (module == used_modules_.end()) continue;
    const std::string name = Text(global->name());
    const bool present =
        std::any_of(program.variables.begin(), program.variables.end(),
                    [&](const ModuleVariable& v) {
                      return v.module == module->second && v.name == name;
                    });
    if (present) continue;
    program.variables.push_back(
        {module->second, name, global->address(), global->size()});
  }
  return absl::OkStatus();
}

}  // namespace heddle::replay
