// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_TRACE_TAIL_H_
#define HEDDLE_RUNTIME_TRACE_TRACE_TAIL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/trace/format.h"
#include "runtime/trace/record_counter.h"

namespace heddle::trace {

// Room that is kept free at the end of a file of `size` bytes, so that a full
// disk or max_bytes still lets it be closed properly: a note, the End record,
// a footer (8 bytes of index for 1024 records of 16 bytes at least) and the
// trailer.
constexpr uint64_t TailBytes(uint64_t size) {
  return RoundUp(4096 + size / 1024, kRecordAlignment);
}

// Ends a trace behind the last record, which is where `counter` stands, in the
// room that TailBytes keeps: an End record unless the last one is that, with a
// note before it if `error` says why recording stopped; then the footer and the
// trailer. Afterwards `counter` stands at the end of the file.
void WriteTail(uint8_t* file, const absl::Status& error,
               RecordCounter* counter);

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_TRACE_TAIL_H_
