// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/patch_entry.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/patch.h"
#include "runtime/cubin/select_cubin.h"

namespace heddle::cubin {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "the patcher broke a promise: %s\n", what);
  std::abort();
}

void Patch(absl::Span<const uint8_t> cubin, const PatchOptions& options) {
  const absl::StatusOr<PatchedImage> patched = PatchCubin(cubin, options);
  if (!patched.ok()) {
    Require(absl::IsInvalidArgument(patched.status()) ||
                absl::IsUnimplemented(patched.status()),
            "the status is one of the documented ones");
    return;
  }
  Require(patched->image.size() >= cubin.size(), "an image does not shrink");
  const absl::StatusOr<Cubin> before = ParseCubin(cubin);
  const absl::StatusOr<Cubin> after = ParseCubin(patched->image);
  Require(before.ok() && after.ok(), "a patched image is a cubin");
  Require(after->kernels.size() == before->kernels.size() &&
              after->kernels.size() == patched->kernels.size(),
          "all kernels are reported");
  for (size_t i = 0; i < after->kernels.size(); ++i) {
    const KernelPatch& patch = patched->kernels[i];
    Require(patch.name == after->kernels[i].name, "in their order");
    Require(patch.patched == patch.reason.empty(), "a refusal has its reason");
  }
}

}  // namespace

void FuzzPatchCubin(absl::Span<const uint8_t> bytes) {
  for (const PatchOptions& options :
       {PatchOptions{Prologue::kWaitTrigger, 0},
        PatchOptions{Prologue::kWait, 24}, PatchOptions{Prologue::kNone, 8}}) {
    Patch(bytes, options);
  }
  const absl::StatusOr<std::vector<uint8_t>> cubin = SelectCubin(bytes, 9, 0);
  if (cubin.ok()) Patch(*cubin, {Prologue::kTriggerWait, 16});
}

}  // namespace heddle::cubin
