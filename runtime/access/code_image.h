// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_CODE_IMAGE_H_
#define HEDDLE_RUNTIME_ACCESS_CODE_IMAGE_H_

// The kernels of a cubin, ready for AnalyzeKernel.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/access/kernel_analysis.h"

namespace heddle::access {

class CodeImage {
 public:
  struct Kernel {
    KernelCodeView code;
    uint32_t param_base = 0;  // in constant bank 0
    uint32_t param_size = 0;  // bytes
  };

  // Takes the bytes of a cubin. Errors as cubin::ParseCubin.
  static absl::StatusOr<std::unique_ptr<CodeImage>> Create(
      std::vector<uint8_t> cubin);

  // By mangled name; nullptr if there is none. Lives as long as the image.
  const Kernel* Find(absl::string_view name) const;

 private:
  std::vector<uint8_t> bytes_;
  absl::flat_hash_map<std::string, Kernel> kernels_;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_CODE_IMAGE_H_
