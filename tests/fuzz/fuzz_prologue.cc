// SPDX-License-Identifier: Apache-2.0

// libFuzzer target for what the host device reads in patched kernels:
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_prologue
//   mkdir -p corpus && cp build/tests/unit/*/*.cubin corpus
//   build-fuzz/bin/fuzz_prologue corpus -max_len=65536

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cubin/elf.h"
#include "tests/hostdevice/prologue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of just its size, so that AddressSanitizer sees what is read beyond.
  std::vector<uint8_t> bytes(data, data + size);
  bytes.shrink_to_fit();
  heddle::hostdevice::ReadPrologue(bytes);
  const absl::StatusOr<heddle::cubin::Cubin> cubin =
      heddle::cubin::ParseCubin(bytes);
  if (cubin.ok() && heddle::hostdevice::ReadPrologues(bytes, *cubin).size() !=
                        cubin->kernels.size()) {
    std::abort();
  }
  return 0;
}
