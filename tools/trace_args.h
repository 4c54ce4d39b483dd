// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_TRACE_ARGS_H_
#define HEDDLE_TOOLS_TRACE_ARGS_H_

// Flags and checks that several verbs share.

#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "heddle/trace.h"
#include "runtime/trace/steps.h"
#include "tools/call_set.h"
#include "tools/flags.h"
#include "tools/names.h"

namespace heddle::tools {

// Opens a trace; says on stderr if it is truncated, unless `quiet`.
absl::StatusOr<std::unique_ptr<trace::Reader>> OpenTrace(
    const std::string& path, bool quiet = false);

// --calls, --kernel, --type, --steps: which records to show.
class RecordFilter {
 public:
  void Declare(FlagSet* flags);
  // After the flags were parsed.
  absl::Status Prepare(const trace::Reader& reader);

  bool Contains(const trace::Record& record, const KernelNames& names) const;
  // No record after this one is wanted.
  uint64_t last() const { return calls_->last(); }
  const std::string& steps_by() const { return steps_by_; }

 private:
  std::string calls_text_;
  std::string kernel_text_;
  std::vector<std::string> type_names_;
  std::string steps_by_ = "auto";

  std::optional<CallSet> calls_;
  std::optional<std::regex> kernel_;
  absl::flat_hash_set<fb::RecordType> types_;
  // Kernels whose name was matched, by id.
  mutable absl::flat_hash_map<uint32_t, bool> matched_;
};

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_TRACE_ARGS_H_
