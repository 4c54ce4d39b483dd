// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_KERNELS_H_
#define HEDDLE_RUNTIME_RECORD_KERNELS_H_

// Which kernel a function handle means, and the pre-built record of its launch.
//
// Identity comes from the load calls (a module's handle and the image behind
// it), never from the kernel's name alone: two modules often hold different
// kernels of one name.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "heddle/trace.h"

namespace heddle::record {

class Recorder;

// A kernel that was launched at least once. Immutable after publication;
// never freed before the process ends, so that a launch may use it without a
// lock while another thread unloads the module.
struct KernelInfo {
  uint32_t id = 0;
  // The CUfunction of a CUkernel: graph nodes name the former.
  uint64_t function = 0;
  uint32_t param_bytes = 0;
  std::vector<fb::ParamInfo> params;
  // A finished Launch record with zero head and parameters, and where those
  // lie in it. A launch copies it and fills both in.
  std::vector<uint8_t> launch_template;
  uint32_t head_offset = 0;
  uint32_t params_offset = 0;
};

class KernelTable {
 public:
  // A handle that the program got from a look-up. `kernel` handles are
  // CUkernel, others CUfunction; the driver takes either in a launch.
  struct Origin {
    uint64_t module_handle = 0;  // CUmodule or CUlibrary
    bool library = false;
    bool is_kernel = false;
    std::string name;
  };

  void Register(uint64_t handle, Origin origin);
  // `function` is the CUfunction of the CUkernel `kernel`.
  void RegisterFunctionOf(uint64_t function, uint64_t kernel);
  // A CUkernel that came from nowhere we watch: asks the driver what it is.
  void RegisterKernel(Recorder& recorder, CUkernel kernel);
  // Handles of `module_handle` mean nothing any more.
  void ForgetModule(uint64_t module_handle);

  // The kernel behind `handle`, described in the trace at first use. Call it
  // after a launch of it succeeded (then it is loaded, and asking for its
  // attributes loads nothing). nullptr if it cannot be described.
  const KernelInfo* Find(Recorder& recorder, CUfunction handle);
  // Without describing it: 0 if it was never launched.
  uint32_t KnownId(uint64_t handle);

 private:
  const KernelInfo* FindSlow(Recorder& recorder, CUfunction handle);
  std::unique_ptr<KernelInfo> Describe(Recorder& recorder, CUfunction handle,
                                       const Origin& origin);
  Origin OriginOf(Recorder& recorder, CUfunction handle);

  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Origin> origins_;
  absl::flat_hash_map<uint64_t, const KernelInfo*> by_handle_;
  std::vector<std::unique_ptr<KernelInfo>> all_;
  // Raised when a handle loses its meaning; thread caches compare it.
  std::atomic<uint32_t> generation_{1};
};

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_KERNELS_H_
