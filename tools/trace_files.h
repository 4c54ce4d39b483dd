// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_TRACE_FILES_H_
#define HEDDLE_TOOLS_TRACE_FILES_H_

// The files that a recording may write, by the pattern in HEDDLE_TRACE.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace heddle::tools {

// Remembers which traces are there, to tell later which ones are new.
class TraceFiles {
 public:
  // `pattern` is an absolute path in which %p, %h and %r stand for a process,
  // a host and a rank. A second process of one name writes beside the first
  // one: name.<pid>.htrace.
  explicit TraceFiles(std::string pattern);

  // Removes a trace at a path without % that an earlier recording left.
  // FailedPrecondition if what is there is no trace, or cannot be removed.
  absl::Status RemoveOld() const;

  // Traces that were written since the construction, by name.
  std::vector<std::string> New() const;

 private:
  // What tells one version of a file from another.
  struct Version {
    uint64_t inode = 0;
    int64_t modified_ns = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  std::map<std::string, Version> List() const;

  const std::string pattern_;
  const std::map<std::string, Version> before_;
};

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_TRACE_FILES_H_
