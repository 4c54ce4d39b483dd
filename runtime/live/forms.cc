// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/forms.h"

#include "absl/strings/str_cat.h"
#include "runtime/record/log.h"
#include "runtime/rewrite/rewriter.h"

namespace heddle::live {

std::string Form::Name() const {
  if (file != nullptr) return absl::StrCat("plan ", path);
  if (level == plan::Level::kO1) return std::string(rewrite::StyleName(style));
  return absl::StrCat(plan::LevelName(level), " ", rewrite::StyleName(style),
                      ", ", branches, branches == 1 ? " branch" : " branches");
}

std::vector<Form> FormsToTry(const LiveOptions& options) {
  std::vector<Form> forms;
  for (const plan::Style style : options.styles) {
    forms.push_back({.style = style});
  }
  if (options.level >= 2) {
    for (const uint32_t branches : options.branches) {
      for (const plan::Style style : options.styles) {
        forms.push_back(
            {.level = plan::Level::kO2, .style = style, .branches = branches});
      }
    }
  }
  for (const auto& [path, file] : options.plans) {
    forms.push_back({.level = file->plan.level,
                     .style = file->plan.style,
                     .branches = file->max_branches,
                     .file = file,
                     .path = path});
  }
  return forms;
}

}  // namespace heddle::live
