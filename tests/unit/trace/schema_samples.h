// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_TRACE_SCHEMA_SAMPLES_H_
#define HEDDLE_TESTS_UNIT_TRACE_SCHEMA_SAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "flatbuffers/idl.h"
#include "heddle/trace.h"

namespace heddle::trace {

// Payloads with a value in every field of a table, made from the schema
// itself: a field that is added later is covered without a change here.
class SchemaSamples {
 public:
  // Reads runtime/trace/trace.fbs. Ends the process if it cannot be parsed.
  SchemaSamples();

  // Names of the tables that are payloads of records, e.g. "Launch".
  static std::vector<std::string> RecordTables();
  static fb::RecordType TypeOf(const std::string& table);

  // JSON text of an instance; other seeds give other values.
  std::string Json(const std::string& table, uint32_t seed);
  // The FlatBuffer that `json` describes.
  std::vector<uint8_t> Build(const std::string& table, const std::string& json);
  // The payload as JSON on one line; fields that have their default are left
  // out.
  std::string Text(const std::string& table, absl::Span<const uint8_t> payload);

  std::vector<uint8_t> Payload(const std::string& table, uint32_t seed) {
    return Build(table, Json(table, seed));
  }

 private:
  std::string StructJson(const flatbuffers::StructDef& definition,
                         uint64_t seed);
  std::string ValueJson(const flatbuffers::Type& type, uint64_t seed);
  void SetRoot(const std::string& table);

  flatbuffers::Parser parser_;
};

}  // namespace heddle::trace

#endif  // HEDDLE_TESTS_UNIT_TRACE_SCHEMA_SAMPLES_H_
