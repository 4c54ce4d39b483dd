// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_TRACE_OUTPUT_H_
#define HEDDLE_TOOLS_TRACE_OUTPUT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::tools {

// A trace that is made from another one. It is written under a temporary name
// in the folder of its final one and takes that name when it is complete, so
// that a failure, a full disk or a kill leaves what was there before.
class TraceOutput {
 public:
  // `source` gives the header; `level` is zstd's, for new blobs.
  static absl::StatusOr<std::unique_ptr<TraceOutput>> Create(
      const std::string& path, const trace::Reader& source, int level);
  ~TraceOutput();  // removes what was not committed
  TraceOutput(const TraceOutput&) = delete;
  TraceOutput& operator=(const TraceOutput&) = delete;

  trace::Writer& writer() { return *writer_; }

  // Appends a record as it is.
  void Copy(const trace::Record& record) {
    writer_->Append(record.type, record.payload);
  }

  // Closes and flushes the file, reads it back, has `check` look at it, and
  // renames it. Any error leaves the old file in place.
  absl::Status Commit(
      const std::function<absl::Status(const trace::Reader&)>& check);

 private:
  TraceOutput(std::string path, std::string temporary,
              std::unique_ptr<trace::Writer> writer);

  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<trace::Writer> writer_;
  bool committed_ = false;
};

// FailedPrecondition if a program is writing the trace at this moment.
absl::Status CheckNotBeingWritten(const std::string& path);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_TRACE_OUTPUT_H_
