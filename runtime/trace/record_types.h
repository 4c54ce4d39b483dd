// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_RECORD_TYPES_H_
#define HEDDLE_RUNTIME_TRACE_RECORD_TYPES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "heddle/trace.h"

namespace heddle::trace {

// Whether this version has a table for `type`.
bool IsKnownRecordType(fb::RecordType type);

// Whether `payload` is a well-formed table of a known `type`. The bytes must
// be aligned to 8.
bool VerifyPayload(fb::RecordType type, absl::Span<const uint8_t> payload);
bool VerifyFooter(absl::Span<const uint8_t> payload);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_RECORD_TYPES_H_
