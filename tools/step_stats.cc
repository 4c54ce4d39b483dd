// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a step as text and as JSON.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/names.h"
#include "tools/step_analysis.h"

namespace heddle::tools {

const char kAccessStatsHelp[] =
    "  operations, launches, copies, fills\n"
    "  edges     {recorded, recorded_only, needed, needed_only, by_hazard:\n"
    "            {...}}; recorded_only: of those recorded, how many no bytes\n"
    "            ask for; needed_only: how many needed ones are between\n"
    "            operations that the program leaves unordered (a race, or\n"
    "            less is touched than what is known allows for)\n"
    "  known     launches of which {both, reads_only, writes_only, neither}\n"
    "            sides are known\n"
    "  unknown   [{reason, launches}], most frequent first\n"
    "  bytes     {provenance: {read, written}} of launches; each access "
    "counts\n"
    "  chain     launches on the longest chain of needed edges\n"
    "  beside    [share of time with 0, 1, 2, ... launches side by side], if\n"
    "            all take equally long\n";

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kFewReasons = 6;
constexpr size_t kFewWidths = 8;

std::vector<std::pair<uint64_t, std::string>> SortedReasons(
    const AccessStats& stats) {
  std::vector<std::pair<uint64_t, std::string>> reasons;
  for (const auto& [reason, launches] : stats.reasons) {
    reasons.emplace_back(launches, reason);
  }
  std::stable_sort(
      reasons.begin(), reasons.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  return reasons;
}

std::string Count(uint64_t count, const char* one, const char* many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

void AddEdges(const AccessStats& stats, Lines& lines) {
  std::string order =
      absl::StrCat(Count(stats.needed_edges, "edge", "edges"), " needed, ",
                   stats.recorded_edges, " recorded");
  if (stats.recorded_only != 0) {
    absl::StrAppend(&order, "; no bytes ask for ", stats.recorded_only,
                    " of those");
  }
  lines.emplace_back("order", order);
  if (stats.needed_only != 0) {
    lines.emplace_back("", absl::StrCat(stats.needed_only,
                                        " between operations that the program "
                                        "leaves unordered"));
  }
  std::vector<std::string> hazards;
  for (size_t i = 0; i < kHazards; ++i) {
    if (stats.hazards[i] == 0) continue;
    hazards.push_back(absl::StrCat(
        stats.hazards[i], " ", plan::HazardName(static_cast<plan::Hazard>(i))));
  }
  if (!hazards.empty()) {
    lines.emplace_back(
        "", absl::StrCat("because of ", absl::StrJoin(hazards, ", ")));
  }
}

void AddKnown(const AccessStats& stats, Lines& lines) {
  std::string known =
      absl::StrCat(stats.known, " of ",
                   Count(stats.launches, "launch", "launches"), " known");
  if (stats.reads_only != 0) {
    absl::StrAppend(&known, ", ", stats.reads_only, " reads only");
  }
  if (stats.writes_only != 0) {
    absl::StrAppend(&known, ", ", stats.writes_only, " writes only");
  }
  if (stats.unknown != 0) absl::StrAppend(&known, ", ", stats.unknown, " not");
  lines.emplace_back("accesses", known);
  uint64_t total = 0;
  for (size_t i = 0; i < kProvenances; ++i) {
    total += stats.read_bytes[i] + stats.written_bytes[i];
  }
  std::vector<std::string> shares;
  for (size_t i = 0; i < kProvenances; ++i) {
    const uint64_t bytes = stats.read_bytes[i] + stats.written_bytes[i];
    if (bytes == 0) continue;
    shares.push_back(absl::StrFormat(
        "%s %s (%.0f%%)",
        absl::StrCat(
            access::ProvenanceName(static_cast<access::Provenance>(i))),
        Bytes(bytes),
        100 * static_cast<double>(bytes) / static_cast<double>(total)));
  }
  if (!shares.empty()) lines.emplace_back("", absl::StrJoin(shares, ", "));
  const auto reasons = SortedReasons(stats);
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (i == kFewReasons) {
      lines.emplace_back("", absl::StrCat("and ", reasons.size() - i,
                                          " more reasons (--json)"));
      break;
    }
    lines.emplace_back(
        "", absl::StrCat(reasons[i].first, " unknown: ", reasons[i].second));
  }
}

void AddParallelism(const AccessStats& stats, Lines& lines) {
  if (stats.chain == 0) return;
  // Times in a trace are the host's, so launches are counted.
  lines.emplace_back(
      "chain",
      absl::StrFormat("%d of %s on the longest chain: x%.2f at most from order "
                      "alone, if all took equally long",
                      stats.chain, Count(stats.launches, "launch", "launches"),
                      static_cast<double>(stats.launches) /
                          static_cast<double>(stats.chain)));
  std::vector<std::string> shares;
  double rest = 0;
  for (size_t k = 1; k < stats.beside.size(); ++k) {
    if (stats.beside[k] == 0) continue;
    if (shares.size() == kFewWidths) {
      rest += stats.beside[k];
      continue;
    }
    shares.push_back(absl::StrFormat("%d: %.0f%%", k, 100 * stats.beside[k]));
  }
  if (rest > 0) shares.push_back(absl::StrFormat("more: %.0f%%", 100 * rest));
  lines.emplace_back("parallel",
                     absl::StrCat("launches side by side, share of the time: ",
                                  absl::StrJoin(shares, ", ")));
}

}  // namespace

Lines StatsToLines(const AccessStats& stats) {
  Lines lines;
  AddEdges(stats, lines);
  AddKnown(stats, lines);
  AddParallelism(stats, lines);
  return lines;
}

nlohmann::ordered_json StatsToJson(const AccessStats& stats) {
  using Json = nlohmann::ordered_json;
  Json by_hazard = Json::object();
  for (size_t i = 0; i < kHazards; ++i) {
    by_hazard[absl::StrCat(plan::HazardName(static_cast<plan::Hazard>(i)))] =
        stats.hazards[i];
  }
  Json bytes = Json::object();
  for (size_t i = 0; i < kProvenances; ++i) {
    bytes[absl::StrCat(
        access::ProvenanceName(static_cast<access::Provenance>(i)))] = {
        {"read", stats.read_bytes[i]}, {"written", stats.written_bytes[i]}};
  }
  Json unknown = Json::array();
  for (const auto& [launches, reason] : SortedReasons(stats)) {
    unknown.push_back({{"reason", reason}, {"launches", launches}});
  }
  return {{"operations", stats.operations},
          {"launches", stats.launches},
          {"copies", stats.copies},
          {"fills", stats.fills},
          {"edges",
           {{"recorded", stats.recorded_edges},
            {"recorded_only", stats.recorded_only},
            {"needed", stats.needed_edges},
            {"needed_only", stats.needed_only},
            {"by_hazard", by_hazard}}},
          {"known",
           {{"both", stats.known},
            {"reads_only", stats.reads_only},
            {"writes_only", stats.writes_only},
            {"neither", stats.unknown}}},
          {"unknown", unknown},
          {"bytes", bytes},
          {"chain", stats.chain},
          {"beside", stats.beside}};
}

}  // namespace heddle::tools
