// SPDX-License-Identifier: Apache-2.0
#include "tools/step_analysis.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/cubin/cache_folder.h"
#include "runtime/plan/critical_path.h"
#include "runtime/replay/program_access.h"
#include "tools/names.h"

namespace heddle::tools {
namespace {

// What each operation follows, in one of the two orders.
using Before = std::vector<std::vector<uint32_t>>;

bool HasPath(const Before& before, uint32_t from, uint32_t to) {
  std::vector<bool> seen(to - from);
  std::vector<uint32_t> stack = {to};
  while (!stack.empty()) {
    const uint32_t op = stack.back();
    stack.pop_back();
    for (const uint32_t earlier : before[op]) {
      if (earlier == from) return true;
      if (earlier < from || seen[earlier - from]) continue;
      seen[earlier - from] = true;
      stack.push_back(earlier);
    }
  }
  return false;
}

void CountEdges(const StepAnalysis& analysis, AccessStats& stats) {
  Before needed(analysis.size());
  Before recorded(analysis.size());
  for (const plan::DependencyEdge& edge : analysis.needed.edges) {
    needed[edge.to].push_back(edge.from);
    for (const plan::Reason& reason : edge.reasons) {
      ++stats.hazards[static_cast<size_t>(reason.hazard)];
    }
  }
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    for (const replay::Dependency& dependency :
         analysis.operation(op).dependencies) {
      recorded[op].push_back(dependency.from);
    }
  }
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    stats.needed_edges += needed[op].size();
    stats.recorded_edges += recorded[op].size();
    for (const uint32_t from : needed[op]) {
      if (!HasPath(recorded, from, op)) ++stats.needed_only;
    }
    for (const uint32_t from : recorded[op]) {
      if (!HasPath(needed, from, op)) ++stats.recorded_only;
    }
  }
}

void CountLaunch(const access::AccessSet& set, AccessStats& stats) {
  ++stats.launches;
  ++(set.reads_known()
         ? (set.writes_known() ? stats.known : stats.reads_only)
         : (set.writes_known() ? stats.writes_only : stats.unknown));
  if (!set.writes_known()) {
    ++stats.reasons[set.unknown_writes];
  } else if (!set.reads_known()) {
    ++stats.reasons[set.unknown_reads];
  }
  for (const access::Access& access : set.accesses) {
    const auto provenance = static_cast<size_t>(access.provenance);
    const uint64_t bytes = access.bytes.bytes();
    if (access.mode != access::Mode::kWrite) {
      stats.read_bytes[provenance] += bytes;
    }
    if (access.mode != access::Mode::kRead) {
      stats.written_bytes[provenance] += bytes;
    }
  }
}

}  // namespace

std::string StepAnalysis::Title() const {
  std::string file = std::filesystem::path(trace).filename();
  if (step.index < 0) return file;
  return absl::StrCat(file, ", step ", step.index, " (", step.source, ", ",
                      step.total, " in all)");
}

void FindOrder(StepAnalysis& analysis) {
  analysis.effects.clear();
  for (const access::AccessSet& set : analysis.access) {
    analysis.effects.push_back(plan::EffectsOf(set));
  }
  analysis.needed = plan::BuildDependencies(analysis.effects);
}

absl::StatusOr<StepAnalysis> AnalyseStep(const trace::Reader& reader,
                                         int64_t step, const std::string& by,
                                         bool mangled) {
  StepAnalysis analysis;
  analysis.trace = reader.path();
  absl::StatusOr<ChosenStep> chosen = ChooseStep(reader, step, by);
  if (!chosen.ok()) return chosen.status();
  analysis.step = *std::move(chosen);
  absl::StatusOr<replay::Program> program =
      replay::BuildProgram(reader, analysis.step.bounds);
  if (!program.ok()) return program.status();
  absl::StatusOr<replay::StepAccess> found =
      replay::FindAccesses(reader, *program, cubin::CacheFolder::DefaultPath());
  if (!found.ok()) return found.status();
  analysis.access = std::move(found->operations);
  analysis.notes = std::move(found->notes);
  analysis.operations = std::move(program->step);
  for (const replay::Operation& operation : analysis.operations.operations) {
    const bool demangle = operation.launch() != nullptr && !mangled;
    analysis.names.push_back(demangle ? Demangle(operation.label)
                                      : operation.label);
  }
  FindOrder(analysis);
  return analysis;
}

std::string ShortName(const std::string& name, size_t width) {
  const std::string plain =
      absl::StrReplaceAll(name, {{"(anonymous namespace)::", ""}});
  const size_t end = std::min(plain.find_first_of("<( "), plain.size());
  const size_t colons = plain.rfind("::", end);
  const size_t begin = colons == std::string::npos ? 0 : colons + 2;
  std::string text = plain.substr(begin);
  if (text.size() > width) text = plain.substr(begin, end - begin);
  if (text.size() <= width) return text;
  return width <= 3 ? text.substr(0, width)
                    : absl::StrCat(text.substr(0, width - 3), "...");
}

AccessStats CountAccesses(const StepAnalysis& analysis) {
  AccessStats stats;
  stats.operations = analysis.size();
  std::vector<double> weights(analysis.size());
  for (uint32_t op = 0; op < analysis.size(); ++op) {
    const replay::Operation& operation = analysis.operation(op);
    if (operation.copy() != nullptr) ++stats.copies;
    if (operation.fill() != nullptr) ++stats.fills;
    if (operation.launch() == nullptr) continue;
    weights[op] = 1;
    CountLaunch(analysis.access[op], stats);
  }
  CountEdges(analysis, stats);
  const auto pairs = analysis.needed.Pairs();
  const plan::ParallelismProfile profile =
      plan::ProfileParallelism(weights, pairs);
  stats.chain = static_cast<uint64_t>(profile.length);
  for (const double time : profile.time_with) {
    stats.beside.push_back(profile.length > 0 ? time / profile.length : 0);
  }
  return stats;
}

}  // namespace heddle::tools
