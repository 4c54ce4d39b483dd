// SPDX-License-Identifier: Apache-2.0
#include "runtime/rewrite/device_code.h"

#include "runtime/cubin/elf.h"
#include "runtime/cubin/fatbin.h"
#include "runtime/cubin/select_cubin.h"
#include "runtime/cubin/state_use.h"

namespace heddle::rewrite {

absl::StatusOr<std::vector<uint8_t>> DeviceCode::Unpack() const {
  return cubin::SelectCubin(packed, major, minor);
}

absl::StatusOr<std::shared_ptr<DeviceCode>> MakeDeviceCode(
    absl::Span<const uint8_t> image, int major, int minor) {
  absl::StatusOr<std::vector<uint8_t>> cubin =
      cubin::SelectCubin(image, major, minor);
  if (!cubin.ok()) return cubin.status();
  absl::StatusOr<cubin::Cubin> parsed = cubin::ParseCubin(*cubin);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<absl::flat_hash_set<std::string>> with_state =
      cubin::KernelsWithState(*cubin);
  if (!with_state.ok()) return with_state.status();
  auto code = std::make_shared<DeviceCode>();
  code->major = major;
  code->minor = minor;
  code->hash = trace::HashBytes(*cubin);
  code->with_state = *std::move(with_state);
  code->has_variables = !parsed->variables.empty();
  for (const cubin::Variable& variable : parsed->variables) {
    if (variable.space == cubin::VariableSpace::kGlobal) {
      code->global_variables.push_back(variable.name);
    }
  }
  for (cubin::Kernel& kernel : parsed->kernels) {
    code->kernels.insert(std::move(kernel.name));
  }
  absl::StatusOr<std::vector<uint8_t>> packed =
      cubin::FilterFatbin(image, major, minor);
  // Traces keep a fatbin without what the device cannot use.
  code->image_hash = trace::HashBytes(
      packed.ok() && packed->size() < image.size() ? absl::MakeSpan(*packed)
                                                   : image);
  code->packed = packed.ok() ? *std::move(packed) : *std::move(cubin);
  return code;
}

}  // namespace heddle::rewrite
