// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_INFO_TEXT_H_
#define HEDDLE_TOOLS_INFO_TEXT_H_

#include <string>

#include "tools/names.h"
#include "tools/summary.h"

namespace heddle::tools {

// Which lists follow the overview.
struct InfoDetail {
  bool steps = false;
  bool params = false;
  bool kernels = false;
  bool mangled = false;
};

// The overview: one screen of text.
std::string InfoToText(const trace::Reader& reader, const Summary& summary,
                       const KernelNames& names, const InfoDetail& detail);

// "50 x 810 launches (repeat)", "no steps".
std::string StepsToText(const trace::StepList& steps);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_INFO_TEXT_H_
