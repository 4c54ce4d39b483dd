// SPDX-License-Identifier: Apache-2.0
#include "tools/explain.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/graph_output.h"

namespace heddle::tools {

const char kExplainJsonHelp[] =
    "  trace, step, operation {index, record, node, kind, name, grid, block}\n"
    "  ordering_point\n"
    "  unknown_reads, unknown_writes   why that side is not known; \"\": it "
    "is\n"
    "  accesses   [{mode, provenance, bytes, extents, left_out, evidence}]:\n"
    "             extents [{address, size, buffer, offset, buffer_size}], the\n"
    "             first 4096; left_out: how many more there are; buffer as\n"
    "             `heddle dump` names it, if the address lies in one\n"
    "  waits_for, waited_for_by   [{operation, name, needed, reasons}]: "
    "needed\n"
    "             is false if other edges imply it; reasons as in `heddle "
    "graph`\n"
    "  recorded   what it follows in the program's own order, by index\n";

namespace {

using access::Access;
using access::Extent;
using Json = nlohmann::ordered_json;

constexpr size_t kFewExtents = 6;
constexpr size_t kFewConflicts = 12;
constexpr size_t kJsonExtents = 4096;

// "buf3+0x400, 8.00 KiB of 64.0 KiB, at 0x7f0001000400".
std::string ExtentToText(const Extent& extent, const Buffers& buffers) {
  const Buffers::Buffer* buffer = buffers.Find(extent.address);
  if (buffer == nullptr) {
    return absl::StrCat(Hex(extent.address), ", ", Bytes(extent.size),
                        " in no allocation of the trace");
  }
  const uint64_t offset = extent.address - buffer->address;
  return absl::StrCat("buf", buffer->number,
                      offset == 0 ? "" : absl::StrCat("+", Hex(offset)), ", ",
                      Bytes(extent.size), " of ", Bytes(buffer->size), ", at ",
                      Hex(extent.address));
}

Json ExtentToJson(const Extent& extent, const Buffers& buffers) {
  Json json = {{"address", Hex(extent.address)}, {"size", extent.size}};
  if (const Buffers::Buffer* buffer = buffers.Find(extent.address)) {
    json["buffer"] = absl::StrCat("buf", buffer->number);
    json["offset"] = extent.address - buffer->address;
    json["buffer_size"] = buffer->size;
  }
  return json;
}

void AppendAccess(const Access& access, const Buffers& buffers,
                  std::string& text) {
  const std::vector<Extent>& extents = access.bytes.extents();
  absl::StrAppendFormat(&text, "  %-8s %-11s %s in %d %s\n",
                        absl::StrCat(access::ModeName(access.mode)),
                        absl::StrCat(access::ProvenanceName(access.provenance)),
                        Bytes(access.bytes.bytes()), extents.size(),
                        extents.size() == 1 ? "extent" : "extents");
  for (size_t i = 0; i < extents.size(); ++i) {
    if (i == kFewExtents) {
      absl::StrAppend(&text, "             and ", extents.size() - i,
                      " more extents (--json)\n");
      break;
    }
    absl::StrAppend(&text, "             ", ExtentToText(extents[i], buffers),
                    "\n");
  }
  if (!access.evidence.empty()) {
    absl::StrAppend(&text, "             from ", Printable(access.evidence),
                    "\n");
  }
}

void AppendConflicts(const StepAnalysis& analysis, const char* title,
                     const std::vector<Conflict>& conflicts,
                     std::string& text) {
  absl::StrAppend(&text, title, "\n");
  std::vector<uint32_t> implied;
  size_t needed = 0;
  for (const Conflict& conflict : conflicts) {
    if (!conflict.needed) {
      implied.push_back(conflict.operation);
      continue;
    }
    if (++needed > kFewConflicts) continue;
    absl::StrAppendFormat(
        &text, "  %6d  %s: %s\n", conflict.operation,
        Printable(ShortName(analysis.names[conflict.operation], 48)),
        absl::StrJoin(conflict.reasons, ", ",
                      [](std::string* out, const plan::Reason& reason) {
                        *out += ReasonToText(reason);
                      }));
  }
  if (needed > kFewConflicts) {
    absl::StrAppend(&text, "  and ", needed - kFewConflicts,
                    " more (--json)\n");
  }
  if (conflicts.empty()) absl::StrAppend(&text, "  nothing\n");
  if (implied.empty()) return;
  const size_t shown = std::min(implied.size(), kFewConflicts);
  absl::StrAppend(
      &text, "  and, because others of these are in between, ",
      absl::StrJoin(absl::MakeConstSpan(implied).first(shown), ", "),
      shown < implied.size()
          ? absl::StrCat(" and ", implied.size() - shown, " more")
          : "",
      "\n");
}

Json ConflictsToJson(const StepAnalysis& analysis,
                     const std::vector<Conflict>& conflicts) {
  Json json = Json::array();
  for (const Conflict& conflict : conflicts) {
    Json reasons = Json::array();
    for (const plan::Reason& reason : conflict.reasons) {
      reasons.push_back(ReasonToJson(reason));
    }
    json.push_back({{"operation", conflict.operation},
                    {"name", analysis.names[conflict.operation]},
                    {"needed", conflict.needed},
                    {"reasons", reasons}});
  }
  return json;
}

std::vector<uint32_t> Recorded(const StepAnalysis& analysis, uint32_t op) {
  std::vector<uint32_t> before;
  for (const replay::Dependency& dependency :
       analysis.operation(op).dependencies) {
    before.push_back(dependency.from);
  }
  return before;
}

}  // namespace

absl::StatusOr<uint32_t> FindCall(const StepAnalysis& analysis,
                                  const std::string& call) {
  const std::vector<std::string> parts = absl::StrSplit(call, '.');
  uint64_t record = 0;
  int32_t node = -1;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts[0], &record) ||
      (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &node) || node < 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--call ", call, ": a record number like 45, or 45.7 for ",
                     "node 7 of the graph that record 45 launches"));
  }
  std::vector<uint32_t> found;
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    const replay::Operation& operation = analysis.operation(op);
    if (operation.record != record) continue;
    if (node < 0 || operation.node == node) found.push_back(op);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "call ", call, " is no operation of ", analysis.Title(),
        ", which has those of records ", analysis.operation(0).record, " to ",
        analysis.operation(analysis.size() - 1).record,
        " (`heddle graph --all` lists them, --step chooses another step)"));
  }
  return absl::NotFoundError(absl::StrCat(
      "call ", call, " is ", found.size(), " operations, ", found.front(),
      " to ", found.back(), " of the step: name one with --launch, or a node ",
      "of its graph with --call ", record, ".NODE"));
}

