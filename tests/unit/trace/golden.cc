// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trace/golden.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/trace.h"
#include "tests/unit/trace/schema_samples.h"

namespace heddle::trace {

std::vector<std::string> GoldenText(SchemaSamples& samples,
                                    const Reader& reader) {
  std::vector<std::string> lines;
  for (const Record& record : reader.records()) {
    std::string payload;
    for (const std::string& table : SchemaSamples::RecordTables()) {
      if (SchemaSamples::TypeOf(table) != record.type) continue;
      payload = samples.Text(table, record.payload);
    }
    if (payload.empty()) {  // not a type of this version
      payload =
          absl::StrCat("\"",
                       absl::BytesToHexString(absl::string_view(
                           reinterpret_cast<const char*>(record.payload.data()),
                           record.payload.size())),
                       "\"");
    }
    lines.push_back(absl::StrCat("{\"index\": ", record.index,
                                 ", \"offset\": ", record.offset,
                                 ", \"type\": \"", RecordTypeName(record.type),
                                 "\", \"payload\": ", payload, "}"));
  }
  return lines;
}

}  // namespace heddle::trace
