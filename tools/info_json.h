// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_INFO_JSON_H_
#define HEDDLE_TOOLS_INFO_JSON_H_

#include "tools/record_json.h"
#include "tools/summary.h"

namespace heddle::tools {

// All of a summary as one object. Keys are only ever added.
Json InfoToJson(const trace::Reader& reader, const Summary& summary,
                const KernelNames& names);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_INFO_JSON_H_
