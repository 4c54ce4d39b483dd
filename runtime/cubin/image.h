// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_IMAGE_H_
#define HEDDLE_RUNTIME_CUBIN_IMAGE_H_

// What the bytes behind cuModuleLoadData or cuLibraryLoadData are, and how far
// they reach: those calls get a pointer without a size.

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace heddle::cubin {

enum class ImageKind : uint8_t {
  kFatbin,  // one container: header and entries
  kElf,     // a cubin
  kPtx,     // PTX text
};

absl::string_view ImageKindName(ImageKind kind);

struct ImageView {
  ImageKind kind = ImageKind::kElf;
  // The image itself, without what wraps it. PTX found through a bare pointer
  // includes its terminating NUL, so that these bytes can be given to
  // cuModuleLoadData as they are.
  absl::Span<const uint8_t> bytes;
  // The pointer led to a __fatBinC_Wrapper_t (what nvcc's host code passes),
  // whose data pointer was followed.
  bool wrapped = false;
};

// Identifies the image at `image`. Only for a pointer that the program itself
// gives to the driver: like the driver, this trusts the sizes that the image
// states about itself and reads as far as they say.
// InvalidArgument: null, or none of the known kinds.
absl::StatusOr<ImageView> IdentifyImage(const void* image);

// The same for bytes of untrusted origin, e.g. a file. Never reads outside
// `bytes`; a wrapper is refused, because its pointer means nothing in a file.
// The image may be followed by other bytes (it may be one container of several
// in .nv_fatbin); PTX ends at its NUL or with `bytes`.
absl::StatusOr<ImageView> IdentifyImage(absl::Span<const uint8_t> bytes);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_IMAGE_H_
