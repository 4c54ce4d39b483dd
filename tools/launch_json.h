// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_LAUNCH_JSON_H_
#define HEDDLE_TOOLS_LAUNCH_JSON_H_

// The fields of work and graph records, which graph nodes share with them. For
// tools/record_json.h.

#include <string>

#include "tools/record_json.h"

namespace heddle::tools {

void AddStamp(const fb::Stamp* stamp, Json* json);
// "key": "0x..", and if something is live there "key_buffer": "buf1+0x10".
void AddAddress(const char* key, uint64_t address, const Buffers& buffers,
                Json* json);

void AddFields(const fb::Launch& launch, const RecordContext& context,
               Json* json);
void AddFields(const fb::Memcpy& copy, const RecordContext& context,
               Json* json);
void AddFields(const fb::Memset& fill, const RecordContext& context,
               Json* json);
void AddFields(const fb::HostFunc& host, const RecordContext& context,
               Json* json);
void AddFields(const fb::MemOp& memop, const RecordContext& context,
               Json* json);
void AddFields(const fb::Graph& graph, const RecordContext& context,
               Json* json);
Json NodeToJson(const fb::GraphNode& node, const RecordContext& context);

// Lower-case name of an enum value: "kDtoH" -> "dtoh"; its number if unknown.
template <typename Enum>
std::string EnumText(Enum value, const char* name) {
  std::string text = name == nullptr ? "" : name;
  if (text.empty()) return std::to_string(static_cast<int>(value));
  text.erase(0, 1);  // the k
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_LAUNCH_JSON_H_
