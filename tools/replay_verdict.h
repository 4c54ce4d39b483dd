// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_REPLAY_VERDICT_H_
#define HEDDLE_TOOLS_REPLAY_VERDICT_H_

// What `heddle replay --verify` prints.

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "runtime/replay/verifier.h"
#include "tools/replay_run.h"

namespace heddle::tools {

void AppendVerify(const replay::VerifyResult& verify, std::string& out);
nlohmann::json VerifyJson(const replay::VerifyResult& verify);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_REPLAY_VERDICT_H_
