// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_RUN_PROGRAM_H_
#define HEDDLE_TOOLS_RUN_PROGRAM_H_

// Running a program under heddle, for `record` and `doctor`.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace heddle::tools {

// libheddle_preload.so, found relative to this program: in the build tree and
// where `cmake --install` puts it. NotFound lists where it was looked for.
absl::StatusOr<std::string> FindPreloadLibrary();

// The value of LD_PRELOAD with `library` in front of what it is now.
// InvalidArgument if the path has a blank or a colon, which separate paths.
absl::StatusOr<std::string> PrependPreload(const std::string& library);

// Variables to set (nullopt: to unset) in the program's environment.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;

// Runs the program (found by PATH) and waits for it. Signals that reach this
// process meanwhile are passed on to it (but those from the terminal, which it
// gets itself). Returns its exit status as a shell does: 128 + n if signal n
// ended it. Errors: NotFound, PermissionDenied, ... if it cannot be started.
absl::StatusOr<int> RunProgram(const std::vector<std::string>& command,
                               const EnvironmentChanges& changes);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_RUN_PROGRAM_H_
