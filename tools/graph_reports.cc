// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_reports.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

// Fields that are shown. Others may come and go.
constexpr const char* kCounts[] = {
    "graph", "nodes",     "kernels",          "patched",
    "edges", "converted", "verified_launches"};
constexpr const char* kTimes[] = {"serial_us", "rewritten_us", "trial_ms",
                                  "build_ms"};

// Whether `json` is a line of the optimizer and not of something else.
bool IsReport(const nlohmann::json& json) {
  if (!json.is_object()) return false;
  for (const char* name : kCounts) {
    if (!json.contains(name) || !json[name].is_number_unsigned()) return false;
  }
  for (const char* name : kTimes) {
    if (!json.contains(name) || !json[name].is_number()) return false;
  }
  for (const char* name : {"style", "outcome"}) {
    if (!json.contains(name) || !json[name].is_string()) return false;
  }
  return json.contains("notes") && json["notes"].is_array();
}

// A field that reports of older versions lack; empty then.
std::string Level(const nlohmann::json& json) {
  const auto level = json.find("level");
  return level != json.end() && level->is_string() ? level->get<std::string>()
                                                   : "";
}

// The form that is used. The name of a plan's file does not say what it does.
std::string FormOf(const nlohmann::json& json) {
  const std::string style = json["style"];
  const auto branches = json.find("branches");
  if (!absl::StartsWith(style, "plan ") || Level(json).empty() ||
      branches == json.end() || !branches->is_number_unsigned()) {
    return style;
  }
  const auto count = branches->get<uint64_t>();
  return absl::StrCat(style, ": ", Level(json), ", ", count,
                      count == 1 ? " branch" : " branches");
}

// What the column of the rewritten form's times is called: by its level, if all
// that were timed are of one.
std::string TimeColumn(const std::vector<nlohmann::json>& reports) {
  std::set<std::string> levels;
  for (const nlohmann::json& json : reports) {
    if (json["rewritten_us"].get<double>() <= 0) continue;
    const std::string level = Level(json);
    // A form that is used and names no level is from before there were two; one
    // that is not used never names its level.
    const bool used = !json["style"].get<std::string>().empty();
    levels.insert(level.empty() && (used || !json.contains("level")) ? "O1"
                                                                     : level);
  }
  if (levels.empty() || levels == std::set<std::string>{"O1"}) return "O1 us";
  return levels == std::set<std::string>{"O2"} ? "O2 us" : "best us";
}

std::string Row(const nlohmann::json& json, uint64_t count) {
  const double serial = json["serial_us"];
  const double rewritten = json["rewritten_us"];
  std::string row =
      absl::StrFormat("%6d %6d %9s %9s  ", count, json["nodes"].get<uint64_t>(),
                      absl::StrCat(json["patched"].get<uint64_t>(), "/",
                                   json["kernels"].get<uint64_t>()),
                      absl::StrCat(json["converted"].get<uint64_t>(), "/",
                                   json["edges"].get<uint64_t>()));
  if (rewritten > 0) {
    absl::StrAppendFormat(&row, "%9.1f %9.1f  x%.3f", serial, rewritten,
                          serial / rewritten);
  } else {
    absl::StrAppendFormat(&row, "%9s %9s  %6s", "-", "-", "-");
  }
  absl::StrAppendFormat(&row, " %8d  ",
                        json["verified_launches"].get<uint64_t>());
  const std::string style = FormOf(json);
  absl::StrAppend(&row, Printable(json["outcome"].get<std::string>()));
  if (!style.empty()) absl::StrAppend(&row, " (", Printable(style), ")");
  return row + "\n";
}

}  // namespace

absl::StatusOr<std::vector<nlohmann::json>> ReadGraphReports(
    const std::string& path, uint64_t skip) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot be opened; `heddle run --report ", path,
                     " -- PROGRAM` writes one"));
  }
  std::ostringstream text;
  // A folder can be opened, and fails here.
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.bad() || text.bad()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  const std::string content = text.str();
  return ParseGraphReports(
      absl::ClippedSubstr(content, std::min<uint64_t>(skip, content.size())),
      path);
}

absl::StatusOr<std::vector<nlohmann::json>> ParseGraphReports(
    absl::string_view text, absl::string_view name) {
  std::vector<nlohmann::json> reports;
  size_t line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = text.find('\n', at);
    const bool torn = end == absl::string_view::npos;
    const absl::string_view part = text.substr(at, torn ? end : end - at);
    at = torn ? text.size() : end + 1;
    nlohmann::json json =
        nlohmann::json::parse(part.begin(), part.end(), nullptr, false);
    if (!IsReport(json)) {
      if (torn && !reports.empty()) break;
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": line ", line,
                       " is no report of a graph (expected the file of "
                       "`heddle run --report`)"));
    }
    reports.push_back(std::move(json));
  }
  return reports;
}

std::string GraphReportsToText(const std::vector<nlohmann::json>& reports) {
  if (reports.empty()) {
    return "no graph was instantiated\n";
  }
  // Programs make many graphs of one kind; times differ between them, so only
  // graphs that were not timed are shown together.
  std::map<std::string, uint64_t> counts;
  std::vector<std::pair<std::string, const nlohmann::json*>> rows;
  for (const nlohmann::json& json : reports) {
    std::string key = json["rewritten_us"].get<double>() > 0
                          ? absl::StrCat("timed ", rows.size())
                          : absl::StrCat(json["nodes"].get<uint64_t>(), " ",
                                         json["kernels"].get<uint64_t>(), " ",
                                         json["outcome"].get<std::string>());
    if (counts[key]++ == 0) rows.emplace_back(key, &json);
  }
  std::string text =
      absl::StrFormat("%6s %6s %9s %9s  %9s %9s  %6s %8s  %s\n", "graphs",
                      "nodes", "patched", "edges", "serial us",
                      TimeColumn(reports), "ratio", "verified", "outcome");
  double trial_ms = 0;
  double build_ms = 0;
  std::map<std::string, uint64_t> notes;
  for (const nlohmann::json& json : reports) {
    trial_ms += json["trial_ms"].get<double>();
    build_ms += json["build_ms"].get<double>();
    for (const nlohmann::json& note : json["notes"]) {
      if (note.is_string()) ++notes[note.get<std::string>()];
    }
  }
  for (const auto& [key, json] : rows) {
    absl::StrAppend(&text, Row(*json, counts[key]));
  }
  absl::StrAppendFormat(
      &text, "patching and building %.0f ms, verifying and timing %.0f ms\n",
      build_ms, trial_ms);
  for (const auto& [note, count] : notes) {
    absl::StrAppend(&text, "  ", count, " x ", Printable(note), "\n");
  }
  return text;
}

}  // namespace heddle::tools
