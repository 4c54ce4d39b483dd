// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_CHROME_EXPORT_H_
#define HEDDLE_TOOLS_CHROME_EXPORT_H_

#include <functional>
#include <string>

#include "heddle/trace.h"
#include "runtime/trace/steps.h"

namespace heddle::tools {

// The trace as the host saw it, for chrome://tracing and ui.perfetto.dev: a
// lane for each thread with its calls and NVTX ranges, a lane for each stream
// with what was put into it, arrows between the two, a lane of steps, and a
// counter of device memory. A trace has no times of the device; for those see
// `heddle replay --report`.
//
// `write` gets the text piece by piece; `wanted` says which records to show.
void ExportChrome(const trace::Reader& reader, const trace::StepList& steps,
                  const std::function<bool(const trace::Record&)>& wanted,
                  bool mangled,
                  const std::function<void(const std::string&)>& write);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_CHROME_EXPORT_H_
