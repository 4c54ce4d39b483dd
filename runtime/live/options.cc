// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/options.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/record/options.h"
#include "runtime/rewrite/rewriter.h"

namespace heddle::live {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status Bad(const char* name, const std::string& value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", value, ": must be ", allowed));
}

}  // namespace

absl::StatusOr<LiveOptions> LiveOptionsFromEnvironment() {
  LiveOptions options;
  if (const std::string text = Variable("HEDDLE_OPT"); !text.empty()) {
    if (text != "0" && text != "1" && text != "2") {
      return Bad("HEDDLE_OPT", text, "0, 1 or 2");
    }
    options.level = text[0] - '0';
  } else if (!Variable("HEDDLE_PLAN").empty()) {
    options.level = 1;
  }
  if (const std::string text = Variable("HEDDLE_PLAN");
      !text.empty() && options.level > 0) {
    for (const absl::string_view path : absl::StrSplit(text, ',')) {
      absl::StatusOr<plan::PlanFile> file =
          plan::ReadPlanFile(std::string(path));
      if (!file.ok()) return file.status();
      options.plans.emplace_back(
          path, std::make_shared<plan::PlanFile>(*std::move(file)));
    }
  }
  if (const std::string text = Variable("HEDDLE_BRANCHES"); !text.empty()) {
    options.branches.clear();
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      uint32_t count = 0;
      if (!absl::SimpleAtoi(part, &count) || count < 1 ||
          count > plan::kMaxBranches) {
        return Bad(
            "HEDDLE_BRANCHES", text,
            absl::StrCat("a list of numbers from 1 to ", plan::kMaxBranches));
      }
      options.branches.push_back(count);
    }
  }
  if (const std::string text = Variable("HEDDLE_VERIFY"); !text.empty()) {
    if (!absl::SimpleAtoi(text, &options.verify_launches) ||
        options.verify_launches < 1 || options.verify_launches > 1000) {
      return Bad("HEDDLE_VERIFY", text, "a number of launches, 1 to 1000");
    }
  }
  if (const std::string text = Variable("HEDDLE_VERIFY_BYTES"); !text.empty()) {
    if (!record::ParseBytes(text, &options.verify_bytes)) {
      return Bad("HEDDLE_VERIFY_BYTES", text,
                 "a number of bytes, with K, M or G behind it");
    }
  }
  if (const std::string text = Variable("HEDDLE_LEAST_GAIN"); !text.empty()) {
    if (!absl::SimpleAtod(text, &options.least_gain) ||
        !(options.least_gain >= 0 && options.least_gain <= 100)) {
      return Bad("HEDDLE_LEAST_GAIN", text, "a ratio, 0 to 100");
    }
  }
  if (const std::string text = Variable("HEDDLE_STYLE");
      !text.empty() && text != "auto") {
    for (const absl::string_view name : absl::StrSplit(text, ',')) {
      bool known = false;
      for (const plan::Style style :
           {plan::Style::kProgrammatic, plan::Style::kProgrammaticEarly,
            plan::Style::kLaunchOrder}) {
        if (rewrite::StyleName(style) != name) continue;
        options.styles.push_back(style);
        known = true;
      }
      if (!known) {
        return Bad("HEDDLE_STYLE", text,
                   "auto, or a list of programmatic, programmatic-early and "
                   "launch-order");
      }
    }
  } else {
    options.styles = {plan::Style::kProgrammatic,
                      plan::Style::kProgrammaticEarly};
  }
  if (const std::string text = Variable("HEDDLE_REPORT"); !text.empty()) {
    options.report_path =
        record::ExpandPath(text, record::RankFromEnvironment());
  }
  return options;
}

}  // namespace heddle::live
