// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DRIVER_CALLS_H_
#define HEDDLE_TOOLS_DRIVER_CALLS_H_

#include <string>

namespace heddle::tools {

// Whether a driver function can be passed over when a program is recorded: it
// only asks or waits, and leaves no memory, order of work or object changed.
// `symbol` is the ELF name. False if in doubt.
bool IsHarmlessDriverCall(const std::string& symbol);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DRIVER_CALLS_H_
