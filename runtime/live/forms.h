// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_FORMS_H_
#define HEDDLE_RUNTIME_LIVE_FORMS_H_

// The forms that a graph of the program is tried in.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/live/options.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_file.h"

namespace heddle::live {

struct Form {
  plan::Level level = plan::Level::kO1;
  plan::Style style = plan::Style::kProgrammatic;
  uint32_t branches = 1;  // at most; O2
  // The plan of a file, in place of one that is made here.
  std::shared_ptr<const plan::PlanFile> file = nullptr;
  std::string path = {};  // of it

  // "programmatic", "O2 programmatic, 3 branches", "plan FILE".
  std::string Name() const;
};

// By level, then in the order in which they were asked for.
std::vector<Form> FormsToTry(const LiveOptions& options);

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_FORMS_H_
