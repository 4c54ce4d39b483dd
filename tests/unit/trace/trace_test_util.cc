// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trace/trace_test_util.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {
namespace {

template <typename T>
T MustBe(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

}  // namespace

TempDir::TempDir() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "heddle-trace-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, absl::Span<const uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::unique_ptr<Writer> MustCreate(const std::string& path,
                                   const WriterOptions& options) {
  return MustBe(Writer::Create(path, options));
}

std::unique_ptr<Reader> MustOpen(const std::string& path) {
  return MustBe(Reader::Open(path));
}

bool AppendNote(Writer& writer, int number, size_t size) {
  fb::NoteT note;
  note.severity = number;
  note.text = NoteText(number, size);
  return writer.AppendObject(note);
}

std::string NoteText(int number, size_t size) {
  std::string text = absl::StrCat("note ", number, " ");
  text.resize(size, static_cast<char>('a' + number % 26));
  return text;
}

std::vector<uint8_t> RandomBytes(size_t size, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

std::string ComparePrefix(absl::Span<const Record> records, bool truncated,
                          absl::Span<const Record> original) {
  if (records.size() > original.size()) {
    return absl::StrCat(records.size(), " records of ", original.size());
  }
  if (!truncated && records.size() != original.size()) {
    return absl::StrCat(records.size(), " records of ", original.size(),
                        ", and the trace is not called truncated");
  }
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].type != original[i].type || records[i].index != i ||
        records[i].offset != original[i].offset ||
        records[i].payload != original[i].payload) {
      return absl::StrCat("record ", i, " differs");
    }
  }
  return "";
}

}  // namespace heddle::trace
