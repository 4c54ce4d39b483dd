// SPDX-License-Identifier: Apache-2.0
#include "tools/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace heddle::tools {

OutputFile::~OutputFile() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  Remove();
}

absl::Status OutputFile::Open(const std::string& path,
                              const std::string& input) {
  std::error_code error;
  if (std::filesystem::equivalent(path, input, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is the trace itself; choose another file"));
  }
  path_ = path;
  file_ = path.empty() ? stdout : std::fopen(path.c_str(), "w");
  return file_ == nullptr ? Error() : absl::OkStatus();
}

void OutputFile::Write(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file_);
}

absl::Status OutputFile::Close() {
  if (file_ == stdout) return absl::OkStatus();
  const bool failed = std::ferror(file_) != 0;
  const bool close_failed = std::fclose(file_) != 0;
  file_ = nullptr;
  if (!failed && !close_failed) return absl::OkStatus();
  absl::Status status = Error();
  Remove();
  return status;
}

absl::Status OutputFile::Error() const {
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
}

void OutputFile::Remove() const {
  // Not a device or a pipe that the user named.
  std::error_code error;
  if (std::filesystem::is_regular_file(path_, error)) {
    std::filesystem::remove(path_, error);
  }
}

absl::Status WriteOutput(const std::string& path, const std::string& input,
                         absl::string_view text) {
  OutputFile output;
  if (absl::Status s = output.Open(path, input); !s.ok()) return s;
  output.Write(text);
  return output.Close();
}

}  // namespace heddle::tools