Explanation Explain(const StepAnalysis& analysis, uint32_t operation) {
  Explanation explanation;
  explanation.operation = operation;
  std::vector<bool> needed(analysis.size());
  for (const plan::DependencyEdge& edge : analysis.needed.edges) {
    if (edge.to == operation) needed[edge.from] = true;
    if (edge.from == operation) needed[edge.to] = true;
  }
  for (uint32_t other = 0; other < analysis.size(); ++other) {
    if (other == operation) continue;
    const bool earlier = other < operation;
    std::vector<plan::Reason> reasons =
        plan::ReasonsBetween(analysis.effects[earlier ? other : operation],
                             analysis.effects[earlier ? operation : other]);
    if (reasons.empty()) continue;
    (earlier ? explanation.before : explanation.after)
        .push_back({other, needed[other], std::move(reasons)});
  }
  return explanation;
}

std::string ExplanationToText(const StepAnalysis& analysis,
                              const Explanation& explanation,
                              const Buffers& buffers) {
  const uint32_t op = explanation.operation;
  const replay::Operation& operation = analysis.operation(op);
  const access::AccessSet& set = analysis.access[op];
  std::string text = absl::StrCat("operation ", op, " of ", analysis.Title(),
                                  ": ", Printable(analysis.names[op]));
  if (const replay::LaunchWork* launch = operation.launch()) {
    absl::StrAppendFormat(&text, "\n<<<(%d, %d, %d), (%d, %d, %d)>>>",
                          launch->grid[0], launch->grid[1], launch->grid[2],
                          launch->block[0], launch->block[1], launch->block[2]);
  }
  absl::StrAppend(&text, "\nrecord ", operation.record);
  if (operation.node >= 0) {
    absl::StrAppend(&text, ", node ", operation.node, " of its graph");
  }
  const std::vector<uint32_t> recorded = Recorded(analysis, op);
  absl::StrAppend(
      &text, ", recorded after ",
      recorded.empty() ? "nothing of the step" : absl::StrJoin(recorded, ", "),
      "\n\ntouches\n");
  if (!set.reads_known()) {
    absl::StrAppend(
        &text, "  anything may be read: ", Printable(set.unknown_reads), "\n");
  }
  if (!set.writes_known()) {
    absl::StrAppend(&text, "  anything may be written: ",
                    Printable(set.unknown_writes), "\n");
  }
  if (set.ordering_point) {
    absl::StrAppend(&text,
                    "  keeps its place: others than the device notice it\n");
  }
  if (analysis.effects[op].none()) absl::StrAppend(&text, "  nothing\n");
  for (const Access& access : set.accesses) {
    AppendAccess(access, buffers, text);
  }
  AppendConflicts(analysis, "\nwaits for", explanation.before, text);
  AppendConflicts(analysis, "\nwaited for by", explanation.after, text);
  return text;
}

Json ExplanationToJson(const StepAnalysis& analysis,
                       const Explanation& explanation, const Buffers& buffers) {
  const uint32_t op = explanation.operation;
  const access::AccessSet& set = analysis.access[op];
  Json accesses = Json::array();
  for (const Access& access : set.accesses) {
    const std::vector<Extent>& all = access.bytes.extents();
    Json extents = Json::array();
    const size_t shown = std::min(all.size(), kJsonExtents);
    for (size_t i = 0; i < shown; ++i) {
      extents.push_back(ExtentToJson(all[i], buffers));
    }
    accesses.push_back({{"mode", absl::StrCat(access::ModeName(access.mode))},
                        {"provenance", absl::StrCat(access::ProvenanceName(
                                           access.provenance))},
                        {"bytes", access.bytes.bytes()},
                        {"extents", extents},
                        {"left_out", all.size() - shown},
                        {"evidence", access.evidence}});
  }
  return {{"trace", analysis.trace},
          {"step",
           {{"index", analysis.step.index},
            {"source", analysis.step.source},
            {"total", analysis.step.total}}},
          {"operation", OperationToJson(analysis, op)},
          {"ordering_point", set.ordering_point},
          {"unknown_reads", set.unknown_reads},
          {"unknown_writes", set.unknown_writes},
          {"accesses", accesses},
          {"waits_for", ConflictsToJson(analysis, explanation.before)},
          {"waited_for_by", ConflictsToJson(analysis, explanation.after)},
          {"recorded", Recorded(analysis, op)}};
}

}  // namespace heddle::tools
