// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_ELF_FACTS_H_
#define HEDDLE_TOOLS_ELF_FACTS_H_

// What of an executable or library decides whether it can be preloaded into.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace heddle::tools {

struct ElfFacts {
  bool is_this_machine = false;  // 64-bit, of the machine that this runs on
  bool has_interpreter = false;  // false: static, or a library
  bool has_dynamic_section = false;
  // As written, $ORIGIN unexpanded.
  std::vector<std::string> rpath;    // DT_RPATH
  std::vector<std::string> runpath;  // DT_RUNPATH
  std::vector<std::string> needed;   // DT_NEEDED
  // Driver-API functions that the file defines itself (of a few that every
  // driver has), and dlsym.
  std::vector<std::string> defined;
};

// Errors: NotFound if the file cannot be read; InvalidArgument if it is not
// ELF. Damaged tables are read as far as they make sense.
absl::StatusOr<ElfFacts> ReadElfFacts(const std::string& path);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_ELF_FACTS_H_
