// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_BOUND_PROGRAM_H_
#define HEDDLE_RUNTIME_REPLAY_BOUND_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/device/driver.h"
#include "runtime/replay/memory_image.h"
#include "runtime/replay/modules.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// A program with everything that a driver call needs: operations whose
// addresses are this process's, kernels as functions, host buffers as pinned
// memory. What it gives to the driver is its own and lives as long as it does.
class BoundProgram {
 public:
  // Adds the module variables to `image`. All arguments outlive the object.
  static absl::StatusOr<std::unique_ptr<BoundProgram>> Create(
      const device::Driver& driver, const trace::Reader& reader,
      const Program& program, const Modules& modules, MemoryImage& image);
  ~BoundProgram();
  BoundProgram(const BoundProgram&) = delete;
  BoundProgram& operator=(const BoundProgram&) = delete;

  const OperationList& prefix() const { return prefix_; }
  const OperationList& step() const { return step_; }
  const Program& program() const { return program_; }

  // The arguments of a launch in the two forms that the driver takes: one
  // pointer a parameter, or the whole block where its layout is not known.
  // Pointers stay valid as long as the object.
  struct Arguments {
    CUfunction function = nullptr;
    void** params = nullptr;
    void** extra = nullptr;
  };
  Arguments arguments(const LaunchWork& launch) const;

  uint8_t* host_buffer(uint32_t index) const { return buffers_[index]; }

  // Fills the buffers that are copied to the device. `perturb_seed` 0: as
  // recorded; else floating-point data is changed (see Perturb) and
  // `changed_bytes`, if not null, is raised by what was changed.
  absl::Status LoadInputs(uint64_t perturb_seed, uint64_t* changed_bytes);
  // What the step has copied to the host, one buffer after another.
  std::vector<uint8_t> Outputs() const;
  // Overwrites the outputs, so that a copy that does not happen shows.
  void ClearOutputs();

  // 8-byte words of launch parameters that pointed into module variables and
  // were changed to where these are now.
  uint64_t patched_pointers() const { return patched_pointers_; }

 private:
  BoundProgram(const device::Driver& driver, const trace::Reader& reader,
               const Program& program, const Modules& modules)
      : driver_(driver),
        reader_(reader),
        program_(program),
        modules_(modules) {}
  absl::Status AllocateBuffers();
  absl::Status Bind(const MemoryImage& image, OperationList& list);
  absl::Status BindCopyEnd(const MemoryImage& image, const CopyWork& copy,
                           CopyEnd& end) const;
  void BindLaunch(LaunchWork& launch);

  struct ArgumentBlock {
    std::vector<void*> params;
    size_t size = 0;
    void* extra[5] = {};
  };

  const device::Driver& driver_;
  const trace::Reader& reader_;
  const Program& program_;
  const Modules& modules_;
  OperationList prefix_;
  OperationList step_;
  void* arena_ = nullptr;
  std::vector<uint8_t*> buffers_;
  std::vector<std::unique_ptr<ArgumentBlock>> blocks_;  // by slot
  uint64_t patched_pointers_ = 0;
};

// Replaces aligned 8-byte words of `params` that lie in a variable's recorded
// range by the same place in the variable; returns how many.
uint64_t PatchVariablePointers(const std::vector<MovedVariable>& variables,
                               std::vector<uint8_t>& params);

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_BOUND_PROGRAM_H_
