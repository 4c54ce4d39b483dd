// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_RETRY_LAYOUT_H_
#define HEDDLE_TOOLS_RETRY_LAYOUT_H_

// A replay wants the recorded addresses, and the driver and the loader put
// their own things at random ones. When the two collide, the same command in a
// fresh process most likely does not.

#include "absl/status/status.h"

namespace heddle::tools {

// Runs this process's command again in its place if `status` says that
// addresses collided (Aborted) and it has not been tried too often. Returns
// only if it does not.
void RunAgainOnCollision(const absl::Status& status);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_RETRY_LAYOUT_H_
