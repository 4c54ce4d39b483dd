// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_STATUS_MACROS_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_STATUS_MACROS_H_

#include "absl/status/status.h"

// Returns from the function if the expression, an absl::Status, is an error.
#define APPS_RETURN_IF_ERROR(expression) \
  do {                                   \
    absl::Status status_ = (expression); \
    if (!status_.ok()) return status_;   \
  } while (false)

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_STATUS_MACROS_H_
