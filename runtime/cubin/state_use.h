// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_STATE_USE_H_
#define HEDDLE_RUNTIME_CUBIN_STATE_USE_H_

// Which kernels of a cubin can reach its global variables. Two copies of an
// image in one process have two sets of variables, so only a kernel that
// reaches none may be launched from a copy.

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace heddle::cubin {

// Names (mangled) of kernels that may read or write a __device__ variable of
// the image; conservative. Left out are string constants of the compiler
// (assertions, printf formats) and __constant__ variables, which kernels cannot
// write: whoever copies an image has to watch whether the host asks for their
// addresses.
//
// Source: addresses of variables are in constant bank 4, filled in by the
// loader (.rela.nv.constant4), or in code with a relocation of its own, as
// nvcc of CUDA 12 and 13 makes them for sm_80 to sm_120.
// Errors as ParseCubin. Thread safe.
absl::StatusOr<absl::flat_hash_set<std::string>> KernelsWithState(
    absl::Span<const uint8_t> image);

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_STATE_USE_H_
