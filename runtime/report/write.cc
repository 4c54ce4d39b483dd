// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/report/report.h"

namespace heddle::report {
namespace {

enum class Form { kTrace, kJson, kSvg, kText, kUnknown };

Form FormOf(const std::string& path) {
  if (absl::EndsWith(path, ".trace.json") ||
      absl::EndsWith(path, ".perfetto.json")) {
    return Form::kTrace;
  }
  if (absl::EndsWith(path, ".json")) return Form::kJson;
  if (absl::EndsWith(path, ".svg")) return Form::kSvg;
  if (absl::EndsWith(path, ".txt")) return Form::kText;
  return Form::kUnknown;
}

// Names come from images and may hold any bytes.
std::string Dump(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false,
                    nlohmann::json::error_handler_t::replace);
}

}  // namespace

absl::Status CheckReportName(const std::string& path) {
  if (FormOf(path) != Form::kUnknown) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("report ", path,
                   ": the extension must be .txt, .json, .trace.json, "
                   ".perfetto.json or .svg"));
}

absl::Status WriteReport(const Report& report, const std::string& path) {
  std::string content;
  switch (FormOf(path)) {
    case Form::kTrace:
      content = Dump(ToChromeTrace(report), -1);
      break;
    case Form::kJson:
      content = Dump(ToJson(report), 1);
      break;
    case Form::kSvg:
      content = ToSvg(report);
      break;
    case Form::kText:
      content = ToText(report, /*launches=*/true);
      break;
    case Form::kUnknown:
      return CheckReportName(path);
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path, ": ",
                     errno == 0 ? "unknown error" : std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace heddle::report
