// SPDX-License-Identifier: Apache-2.0
#include "tools/probe_output.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/names.h"
#include "tools/step_analysis.h"

namespace heddle::tools {

namespace {

using replay::Match;
using replay::Observation;

constexpr size_t kMaxLines = 8;  // of accesses in text

// "98.2%", never 100% of what is less.
std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  const double percent =
      100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return absl::StrFormat("%.1f%%",
                         part == whole ? 100.0 : std::min(percent, 99.9));
}

std::string Title(const ProbeResult& result) {
  StepAnalysis analysis;
  analysis.trace = result.trace;
  analysis.step = result.step;
  return analysis.Title();
}

void Line(std::string* text, absl::string_view label, const std::string& line) {
  absl::StrAppendFormat(text, "  %-10s %s\n", label, Printable(line));
}

// What the prediction rests on, for whoever has to find the error.
std::string PredictedBy(const ProbeResult& result, const Observation& seen) {
  std::string text;
  const access::AccessSet& set = result.predicted.operations[seen.operation];
  const bool reads = seen.match == Match::kReads;
  size_t lines = 0;
  for (const access::Access& access : set.accesses) {
    if (access.mode == (reads ? access::Mode::kWrite : access::Mode::kRead)) {
      continue;
    }
    if (++lines > kMaxLines) continue;
    absl::StrAppendFormat(
        &text, "             predicted: %s %s, %s: %s\n",
        absl::StrCat(access::ModeName(access.mode)),
        Bytes(access.bytes.bytes()),
        absl::StrCat(access::ProvenanceName(access.provenance)),
        Printable(access.evidence));
  }
  if (lines == 0) {
    absl::StrAppend(&text, "             predicted: it ",
                    reads ? "reads" : "writes", " nothing\n");
  } else if (lines > kMaxLines) {
    absl::StrAppend(&text, "             and ", lines - kMaxLines, " more\n");
  }
  return text;
}

std::string Describe(const ProbeResult& result, size_t i) {
  const Observation& seen = result.observed.operations[i];
  const replay::Operation& operation = result.operations[seen.operation];
  std::string text = absl::StrFormat(
      "%6d  %s  %s (record %d%s)\n", seen.operation, MatchName(seen.match),
      Printable(result.names[seen.operation]), operation.record,
      operation.node < 0 ? "" : absl::StrCat(", node ", operation.node));
  const access::ExtentSet& bytes = RemarkableBytes(seen);
  std::string what;
  switch (seen.match) {
    case Match::kWithin:
      what = absl::StrCat("writes ", Bytes(bytes.bytes()), " of ",
                          Bytes(seen.predicted_bytes), " predicted (",
                          Percent(bytes.bytes(), seen.predicted_bytes), ")");
      break;
    case Match::kUnknown:
      what = absl::StrCat("writes ", Bytes(bytes.bytes()));
      break;
    case Match::kReads:
      what = absl::StrCat(Bytes(bytes.bytes()),
                          " that it writes depend on memory that it is not "
                          "predicted to read");
      break;
    case Match::kOutside:
      what = absl::StrCat("writes ", Bytes(bytes.bytes()),
                          " that are not predicted");
      break;
  }
  if (!bytes.empty()) {
    absl::StrAppend(&what,
                    bytes.extents().size() == 1 ? ", at " : ", first at ",
                    Hex(bytes.extents()[0].address), ": ", result.places[i]);
  }
  absl::StrAppend(&text, "             ", Printable(what), "\n");
  if (seen.match == Match::kUnknown) {
    const access::AccessSet& set = result.predicted.operations[seen.operation];
    absl::StrAppend(&text, "             not predicted: ",
                    Printable(set.unknown_writes), "\n");
    if (!seen.complete) {
      text +=
          "             writes of the values that were there before would "
          "not show\n";
    }
  }
  if (seen.match == Match::kOutside || seen.match == Match::kReads) {
    text += PredictedBy(result, seen);
  }
  if (seen.unrepeatable) text += "             does not do the same twice\n";
  return text;
}

// One line for every kernel whose prediction is not tight.
std::string Loose(const ProbeResult& result) {
  struct Sum {
    uint64_t operations = 0;
    uint64_t predicted = 0;
    uint64_t observed = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Observation& seen : result.observed.operations) {
    if (seen.match != Match::kWithin) continue;
    Sum& sum = sums[result.names[seen.operation]];
    ++sum.operations;
    sum.predicted += seen.predicted_bytes;
    sum.observed += seen.written.bytes();
  }
  std::vector<std::pair<std::string, Sum>> loose;
  for (const auto& [name, sum] : sums) {
    if (sum.observed != sum.predicted) loose.emplace_back(name, sum);
  }
  if (loose.empty()) return "";
  std::stable_sort(loose.begin(), loose.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.predicted - a.second.observed >
                            b.second.predicted - b.second.observed;
                   });
  std::string text =
      "\nwritten, of what is predicted, where that is not the same (what is "
      "updated in place shows\nif its value changes):\n";
  for (const auto& [name, sum] : loose) {
    absl::StrAppendFormat(&text, "  %6s  %s of %s  x%d  %s\n",
                          Percent(sum.observed, sum.predicted),
                          Bytes(sum.observed), Bytes(sum.predicted),
                          sum.operations, Printable(name));
  }
  return text;
}

}  // namespace

