// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/names.h"
#include "tools/probe_output.h"

namespace heddle::tools {

const char kProbeJsonHelp[] =
    "  schema 1, trace, step {index, source, total}, device, seconds\n"
    "  instruction_set  of the code that was analysed: \"sm_90\"\n"
    "  confirmed    nothing contradicts the prediction\n"
    "  watched      {bytes, of}: looked at after every operation, and memory "
    "in\n"
    "               all\n"
    "  matches      {within, unknown, \"reads more\", outside}: operations\n"
    "  predicted_bytes, observed_bytes  written, of \"within\" operations\n"
    "  operations   [{index, record, node, name, match, predicted, observed,\n"
    "               inverted, complete, repeats, extents, extents_left_out,\n"
    "               place, unknown, predicted_by}]: bytes; predicted "
    "is\n"
    "               null if it is unknown; extents {address, size}, the first "
    "of\n"
    "               those outside (outside), that depend on more (reads more) "
    "or\n"
    "               that are written (unknown); predicted_by: for outside and\n"
    "               reads more, [{mode, provenance, bytes, evidence}]\n"
    "  unwatched    [{address, size, place, operation}]: changed although "
    "nobody\n"
    "               is predicted to write there; last writer or null\n"
    "  edges        with --use-observed, {predicted, combined}\n"
    "  notes        [line]\n";

namespace {

using Json = nlohmann::ordered_json;
using replay::Match;
using replay::Observation;

constexpr size_t kMaxExtents = 16;  // of one operation

Json OperationJson(const ProbeResult& result, size_t i) {
  const Observation& seen = result.observed.operations[i];
  const replay::Operation& operation = result.operations[seen.operation];
  const access::AccessSet& set = result.predicted.operations[seen.operation];
  Json json = {{"index", seen.operation}, {"record", operation.record}};
  if (operation.node >= 0) json["node"] = operation.node;
  json["name"] = result.names[seen.operation];
  json["match"] = MatchName(seen.match);
  json["predicted"] =
      set.writes_known() ? Json(seen.predicted_bytes) : Json(nullptr);
  json["observed"] = seen.written.bytes();
  json["inverted"] = seen.inverted_bytes;
  json["complete"] = seen.complete;
  json["repeats"] = !seen.unrepeatable;
  if (!set.writes_known()) json["unknown"] = set.unknown_writes;
  if (seen.match == Match::kWithin) return json;
  json["place"] = result.places[i];
  const std::vector<access::Extent>& extents = RemarkableBytes(seen).extents();
  Json list = Json::array();
  for (size_t e = 0; e < std::min(extents.size(), kMaxExtents); ++e) {
    list.push_back(
        {{"address", Hex(extents[e].address)}, {"size", extents[e].size}});
  }
  json["extents_left_out"] = extents.size() - list.size();
  json["extents"] = std::move(list);
  if (seen.match == Match::kUnknown) return json;
  Json by = Json::array();
  for (const access::Access& access : set.accesses) {
    by.push_back({{"mode", absl::StrCat(access::ModeName(access.mode))},
                  {"provenance",
                   absl::StrCat(access::ProvenanceName(access.provenance))},
                  {"bytes", access.bytes.bytes()},
                  {"evidence", access.evidence}});
  }
  json["predicted_by"] = std::move(by);
  return json;
}

}  // namespace

ProbeTotals CountProbe(const ProbeResult& result) {
  ProbeTotals totals;
  for (const replay::Observation& seen : result.observed.operations) {
    ++totals.matches[static_cast<size_t>(seen.match)];
    if (seen.unrepeatable) ++totals.unrepeatable;
    if (seen.match != replay::Match::kWithin) continue;
    totals.predicted += seen.predicted_bytes;
    totals.observed += seen.written.bytes();
  }
  return totals;
}

const access::ExtentSet& RemarkableBytes(const replay::Observation& seen) {
  if (seen.match == Match::kOutside) return seen.outside;
  return seen.match == Match::kReads ? seen.dependent : seen.written;
}

Json ProbeToJson(const ProbeResult& result) {
  const ProbeTotals totals = CountProbe(result);
  const replay::StepObservation& observed = result.observed;
  Json json = {
      {"schema", 1},
      {"trace", result.trace},
      {"step",
       {{"index", result.step.index},
        {"source", result.step.source},
        {"total", result.step.total}}},
      {"device", result.device.name},
      {"seconds", result.seconds},
      {"instruction_set", result.instruction_set},
      {"confirmed", observed.confirmed()},
      {"watched",
       {{"bytes", observed.watched.bytes()}, {"of", observed.image_bytes}}}};
  for (size_t i = 0; i < kMatches; ++i) {
    json["matches"][MatchName(static_cast<Match>(i))] = totals.matches[i];
  }
  json["predicted_bytes"] = totals.predicted;
  json["observed_bytes"] = totals.observed;
  json["operations"] = Json::array();
  for (size_t i = 0; i < observed.operations.size(); ++i) {
    json["operations"].push_back(OperationJson(result, i));
  }
  json["unwatched"] = Json::array();
  for (size_t i = 0; i < observed.unwatched.size(); ++i) {
    const int64_t writer = observed.unwatched_writers[i];
    json["unwatched"].push_back(
        {{"address", Hex(observed.unwatched[i].address)},
         {"size", observed.unwatched[i].size},
         {"place", result.unwatched_places[i]},
         {"operation", writer < 0 ? Json(nullptr) : Json(writer)}});
  }
  if (result.use_observed) {
    json["edges"] = {{"predicted", result.predicted_edges},
                     {"combined", result.combined_edges}};
  }
  json["notes"] = result.notes;
  return json;
}

}  // namespace heddle::tools
