// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_FUZZ_REPORT_ENTRY_H_
#define HEDDLE_TESTS_FUZZ_REPORT_ENTRY_H_

#include "absl/strings/string_view.h"

namespace heddle::tools {

// Takes `text` for a file of `heddle run --report`, reads and shows it. Aborts
// when the reader breaks a promise.
void FuzzGraphReports(absl::string_view text);

}  // namespace heddle::tools

#endif  // HEDDLE_TESTS_FUZZ_REPORT_ENTRY_H_
