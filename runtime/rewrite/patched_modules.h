// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_PATCHED_MODULES_H_
#define HEDDLE_RUNTIME_REWRITE_PATCHED_MODULES_H_

// Patched twins of the program's kernels, loaded beside them.

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/cubin/patch.h"
#include "runtime/cubin/patch_cache.h"
#include "runtime/device/driver.h"
#include "runtime/rewrite/device_code.h"

namespace heddle::rewrite {

// Thread safe. Modules stay loaded until the object goes: executable graphs may
// use them.
class PatchedModules {
 public:
  // `cache` may be nullptr; it outlives the object, as `driver` does.
  PatchedModules(const device::Driver& driver, cubin::PatchCache* cache)
      : driver_(driver), cache_(cache) {}
  // Unloads nothing: at exit the driver may be gone. See UnloadAll.
  ~PatchedModules() = default;

  // The function to launch in place of `original` in the current context so
  // that `prologue` runs first, with all of `original`'s attributes. Loads the
  // patched image at first use. `original` itself if the program loaded the
  // patched image.
  // FailedPrecondition, Unimplemented, or the driver's error, for people.
  absl::StatusOr<CUfunction> Get(const KernelSource& source,
                                 cubin::Prologue prologue, CUfunction original);

  // Time spent in patching and loading so far, nanoseconds.
  uint64_t spent_ns() const { return spent_ns_; }
  void UnloadAll();

 private:
  struct Module {
    absl::Status status;
    CUmodule module = nullptr;
    absl::flat_hash_map<std::string, std::string> reasons;  // unpatched kernels
    absl::flat_hash_map<std::string, CUfunction> functions;
  };
  using Key = std::tuple<CUcontext, uint64_t, uint64_t, cubin::Prologue>;

  Module& Load(const Key& key, const DeviceCode& code);
  absl::Status CopyAttributes(CUfunction from, CUfunction to) const;

  const device::Driver& driver_;
  cubin::PatchCache* cache_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Module>> modules_;
  uint64_t spent_ns_ = 0;
};

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_PATCHED_MODULES_H_
