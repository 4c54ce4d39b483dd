// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_MODULE_BOOK_H_
#define HEDDLE_RUNTIME_REPLAY_MODULE_BOOK_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// Images, modules, kernels and module variables of a trace, and which of them
// a replay uses. A kernel is found by its id alone: two modules often hold
// different kernels of one name.
class ModuleBook {
 public:
  void Observe(const fb::Image& image) { images_[image.id()] = &image; }
  void Observe(const fb::Module& module) { modules_[module.id()] = &module; }
  void Observe(const fb::Kernel& kernel) { kernels_[kernel.id()] = &kernel; }
  void Observe(const fb::KernelAttribute& attribute);
  void Observe(const fb::Global& global);

  // Index in `program.kernels`; adds the kernel and its module at first use.
  absl::StatusOr<uint32_t> UseKernel(uint32_t id, Program& program);

  // The variable that holds `address`, or nullptr.
  const fb::Global* FindVariable(uint64_t address) const;
  // Adds the variable that holds `address` and its module, if there is one.
  absl::Status UseVariable(uint64_t address, Program& program);

  // Fills in what was not known at the kernels' first use: attributes set
  // later, and the variables of all modules used.
  absl::Status Finish(Program& program);

 private:
  absl::StatusOr<uint32_t> UseModule(uint32_t id, Program& program);

  absl::flat_hash_map<uint32_t, const fb::Image*> images_;
  absl::flat_hash_map<uint32_t, const fb::Module*> modules_;
  absl::flat_hash_map<uint32_t, const fb::Kernel*> kernels_;
  absl::flat_hash_map<uint32_t, std::vector<const fb::KernelAttribute*>>
      attributes_;
  std::vector<const fb::Global*> globals_;
  absl::flat_hash_map<uint32_t, uint32_t> used_kernels_;  // id -> index
  absl::flat_hash_map<uint32_t, uint32_t> used_modules_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_MODULE_BOOK_H_
