// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_RECORD_JSON_H_
#define HEDDLE_TOOLS_RECORD_JSON_H_

// Records as JSON objects: `heddle dump --json`, `heddle convert --to jsonl`.
// The keys are part of the interface: they are added, never renamed or removed
// (kRecordJsonHelp is the document).

#include "heddle/trace.h"
#include "nlohmann/json.hpp"
#include "tools/names.h"

namespace heddle::tools {

using Json = nlohmann::ordered_json;

// As one line; bytes that are not UTF-8 (a program's strings) become U+FFFD.
std::string DumpJson(const Json& json, int indent = -1);

// The schema, for the help of the verbs that print it.
extern const char kRecordJsonHelp[];

// What a record is read with: the state of the trace just before it. Follow
// every record in order, after it was shown.
class RecordContext {
 public:
  RecordContext(const trace::Reader& reader, bool mangled)
      : names_(reader, mangled) {}
  void Follow(const trace::Record& record) { buffers_.Follow(record); }

  const KernelNames& names() const { return names_; }
  const Buffers& buffers() const { return buffers_; }

 private:
  KernelNames names_;
  Buffers buffers_;
};

// One object, "call" and "type" first.
Json RecordToJson(const trace::Record& record, const RecordContext& context);

// One parameter of a launch: {"offset", "size"} and what is in it, see
// kRecordJsonHelp.
Json ParamToJson(uint32_t offset, absl::Span<const uint8_t> bytes,
                 const Buffers& buffers);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_RECORD_JSON_H_
