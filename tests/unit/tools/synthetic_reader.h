// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_TOOLS_SYNTHETIC_READER_H_
#define HEDDLE_TESTS_UNIT_TOOLS_SYNTHETIC_READER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "heddle/trace.h"
#include "tests/e2e/golden/synthetic_trace.h"

namespace heddle::tools {

// The synthetic trace, written to a file that is gone at once.
inline std::unique_ptr<trace::Reader> SyntheticReader(
    const SyntheticOptions& options = {}) {
  static int count = 0;
  const std::string path = testing::TempDir() + "/synthetic-" +
                           std::to_string(getpid()) + "-" +
                           std::to_string(count++) + ".htrace";
  const absl::Status written = WriteSyntheticTrace(path, options);
  EXPECT_TRUE(written.ok()) << written.message();
  auto reader = trace::Reader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  unlink(path.c_str());
  return *std::move(reader);
}

}  // namespace heddle::tools

#endif  // HEDDLE_TESTS_UNIT_TOOLS_SYNTHETIC_READER_H_
