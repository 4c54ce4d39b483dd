// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_OUTPUT_FILE_H_
#define HEDDLE_TOOLS_OUTPUT_FILE_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace heddle::tools {

// Where the result of a verb goes: a file that is removed again on failure, or
// stdout.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // An empty path is stdout. `input` must not be overwritten: it is being read.
  // Errors: InvalidArgument if the two are the same, Unavailable.
  absl::Status Open(const std::string& path, const std::string& input);
  void Write(absl::string_view text);
  // Unavailable if anything could not be written.
  absl::Status Close();

 private:
  absl::Status Error() const;
  void Remove() const;

  std::string path_;
  std::FILE* file_ = nullptr;
};

// All of it at once.
absl::Status WriteOutput(const std::string& path, const std::string& input,
                         absl::string_view text);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_OUTPUT_FILE_H_
