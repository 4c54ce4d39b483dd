// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_PROCESS_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_PROCESS_H_

#include <map>
#include <string>
#include <vector>

namespace heddle::interpose_test {

struct ProcessResult {
  int exit_code = -1;  // 128 + the signal if one ended it
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// Runs a program (searched in PATH) with exactly this environment, in `folder`
// if that is not empty, and collects its output. Killed after a minute.
ProcessResult RunProcess(const std::vector<std::string>& command,
                         const Environment& environment,
                         const std::string& folder = "");

}  // namespace heddle::interpose_test

#endif  // HEDDLE_TESTS_UNIT_INTERPOSE_PROCESS_H_
