// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_TRACE_TRACE_TEST_UTIL_H_
#define HEDDLE_TESTS_UNIT_TRACE_TRACE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {

// A folder that is removed with what is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<uint8_t> ReadFile(const std::string& path);
void WriteFile(const std::string& path, absl::Span<const uint8_t> bytes);

// End the test's process on failure: a test cannot go on without.
std::unique_ptr<Writer> MustCreate(const std::string& path,
                                   const WriterOptions& options = {});
std::unique_ptr<Reader> MustOpen(const std::string& path);

// A Note whose text is `size` bytes that depend on `number`.
bool AppendNote(Writer& writer, int number, size_t size = 20);
std::string NoteText(int number, size_t size = 20);

// Bytes that do not compress.
std::vector<uint8_t> RandomBytes(size_t size, uint32_t seed);

// Empty if `records` are the first of `original`, byte by byte, and all of
// them unless `truncated`; else what differs.
std::string ComparePrefix(absl::Span<const Record> records, bool truncated,
                          absl::Span<const Record> original);

}  // namespace heddle::trace

#endif  // HEDDLE_TESTS_UNIT_TRACE_TRACE_TEST_UTIL_H_
