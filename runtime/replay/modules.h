// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_MODULES_H_
#define HEDDLE_RUNTIME_REPLAY_MODULES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/device/driver.h"
#include "runtime/replay/module_code.h"
#include "runtime/replay/program.h"

namespace heddle::replay {

// A module variable and where this process has it.
struct MovedVariable {
  uint64_t recorded = 0;
  CUdeviceptr device = 0;
  uint64_t size = 0;
  std::string name;
};

struct ModuleOptions {
  // Keep what rewriting needs to know of each image (Modules::code). Images
  // whose kernels use variables are then loaded in a patched form in place of
  // the recorded one: all modes run that.
  bool rewritable = false;
};

// The images of a program, loaded; its kernels with the attributes that the
// recorded program had set.
class Modules {
 public:
  // Errors: NotFound (image not in the trace, kernel not in its image),
  // FailedPrecondition (made for another device), and what the driver says.
  // `driver` outlives the object.
  static absl::StatusOr<std::unique_ptr<Modules>> Load(
      const device::Driver& driver, CUdevice device,
      const trace::Reader& reader, const Program& program,
      const ModuleOptions& options = {});
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // By index in Program::kernels.
  CUfunction function(uint32_t kernel) const { return functions_[kernel]; }
  const std::vector<MovedVariable>& variables() const { return variables_; }
  // Where the functions come from; nullptr unless asked for (`rewritable`).
  ModuleCode* code() const { return code_.get(); }
  // What a reader of the result must know.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Loaded {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
  };

  explicit Modules(const device::Driver& driver) : driver_(driver) {}
  absl::StatusOr<Loaded> LoadImage(const trace::Reader& reader,
                                   const ImageModule& module,
                                   bool has_known_variables);
  CUresult LoadBytes(const std::vector<uint8_t>& image, bool as_library,
                     Loaded* loaded) const;
  absl::Status LoadKernel(CUdevice device, const Program& program,
                          const Kernel& kernel);
  absl::Status FindVariable(const ModuleVariable& variable);

  const device::Driver& driver_;
  // Kept for the modules' life: drivers may read them lazily.
  std::vector<std::vector<uint8_t>> images_;
  std::unique_ptr<ModuleCode> code_;
  std::vector<Loaded> loaded_;  // by index in Program::modules
  std::vector<CUfunction> functions_;
  std::vector<MovedVariable> variables_;
  std::vector<std::string> warnings_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_MODULES_H_
