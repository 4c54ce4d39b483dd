// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_FILE_HEADER_H_
#define HEDDLE_RUNTIME_TRACE_FILE_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/format.h"

namespace heddle::trace {

// For a trace that this process begins now.
FileHeader MakeFileHeader(int rank);
// For a trace that is made from another one: who recorded it, and when.
FileHeader MakeFileHeader(const Header& source);

// The header of the file `name` that begins with `bytes`. InvalidArgument if
// it is no trace or its header is damaged, FailedPrecondition if it needs a
// newer reader.
absl::StatusOr<Header> ParseFileHeader(absl::Span<const uint8_t> bytes,
                                       const std::string& name);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_FILE_HEADER_H_
