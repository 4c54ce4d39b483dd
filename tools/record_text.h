// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_RECORD_TEXT_H_
#define HEDDLE_TOOLS_RECORD_TEXT_H_

#include <string>

#include "tools/record_json.h"

namespace heddle::tools {

// A record for people: "launch  gemv<<<(128,1,1), (256,1,1)>>>(buf3, 4096)".
// Without its number; several lines, each ended, for graphs.
std::string RecordToText(const trace::Record& record,
                         const RecordContext& context);

// "name<<<grid, block, shared>>>(parameters)", for nodes and differences too.
std::string LaunchToText(const fb::Launch& launch,
                         const RecordContext& context);

// One parameter: what it seems to be. Buffers by name, small numbers in
// decimal, likely floats as such, the rest in hexadecimal.
std::string ParamToText(absl::Span<const uint8_t> bytes, uint32_t offset,
                        const Buffers& buffers);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_RECORD_TEXT_H_