std::string ProbeToText(const ProbeResult& result, bool all) {
  const ProbeTotals totals = CountProbe(result);
  const replay::StepObservation& observed = result.observed;
  std::string text = absl::StrFormat(
      "%s: %d operations, each by itself, in %.1f s on %s\n", Title(result),
      observed.operations.size(), result.seconds, result.device.name);
  Line(&text, "watched",
       absl::StrCat(Bytes(observed.watched.bytes()), " of ",
                    Bytes(observed.image_bytes)));
  Line(&text, "within",
       absl::StrCat(totals.of(Match::kWithin), " write what is predicted: ",
                    Bytes(totals.observed), " of ", Bytes(totals.predicted),
                    " (", Percent(totals.observed, totals.predicted), ")"));
  if (totals.of(Match::kUnknown) != 0) {
    Line(&text, "unknown",
         absl::StrCat(totals.of(Match::kUnknown),
                      " write what could not be predicted"));
  }
  if (totals.of(Match::kReads) != 0) {
    Line(&text, "reads more",
         absl::StrCat(totals.of(Match::kReads),
                      " depend on memory that they are not predicted to read"));
  }
  if (totals.of(Match::kOutside) != 0) {
    Line(&text, "outside",
         absl::StrCat(totals.of(Match::kOutside),
                      " write memory that is not predicted"));
  }
  if (totals.unrepeatable != 0) {
    Line(&text, "",
         absl::StrCat(totals.unrepeatable,
                      " do not do the same twice: nothing "
                      "is said about what they read"));
  }
  if (result.use_observed) {
    Line(&text, "order",
         absl::StrCat(result.combined_edges,
                      " edges needed with what was "
                      "observed, ",
                      result.predicted_edges, " without"));
  }
  for (const std::string& note : result.notes) {
    Line(&text, &note == &result.notes.front() ? "notes" : "", note);
  }
  std::string list;
  for (size_t i = 0; i < observed.operations.size(); ++i) {
    if (all || observed.operations[i].match != Match::kWithin) {
      list += Describe(result, i);
    }
  }
  if (!list.empty()) absl::StrAppend(&text, "\n", list);
  text += Loose(result);
  for (size_t i = 0; i < observed.unwatched.size(); ++i) {
    const int64_t writer = observed.unwatched_writers[i];
    absl::StrAppend(
        &text,
        i == 0 ? "\nchanged, and nobody is predicted to write it:\n" : "", "  ",
        Bytes(observed.unwatched[i].size), " at ", result.unwatched_places[i],
        ", last by ",
        writer < 0 ? "an operation that was not found"
                   : absl::StrCat(
                         writer, ", ",
                         Printable(result.names[static_cast<size_t>(writer)])),
        "\n");
  }
  absl::StrAppend(&text, "\nprobe: ",
                  observed.confirmed()
                      ? "nothing contradicts the prediction\n"
                      : absl::StrCat("FAILED: the prediction (from ",
                                     result.instruction_set,
                                     " code) is wrong; a plan that rests on it "
                                     "may be, too\n"));
  return text;
}

}  // namespace heddle::tools
