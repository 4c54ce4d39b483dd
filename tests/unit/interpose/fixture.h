// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_FIXTURE_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_FIXTURE_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/interpose/process.h"

namespace heddle::interpose_test {

// Paths of the build, given by CMake.
inline const std::string kPreload = HEDDLE_TEST_PRELOAD;
inline const std::string kRuntime = HEDDLE_TEST_RUNTIME;
inline const std::string kDriverFolder = HEDDLE_TEST_DRIVER_FOLDER;
inline const std::string kOldDriverFolder = HEDDLE_TEST_OLD_DRIVER_FOLDER;
inline const std::string kPrograms = HEDDLE_TEST_PROGRAMS;
inline const std::string kSymbolsFile = HEDDLE_TEST_SYMBOLS;

inline std::string Program(const std::string& name) {
  return kPrograms + "/" + name;
}

// A plain environment in which programs find the fake driver.
inline Environment Plain() {
  const char* path = std::getenv("PATH");
  return {{"PATH", path == nullptr ? "/usr/bin:/bin" : path},
          {"LD_LIBRARY_PATH", kDriverFolder}};
}

// The same with the preload library, which nothing asks to become active.
inline Environment Preloaded() {
  Environment environment = Plain();
  environment["LD_PRELOAD"] = kPreload;
  return environment;
}

// The same with the test runtime.
inline Environment Active() {
  Environment environment = Preloaded();
  environment["HEDDLE_RUNTIME"] = "1";
  environment["HEDDLE_RUNTIME_LIBRARY"] = kRuntime;
  return environment;
}

// The same with a hook on every symbol.
inline Environment Hooked() {
  Environment environment = Active();
  environment["TEST_HOOKS"] = "all";
  return environment;
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return lines;
}

}  // namespace heddle::interpose_test

#endif  // HEDDLE_TESTS_UNIT_INTERPOSE_FIXTURE_H_
