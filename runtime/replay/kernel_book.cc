// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/kernel_book.h"

#include <cuda.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/select_cubin.h"

namespace heddle::replay {
namespace {

// By the call, or by an attribute of it.
bool IsCooperative(const LaunchWork& launch) {
  if (launch.cooperative) return true;
  return std::any_of(
      launch.attributes.begin(), launch.attributes.end(),
      [](const LaunchAttribute& attribute) {
        return attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
               std::any_of(attribute.value.begin(), attribute.value.end(),
                           [](uint8_t byte) { return byte != 0; });
      });
}

}  // namespace

access::AccessSet KernelBook::AccessOf(const LaunchWork& launch,
                                       const access::MemoryView& memory) {
  const Kernel& kernel = program_.kernels[launch.kernel];
  const ImageModule& module = program_.modules[kernel.module];
  const auto read = [&]() -> absl::StatusOr<std::vector<uint8_t>> {
    absl::StatusOr<std::vector<uint8_t>> bytes = reader_.ReadBlob(module.hash);
    if (!bytes.ok()) return bytes.status();
    return cubin::SelectCubin(*bytes, program_.compute_major,
                              program_.compute_minor);
  };
  access::KernelLaunch shape;
  shape.kernel = kernel.name;
  std::copy_n(launch.grid, 3, shape.grid.begin());
  std::copy_n(launch.block, 3, shape.block.begin());
  shape.params = launch.params;
  shape.cooperative = IsCooperative(launch);
  // An image may hold code for several chips.
  const std::string key =
      absl::StrCat(module.hash.ToHex(), "-sm", program_.compute_major,
                   program_.compute_minor);
  return book_.AccessOf({key, module.origin, read}, shape, memory);
}

}  // namespace heddle::replay
