// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_LOADED_CODE_H_
#define HEDDLE_RUNTIME_LIVE_LOADED_CODE_H_

// The device code that the program has loaded, by the calls that loaded it, and
// which function handle means which kernel of it.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "runtime/cubin/patch_cache.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/device_code.h"

namespace heddle::live {

// Thread safe.
class LoadedCode : public rewrite::CodeSource {
 public:
  LoadedCode(const device::Driver& driver, cubin::PatchCache* cache)
      : driver_(driver), cache_(cache) {}

  // One load call of the program.
  struct Load {
    // What to give to the driver: the program's image, or its patched form.
    const void* image = nullptr;
    bool replaced = false;
    // Why nothing of this image can be patched; empty if it can.
    absl::Status status;
    std::shared_ptr<rewrite::DeviceCode> code;
    std::vector<uint8_t> patched;  // `image` if replaced
  };
  // Before the driver sees it. An image with variables is patched here, because
  // a second copy of it would have variables of its own.
  std::shared_ptr<Load> BeforeLoad(const void* image);
  std::shared_ptr<Load> BeforeLoadFile(const char* path);
  // The driver loaded it. `accepted_patched`: it took load.image.
  void Loaded(uint64_t handle, bool library, std::shared_ptr<Load> load,
              bool accepted_patched);
  void Unloaded(uint64_t handle);

  void SawFunction(CUfunction function, uint64_t module, const char* name);
  void SawKernel(CUkernel kernel, CUlibrary library, const char* name);
  void SawFunctionOf(CUfunction function, CUkernel kernel);
  void SawModuleOf(CUmodule module, CUlibrary library);

  // The program asked for the address of a variable of this module or library.
  // True if that was the first time.
  bool SawVariable(uint64_t container);

  absl::StatusOr<rewrite::KernelSource> Find(CUfunction function) override;

  // Addresses of the variables of `code` in the current context.
  struct Variable {
    uint64_t address;
    uint64_t size;
  };
  std::vector<Variable> VariablesOf(const rewrite::DeviceCode& code);

  // What loading cost the program: images looked at, replaced, nanoseconds.
  struct Cost {
    uint64_t images = 0;
    uint64_t replaced = 0;
    uint64_t nanoseconds = 0;
  };
  Cost cost();

 private:
  struct Container {
    bool library = false;
    std::shared_ptr<Load> load;
  };
  struct Known {
    uint64_t container = 0;
    std::string name;
  };

  std::shared_ptr<Load> Prepare(absl::Span<const uint8_t> bytes,
                                const void* image);
  absl::StatusOr<rewrite::KernelSource> SourceOf(const Known& known) const;
  // Both need mutex_.
  absl::StatusOr<Known> Identify(CUfunction function);
  const Known* KnownKernel(CUkernel kernel) const;

  const device::Driver& driver_;
  cubin::PatchCache* cache_;
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Container> containers_;  // module or library
  absl::flat_hash_map<uint64_t, uint64_t> library_of_;   // module -> library
  absl::flat_hash_map<uint64_t, Known> functions_;
  absl::flat_hash_map<uint64_t, Known> kernels_;
  // Handles of CUkernel by name: graph nodes name functions that the program
  // never asked for.
  absl::flat_hash_map<std::string, absl::flat_hash_set<uint64_t>> by_name_;
  Cost cost_;
};

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_LOADED_CODE_H_
