// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DOCTOR_CHECKS_H_
#define HEDDLE_TOOLS_DOCTOR_CHECKS_H_

// What can be said without running the program about whether heddle will see
// its driver calls. For `heddle doctor`.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace heddle::tools {

enum class Severity {
  kInfo,     // good to know
  kWarning,  // heddle may miss something
  kError,    // heddle cannot work
};

// "info", "warning", "error".
const char* SeverityName(Severity severity);

struct Finding {
  Severity severity = Severity::kInfo;
  std::string what;
  std::string advice;  // what to do about it; may be empty
};

// The value of an environment variable; nullopt if it is not set.
using Getenv =
    std::function<std::optional<std::string>(const std::string& name)>;

// The ELF file that `command` runs: found in PATH if it has no slash, and if it
// is a script, its interpreter ("#!/usr/bin/env python3" is python3 in PATH).
// Errors: NotFound, PermissionDenied; InvalidArgument if scripts name each
// other without end.
absl::StatusOr<std::string> FindExecutable(const std::string& command,
                                           const Getenv& getenv);

// A static program, one with special rights, one that has a driver in itself or
// that finds one by its own run path.
std::vector<Finding> CheckExecutable(const std::string& path);

// Other tools in LD_PRELOAD, CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH and
// in `preload_file` (/etc/ld.so.preload), and variables that turn heddle off.
// `own_library` is libheddle_preload.so.
std::vector<Finding> CheckEnvironment(const Getenv& getenv,
                                      const std::string& own_library,
                                      const std::string& preload_file);

// Whether a process that loads libcuda.so.1 finds a driver. Loads it into this
// one.
std::vector<Finding> CheckDriver();

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DOCTOR_CHECKS_H_
