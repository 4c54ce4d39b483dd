// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_PATCH_H_
#define HEDDLE_RUNTIME_CUBIN_PATCH_H_

// Puts a prologue before the first instruction of every kernel of a cubin, and
// appends a hidden parameter to its parameters.
//
// Instruction 0 becomes a branch to a stub behind the kernel's code: the
// prologue, then the displaced instruction 0, then a branch back. All other
// code stays where it is, so nothing that names an instruction changes. The
// prologue is machine code that nvcc made of stubs/prologue.cu.
//
// Thread safe; no state.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::cubin {

// What runs before a kernel's own first instruction.
enum class Prologue : uint8_t {
  kNone,
  kWait,         // ACQBULK: griddepcontrol.wait
  kTriggerWait,  // PREEXIT (griddepcontrol.launch_dependents), ACQBULK
  kWaitTrigger,  // ACQBULK, PREEXIT
};

struct PatchOptions {
  Prologue prologue = Prologue::kWaitTrigger;
  // 0: none; else a multiple of 8, at most 4096, appended to every patched
  // kernel's parameters as one parameter of that size, aligned to 8. Every
  // launch of a patched kernel must then pass it.
  uint32_t hidden_parameter_bytes = 0;

  friend bool operator==(const PatchOptions&, const PatchOptions&) = default;
};

struct KernelPatch {
  std::string name;  // mangled
  bool patched = false;
  std::string reason;  // why not; empty if patched
  // In the parameter block, bytes; if a hidden parameter was asked for.
  uint32_t hidden_offset = 0;
  // Its index among the parameters, the same.
  uint32_t hidden_ordinal = 0;

  friend bool operator==(const KernelPatch&, const KernelPatch&) = default;
};

struct PatchedImage {
  std::vector<uint8_t> image;        // a cubin
  std::vector<KernelPatch> kernels;  // in the order of ParseCubin
};

// Patches every kernel of `cubin`; one that cannot be patched is left as it
// is, with the reason. One pass: the time is that of copying the image.
// InvalidArgument: no cubin, a damaged one, or options outside their range.
// Unimplemented: an ABI that is not known, a cubin that is not linked, a chip
// without these instructions (before sm_90), or one whose stubs this build
// lacks.
//
// From sm_100 on, a cubin also holds its code in a form that the driver may
// compile for another chip of the family (.nv.capmerc); that form, which has
// attributes of its own, is not patched. Such an image is patched only for the
// chip it was made for. Of the chips from sm_100 on no patched image has run.
absl::StatusOr<PatchedImage> PatchCubin(absl::Span<const uint8_t> cubin,
                                        const PatchOptions& options);

// Version of the stubs and of this code; part of the key of any cache of
// patched images.
std::string PatcherVersion();

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_PATCH_H_
