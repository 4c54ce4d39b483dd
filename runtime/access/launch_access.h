// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_LAUNCH_ACCESS_H_
#define HEDDLE_RUNTIME_ACCESS_LAUNCH_ACCESS_H_

// From where a kernel's instructions can reach, to which bytes one launch of it
// touches.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/access/access_set.h"
#include "runtime/access/kernel_analysis.h"

namespace heddle::access {

// What the launch sees of memory.
struct MemoryView {
  // The allocation that holds an address, if any is known.
  std::function<std::optional<Extent>(uint64_t address)> allocation;
  // The bytes that a tensor map of 128 bytes describes, if it is known.
  std::function<std::optional<ExtentSet>(absl::Span<const uint8_t> map)>
      tensor_map;
  // Variables of the kernel's module whose addresses are known.
  ExtentSet variables;
};

// Offsets (multiples of 8) in the parameter block of values that lie in an
// allocation: taken for pointers. At most kMaxPointers; more are left out, and
// `too_many` is set.
std::vector<uint32_t> FindPointers(absl::Span<const uint8_t> params,
                                   const MemoryView& memory, bool* too_many);

// `footprint` is what AnalyzeKernel said of `launch`, or of one that differs
// only in the pointers' values (but not in their lowest 8 bits).
AccessSet AccessOfLaunch(const KernelFootprint& footprint,
                         const LaunchValues& launch, const MemoryView& memory);

// A strided box: `sizes[i]` steps of `strides[i]` bytes (innermost first), each
// of `width` bytes, from `address`. Bytes between that are too many to tell
// apart are in the set.
ExtentSet BoxOf(uint64_t address, uint64_t width,
                absl::Span<const uint64_t> sizes,
                absl::Span<const uint64_t> strides);

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_LAUNCH_ACCESS_H_
