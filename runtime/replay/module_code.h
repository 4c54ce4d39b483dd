// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REPLAY_MODULE_CODE_H_
#define HEDDLE_RUNTIME_REPLAY_MODULE_CODE_H_

// What the images that a replay loads mean as machine code, for rewriting: the
// offline counterpart of live/loaded_code.h.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/device_code.h"

namespace heddle::replay {

// Images whose kernels use variables are patched once, when they are loaded,
// because a second copy would have variables of its own.
//
// Modules are named by their index in Program::modules, and seen in order.
// Threads: one.
class ModuleCode : public rewrite::CodeSource {
 public:
  ModuleCode(const device::Driver& driver, CUdevice device);

  // OK, or why no kernel can be rewritten on this device.
  const absl::Status& supported() const { return supported_; }

  // The next module is about to be loaded from `image`. Returns the bytes to
  // give to the driver: a patched form, which lives as long as the object, or
  // `image` itself. `host_writes`: its variables, constants too, get other
  // values than those in the image, which a second copy would miss.
  const std::vector<uint8_t>& BeforeLoad(const std::vector<uint8_t>& image,
                                         bool host_writes);
  // That module was loaded. `refused` is empty, or says why the driver did not
  // take the patched form, so that `image` was loaded instead.
  void Loaded(const std::string& refused);

  void SawFunction(CUfunction function, uint32_t module,
                   const std::string& kernel);
  void SawKernel(CUkernel kernel, uint32_t module, const std::string& name);

  absl::StatusOr<rewrite::KernelSource> Find(CUfunction function) override;

  // Whether the last module was loaded in a patched form.
  bool replaced() const;
  // How many modules were.
  uint64_t replaced_count() const { return replaced_count_; }
  // Why the last module, which has variables, runs as recorded in every mode;
  // empty if it does not, or has none.
  std::string WhyAsRecorded() const;

 private:
  struct Entry {
    absl::Status status;  // why there is no `code`
    std::shared_ptr<rewrite::DeviceCode> code;
    std::unique_ptr<std::vector<uint8_t>> patched;
    std::string why_as_recorded;
  };
  struct Known {
    uint32_t module = 0;
    std::string name;
  };

  void ReadImage(const std::vector<uint8_t>& image, bool host_writes,
                 Entry* entry) const;

  int major_ = 0;
  int minor_ = 0;
  absl::Status supported_;
  uint64_t replaced_count_ = 0;
  std::vector<Entry> entries_;  // by module
  // By handle: the driver takes a CUkernel wherever it wants a CUfunction.
  absl::flat_hash_map<uint64_t, Known> known_;
};

}  // namespace heddle::replay

#endif  // HEDDLE_RUNTIME_REPLAY_MODULE_CODE_H_
