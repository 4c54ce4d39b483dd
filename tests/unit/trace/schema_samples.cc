// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trace/schema_samples.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "flatbuffers/idl.h"
#include "heddle/trace.h"

namespace heddle::trace {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "schema samples: %s\n", why.c_str());
  std::abort();
}

// splitmix64
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t SeedOfName(uint64_t seed, const std::string& name) {
  for (const char c : name) seed = Mix(seed ^ static_cast<uint8_t>(c));
  return seed;
}

// FlatBuffers renamed the function when it changed what it returns.
template <typename Parser>
bool ToText(const Parser& parser, const uint8_t* payload, std::string* text) {
  if constexpr (requires { GenText(parser, payload, text); }) {
    return GenText(parser, payload, text) == nullptr;
  } else {
    return GenerateText(parser, payload, text);
  }
}

}  // namespace

SchemaSamples::SchemaSamples() {
  parser_.opts.strict_json = true;
  parser_.opts.indent_step = -1;
  parser_.opts.output_enum_identifiers = false;
  std::ifstream file(HEDDLE_TRACE_SCHEMA_FILE);
  const std::string schema((std::istreambuf_iterator<char>(file)), {});
  if (schema.empty() || !parser_.Parse(schema.c_str())) {
    Die(absl::StrCat(HEDDLE_TRACE_SCHEMA_FILE, ": ", parser_.error_));
  }
}

std::vector<std::string> SchemaSamples::RecordTables() {
  return {
#define HEDDLE_NAME(Table) #Table,
      HEDDLE_RECORD_TABLES(HEDDLE_NAME)
#undef HEDDLE_NAME
  };
}

fb::RecordType SchemaSamples::TypeOf(const std::string& table) {
#define HEDDLE_TYPE(Table) \
  if (table == #Table) return fb::RecordType::k##Table;
  HEDDLE_RECORD_TABLES(HEDDLE_TYPE)
#undef HEDDLE_TYPE
  Die("no record has the table " + table);
}

void SchemaSamples::SetRoot(const std::string& table) {
  if (!parser_.SetRootType(("heddle.fb." + table).c_str())) {
    Die("the schema has no table " + table);
  }
}

std::string SchemaSamples::Json(const std::string& table, uint32_t seed) {
  SetRoot(table);
  return StructJson(*parser_.root_struct_def_, Mix(seed));
}

std::string SchemaSamples::StructJson(const flatbuffers::StructDef& definition,
                                      uint64_t seed) {
  std::string json = "{";
  for (const flatbuffers::FieldDef* field : definition.fields.vec) {
    if (field->deprecated) continue;
    absl::StrAppend(
        &json, json.size() > 1 ? "," : "", "\"", field->name,
        "\":", ValueJson(field->value.type, SeedOfName(seed, field->name)));
  }
  return json + "}";
}

std::string SchemaSamples::ValueJson(const flatbuffers::Type& type,
                                     uint64_t seed) {
  switch (type.base_type) {
    case flatbuffers::BASE_TYPE_BOOL:
      return seed % 2 == 0 ? "true" : "false";
    case flatbuffers::BASE_TYPE_CHAR:
    case flatbuffers::BASE_TYPE_UCHAR:
    case flatbuffers::BASE_TYPE_UTYPE:
      // Small enough for every enum's first values.
      return absl::StrCat(seed % (type.enum_def == nullptr ? 128 : 2));
    case flatbuffers::BASE_TYPE_SHORT:
    case flatbuffers::BASE_TYPE_USHORT:
      return absl::StrCat(1 + seed % 0x7ffe);
    case flatbuffers::BASE_TYPE_INT:
      return absl::StrCat(static_cast<int32_t>(seed));
    case flatbuffers::BASE_TYPE_UINT:
      return absl::StrCat(static_cast<uint32_t>(seed));
    case flatbuffers::BASE_TYPE_LONG:
      return absl::StrCat(static_cast<int64_t>(seed));
    case flatbuffers::BASE_TYPE_ULONG:
      return absl::StrCat(seed);
    case flatbuffers::BASE_TYPE_FLOAT:
    case flatbuffers::BASE_TYPE_DOUBLE:  // exact in both, and in decimal
      return absl::StrCat(static_cast<double>(seed % 4096) / 8 + 0.125);
    case flatbuffers::BASE_TYPE_STRING:
      return absl::StrCat("\"text ", seed % 100000, " \\u00e9 \\\"\\\\\\n\"");
    case flatbuffers::BASE_TYPE_STRUCT:
      return StructJson(*type.struct_def, seed);
    case flatbuffers::BASE_TYPE_VECTOR:
    case flatbuffers::BASE_TYPE_ARRAY: {
      const uint64_t size = type.base_type == flatbuffers::BASE_TYPE_ARRAY
                                ? type.fixed_length
                                : 1 + seed % 4;
      std::string json = "[";
      for (uint64_t i = 0; i < size; ++i) {
        absl::StrAppend(&json, i > 0 ? "," : "",
                        ValueJson(type.VectorType(), Mix(seed + i)));
      }
      return json + "]";
    }
    default:
      Die(absl::StrCat("no sample for base type ",
                       static_cast<int>(type.base_type)));
  }
}

std::vector<uint8_t> SchemaSamples::Build(const std::string& table,
                                          const std::string& json) {
  SetRoot(table);
  if (!parser_.Parse(json.c_str())) {
    Die(absl::StrCat(table, ": ", parser_.error_, "\n", json));
  }
  const uint8_t* data = parser_.builder_.GetBufferPointer();
  return {data, data + parser_.builder_.GetSize()};
}

std::string SchemaSamples::Text(const std::string& table,
                                absl::Span<const uint8_t> payload) {
  SetRoot(table);
  std::string text;
  if (!ToText(parser_, payload.data(), &text)) {
    Die("cannot print " + table);
  }
  return text;
}

}  // namespace heddle::trace
