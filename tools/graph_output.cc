// SPDX-License-Identifier: Apache-2.0
#include "tools/graph_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/names.h"

namespace heddle::tools {

const char kGraphJsonHelp[] =
    "  trace, step {index, source, total}, notes [line]\n"
    "  summary      numbers, see below\n"
    "  operations   [{index, record, node, kind, name, grid, block, reads,\n"
    "               writes, ordering_point, recorded}]: record as `heddle "
    "dump`\n"
    "               counts, node of the graph that the record launches; kind\n"
    "               launch, copy, fill or none; reads and writes {known, "
    "bytes,\n"
    "               extents, unknown}: number of extents, why it is not "
    "known;\n"
    "               recorded: what it follows in the program's own order\n"
    "  edges        [{from, to, reasons}], needed ones alone, by index\n"
    "  reasons      [{hazard, address, size, bytes}]: first extent that both\n"
    "               touch and bytes in all; of hazards \"read-after-write\",\n"
    "               \"write-after-read\", \"write-after-write\"; the others,\n"
    "               \"unknown access\" and \"ordering point\", have no bytes\n";

namespace {

using Json = nlohmann::ordered_json;

const char* KindName(const replay::Operation& operation) {
  if (operation.launch() != nullptr) return "launch";
  if (operation.copy() != nullptr) return "copy";
  return operation.fill() != nullptr ? "fill" : "none";
}

Json SideToJson(const access::ExtentSet& bytes, const std::string& unknown) {
  Json json = {{"known", unknown.empty()},
               {"bytes", bytes.bytes()},
               {"extents", bytes.extents().size()}};
  if (!unknown.empty()) json["unknown"] = unknown;
  return json;
}

std::string ListOperations(const StepAnalysis& analysis) {
  std::string text = "\n";
  size_t edge = 0;
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    absl::StrAppendFormat(&text, "%6d  %s\n", op,
                          Printable(analysis.names[op]));
    for (; edge < analysis.needed.edges.size() &&
           analysis.needed.edges[edge].to == op;
         ++edge) {
      const plan::DependencyEdge& before = analysis.needed.edges[edge];
      absl::StrAppendFormat(
          &text, "          after %d: %s\n", before.from,
          absl::StrJoin(before.reasons, ", ",
                        [](std::string* out, const plan::Reason& reason) {
                          *out += ReasonToText(reason);
                        }));
    }
  }
  return text;
}

}  // namespace

std::string ReasonToText(const plan::Reason& reason) {
  std::string text(plan::HazardName(reason.hazard));
  if (reason.bytes == 0) return text;
  absl::StrAppend(&text, " ", Bytes(reason.bytes), " at ",
                  Hex(reason.first.address));
  if (reason.bytes != reason.first.size) text += " and beyond";
  return text;
}

Json ReasonToJson(const plan::Reason& reason) {
  Json json = {{"hazard", absl::StrCat(plan::HazardName(reason.hazard))}};
  if (reason.bytes != 0) {
    json["address"] = Hex(reason.first.address);
    json["size"] = reason.first.size;
    json["bytes"] = reason.bytes;
  }
  return json;
}

Json OperationToJson(const StepAnalysis& analysis, uint32_t index) {
  const replay::Operation& operation = analysis.operation(index);
  Json json = {{"index", index}, {"record", operation.record}};
  if (operation.node >= 0) json["node"] = operation.node;
  json["kind"] = KindName(operation);
  json["name"] = analysis.names[index];
  if (const replay::LaunchWork* launch = operation.launch()) {
    json["grid"] = launch->grid;
    json["block"] = launch->block;
  }
  return json;
}

std::string GraphToText(const StepAnalysis& analysis, bool all) {
  const AccessStats stats = CountAccesses(analysis);
  std::string text = absl::StrCat(
      analysis.Title(), ": ", stats.operations, " operations: ", stats.launches,
      stats.launches == 1 ? " launch, " : " launches, ", stats.copies,
      stats.copies == 1 ? " copy, " : " copies, ", stats.fills,
      stats.fills == 1 ? " fill\n" : " fills\n");
  for (const auto& [label, line] : StatsToLines(stats)) {
    absl::StrAppendFormat(&text, "  %-10s %s\n", label, Printable(line));
  }
  for (const std::string& note : analysis.notes) {
    absl::StrAppendFormat(&text, "  %-10s %s\n",
                          &note == &analysis.notes.front() ? "notes" : "",
                          Printable(note));
  }
  if (all) text += ListOperations(analysis);
  return text;
}

Json GraphToJson(const StepAnalysis& analysis) {
  Json operations = Json::array();
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    const access::AccessSet& set = analysis.access[op];
    Json json = OperationToJson(analysis, op);
    json["reads"] = SideToJson(analysis.effects[op].reads, set.unknown_reads);
    json["writes"] =
        SideToJson(analysis.effects[op].writes, set.unknown_writes);
    json["ordering_point"] = set.ordering_point;
    Json recorded = Json::array();
    for (const replay::Dependency& before :
         analysis.operation(op).dependencies) {
      recorded.push_back(before.from);
    }
    json["recorded"] = recorded;
    operations.push_back(json);
  }
  Json edges = Json::array();
  for (const plan::DependencyEdge& edge : analysis.needed.edges) {
    Json reasons = Json::array();
    for (const plan::Reason& reason : edge.reasons) {
      reasons.push_back(ReasonToJson(reason));
    }
    edges.push_back(
        {{"from", edge.from}, {"to", edge.to}, {"reasons", reasons}});
  }
  return {{"trace", analysis.trace},
          {"step",
           {{"index", analysis.step.index},
            {"source", analysis.step.source},
            {"total", analysis.step.total}}},
          {"notes", analysis.notes},
          {"summary", StatsToJson(CountAccesses(analysis))},
          {"operations", operations},
          {"edges", edges}};
}

}  // namespace heddle::tools
