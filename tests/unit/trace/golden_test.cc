// SPDX-License-Identifier: Apache-2.0

// Traces of every version that there ever was stay readable.

#include "tests/unit/trace/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/trace.h"
#include "nlohmann/json.hpp"
#include "tests/unit/trace/schema_samples.h"
#include "tests/unit/trace/trace_test_util.h"

namespace heddle::trace {
namespace {

std::string GoldenBase(uint32_t version) {
  return absl::StrCat(HEDDLE_TRACES_DIR, "/golden-v", version);
}

TEST(GoldenTest, EveryVersionOfTheFormatReadsAsItDid) {
  SchemaSamples samples;
  for (uint32_t version = 1; version <= kFormatVersion; ++version) {
    SCOPED_TRACE(GoldenBase(version));
    const std::unique_ptr<Reader> reader =
        MustOpen(GoldenBase(version) + ".htrace");
    EXPECT_FALSE(reader->truncated()) << reader->truncation();
    EXPECT_EQ(reader->header().version, version);
    EXPECT_EQ(reader->header().rank, 3);

    const std::vector<std::string> lines = GoldenText(samples, *reader);
    std::ifstream file(GoldenBase(version) + ".jsonl");
    std::string expected;
    size_t count = 0;
    for (; std::getline(file, expected); ++count) {
      ASSERT_LT(count, lines.size());
      EXPECT_EQ(nlohmann::json::parse(lines[count]).dump(),
                nlohmann::json::parse(expected).dump());
    }
    EXPECT_EQ(count, lines.size());
    EXPECT_GT(count, 0u);
  }
}

TEST(GoldenTest, EveryBlobOfEveryVersionCanBeRead) {
  for (uint32_t version = 1; version <= kFormatVersion; ++version) {
    const std::unique_ptr<Reader> reader =
        MustOpen(GoldenBase(version) + ".htrace");
    std::set<size_t> sizes;
    for (const Record& record : reader->records()) {
      const auto* blob = record.As<fb::Blob>();
      if (blob == nullptr) continue;
      const auto bytes =
          reader->ReadBlob(Hash128{blob->hash()->lo(), blob->hash()->hi()});
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      sizes.insert(bytes->size());
    }
    EXPECT_EQ(sizes, (std::set<size_t>{0, 10, 3000, 5 << 20}));
  }
}

TEST(GoldenTest, GoldenTraceOfThisVersionHasEveryRecordTypeOfIt) {
  // A type that is added without a new version fails here: it needs one, or
  // readers of this version would skip it without a word.
  const std::unique_ptr<Reader> reader =
      MustOpen(GoldenBase(kFormatVersion) + ".htrace");
  std::set<std::string> seen;
  for (const Record& record : reader->records()) {
    seen.insert(RecordTypeName(record.type));
  }
  for (const std::string& table : SchemaSamples::RecordTables()) {
    EXPECT_EQ(seen.count(RecordTypeName(SchemaSamples::TypeOf(table))), 1u)
        << table;
  }
}

}  // namespace
}  // namespace heddle::trace
