// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_REWRITE_DEVICE_CODE_H_
#define HEDDLE_RUNTIME_REWRITE_DEVICE_CODE_H_

// Machine code behind the kernels of a graph, and where a rewriter gets it.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/cubin/patch.h"

namespace heddle::rewrite {

// One cubin as the device runs it. Immutable once the program has loaded it,
// shared.
struct DeviceCode {
  // The machine code, an uncompressed cubin. Kept packed: programs load far
  // more code than they put into graphs. DataLoss, in theory.
  absl::StatusOr<std::vector<uint8_t>> Unpack() const;

  std::vector<uint8_t> packed;  // a fatbin of what fits the device, or a cubin
  int major = 0;                // of the device
  int minor = 0;
  trace::Hash128 hash;                        // of the cubin
  trace::Hash128 image_hash;  // of the image, as a trace keeps it
  absl::flat_hash_set<std::string> kernels;   // mangled
  std::vector<std::string> global_variables;  // mangled, __device__
  // Kernels that use variables of the image (cubin::KernelsWithState). A second
  // copy of it has variables of its own, so these run patched only where the
  // program itself loaded the patched image.
  absl::flat_hash_set<std::string> with_state;
  // The image has variables; the host may ask for their addresses.
  bool has_variables = false;
  // The host did so: it may change them, constants too, behind a copy's back.
  mutable std::atomic<bool> shown_to_host{false};
  // The prologue of the kernels in `with_state` in what the program itself
  // loaded; kNone: it loaded its own image.
  cubin::Prologue loaded_prologue = cubin::Prologue::kNone;
  // What the patcher did then.
  std::vector<cubin::KernelPatch> loaded_patches;
};

struct KernelSource {
  std::shared_ptr<const DeviceCode> code;
  std::string name;  // mangled
};

// Identity comes from the calls that loaded the code, never from names alone.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  // NotFound: `function` came from a call that was not seen. Unimplemented:
  // its code is none that can be patched (PTX only). The message is for people.
  virtual absl::StatusOr<KernelSource> Find(CUfunction function) = 0;
};

// What `image`, as given to cuModuleLoadData or cuLibraryLoadData, means on a
// device of this capability. Errors as cubin::SelectCubin and ParseCubin.
absl::StatusOr<std::shared_ptr<DeviceCode>> MakeDeviceCode(
    absl::Span<const uint8_t> image, int major, int minor);

}  // namespace heddle::rewrite

#endif  // HEDDLE_RUNTIME_REWRITE_DEVICE_CODE_H_
