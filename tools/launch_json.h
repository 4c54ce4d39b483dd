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

// Name of an enum value for people: "kStepBegin" -> "step-begin", "kDtoH" ->
// "dtoh"; its number if unknown.
std::string EnumText(const char* name, int value);

template <typename Enum>
std::string EnumText(Enum value, const char* name) {
  return EnumText(name, static_cast<int>(value));
}

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_LAUNCH_JSON_H_
