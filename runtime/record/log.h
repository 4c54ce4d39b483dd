// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_LOG_H_
#define HEDDLE_RUNTIME_RECORD_LOG_H_

// Messages of the runtime inside somebody else's process: one line each, on
// stderr or in HEDDLE_LOG_FILE, prefixed "heddle: ". Never throws; safe from
// any thread.

#include "absl/strings/string_view.h"

namespace heddle::record {

enum class LogLevel : int { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };

// From HEDDLE_LOG (error, warn, info, debug); errors alone by default.
LogLevel LogThreshold();
void Log(LogLevel level, absl::string_view message);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_LOG_H_
