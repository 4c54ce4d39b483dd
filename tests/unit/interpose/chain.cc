// SPDX-License-Identifier: Apache-2.0
// Linked with the driver and run under other tools: prints what their chain of
// RTLD_NEXT look-ups gives.
#include "tests/unit/interpose/probe.h"

extern "C" int heddle_test_chain() __attribute__((weak));
extern "C" int cuMemAlloc_v2(unsigned long*, unsigned long);  // NOLINT

int main() {
  std::printf("chain %d\n",
              &heddle_test_chain == nullptr ? 0 : heddle_test_chain());
  heddle::interpose_test::Word pointer = 0;
  std::printf("alloc %d\n", cuMemAlloc_v2(&pointer, 1));
  std::printf("driver %lu\n",
              heddle::interpose_test::DriverCalls(
                  heddle::interpose_test::kIndex_cuMemAlloc_v2));
}
