// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_FILE_KIND_H_
#define HEDDLE_RUNTIME_TRACE_FILE_KIND_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace heddle::trace {

// What a file that is not a trace seems to be, as the end of "it ...", e.g.
// "is an ELF file".
std::string DescribeFile(absl::Span<const uint8_t> bytes);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_FILE_KIND_H_
