/* SPDX-License-Identifier: Apache-2.0 */
/* The one entry that programs call themselves: include/heddle/measure.h. */
#include "heddle/measure.h"

#include "interpose/runtime_loader.h"

__attribute__((visibility("default"))) int heddle_measure(int mode) {
  const HeddleRuntime *runtime = heddle_runtime();
  return runtime && runtime->measure ? runtime->measure(mode)
                                     : HEDDLE_MEASURE_OFF;
}

__attribute__((visibility("default"))) int heddle_measure_own_graphs(int own) {
  const HeddleRuntime *runtime = heddle_runtime();
  return runtime && runtime->own_graphs ? runtime->own_graphs(own) : -1;
}
