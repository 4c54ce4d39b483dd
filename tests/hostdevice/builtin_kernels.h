// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_HOSTDEVICE_BUILTIN_KERNELS_H_
#define HEDDLE_TESTS_HOSTDEVICE_BUILTIN_KERNELS_H_

#include "absl/strings/string_view.h"
#include "tests/hostdevice/host_kernel.h"

namespace heddle::hostdevice {

// The body of one of heddle's own device kernels (runtime/live/device), which
// no program under test provides; nullptr for any other name.
HeddleHostKernelFn FindBuiltinKernel(absl::string_view name);

}  // namespace heddle::hostdevice

#endif  // HEDDLE_TESTS_HOSTDEVICE_BUILTIN_KERNELS_H_
