// SPDX-License-Identifier: Apache-2.0
// Functions that are here so that programs link and load, and that say no:
// arrays and textures, graphics, IPC, linking, green contexts, multicast and so
// on. They are defined without their parameters, which the C calling convention
// allows, so this file must not see cuda.h.

namespace {
constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
}  // namespace

#define HD_UNSUPPORTED(name, version, symbol)                     \
  extern "C" __attribute__((visibility("default"))) int symbol(); \
  int symbol() { return kNotSupported; }
#define HD_UNSUPPORTED_PER_THREAD HD_UNSUPPORTED
#include "tests/hostdevice/unsupported.inc"
#undef HD_UNSUPPORTED_PER_THREAD
#undef HD_UNSUPPORTED
