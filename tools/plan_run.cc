// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/cache_folder.h"
#include "runtime/replay/plan_step.h"
#include "runtime/replay/program_access.h"
#include "runtime/rewrite/graph_model.h"
#include "runtime/rewrite/planned.h"
#include "tools/plan_durations.h"

namespace heddle::tools {
namespace {

void Append(const std::vector<std::string>& notes,
            std::vector<std::string>* to) {
  to->insert(to->end(), notes.begin(), notes.end());
}

// A serial run on the device, watched.
absl::StatusOr<std::vector<double>> Measure(const trace::Reader& reader,
                                            const ChosenStep& step,
                                            const replay::Program& program,
                                            const PlanRunOptions& options,
                                            std::string* source) {
  ReplayOptions replay;
  replay.graph = false;
  replay.loop = 0;
  replay.watch = true;
  replay.device = options.device.value_or(0);
  replay.progress = options.progress;
  const absl::StatusOr<ReplayResult> result = RunReplay(reader, step, replay);
  if (!result.ok()) return result.status();
  if (result->timelines.empty()) {
    return absl::InternalError("the replay saw nothing of the device");
  }
  const report::Timeline& timeline = result->timelines[0];
  *source = absl::StrCat("measured on ", result->device.name, " (",
                         timeline.source, ")");
  return MatchDurations(ActivitiesOf(timeline), program, *source);
}

// Makes the step one for the device of this machine.
absl::Status UseDevice(int ordinal, replay::PlanStep* described) {
  const absl::StatusOr<device::Driver> driver = device::Driver::Load();
  if (!driver.ok()) return driver.status();
  const auto context = device::ScopedContext::Create(*driver, ordinal);
  if (!context.ok()) return context.status();
  absl::StatusOr<plan::PlanBinding> here =
      rewrite::BindToDevice(described->binding, *driver, (*context)->device());
  if (!here.ok()) return here.status();
  described->binding = *std::move(here);
  described->limits = rewrite::ReadLimits(*driver, (*context)->device());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> FindDurations(
    const trace::Reader& reader, const ChosenStep& step,
    const replay::Program& program, const replay::PlanStep& described,
    const PlanRunOptions& options, std::string* source) {
  if (options.measure) {
    return Measure(reader, step, program, options, source);
  }
  if (!options.durations.empty()) {
    *source = options.durations;
    return ReadDurations(options.durations, program, described.operations);
  }
  // So that branches are about launches and not about nothing.
  constexpr double kEqualUs = 2.5;
  *source = absl::StrCat("all equal, ", kEqualUs,
                         " us: nothing was measured (--measure, --durations)");
  std::vector<double> durations;
  for (const replay::Operation& operation : program.step.operations) {
    durations.push_back(operation.empty() ? 0 : kEqualUs);
  }
  return durations;
}

}  // namespace

absl::StatusOr<PlanRunResult> RunPlan(const trace::Reader& reader,
                                      const ChosenStep& step,
                                      const PlanRunOptions& options) {
  const absl::StatusOr<replay::Program> program =
      replay::BuildProgram(reader, step.bounds);
  if (!program.ok()) return program.status();
  PlanRunResult result;
  result.trace = reader.path();
  result.step = step;
  replay::PlanStep described =
      replay::DescribeStep(reader, *program, step.bounds);
  // O1 needs no accesses; they say why its edges are there.
  if (options.level == plan::Level::kO2 || options.explain) {
    const absl::StatusOr<replay::StepAccess> accesses = replay::FindAccesses(
        reader, *program, cubin::CacheFolder::DefaultPath());
    if (!accesses.ok()) return accesses.status();
    described.input.effects = replay::EffectsOf(accesses->operations);
    Append(accesses->notes, &described.notes);
  }
  if (options.measure || options.device) {
    if (absl::Status s = UseDevice(options.device.value_or(0), &described);
        !s.ok()) {
      return s;
    }
  }
  std::string source;
  absl::StatusOr<std::vector<double>> durations =
      FindDurations(reader, step, *program, described, options, &source);
  if (!durations.ok()) return durations.status();
  described.input.durations_us = *std::move(durations);

  plan::PlanOptions planning;
  planning.level = options.level;
  planning.style = options.style;
  planning.branches.max_branches = options.max_branches;
  planning.limits = described.limits;
  absl::StatusOr<plan::Plan> plan = plan::MakePlan(described.input, planning);
  if (!plan.ok()) return plan.status();
  if (options.explain) {
    absl::StatusOr<std::vector<plan::Boundary>> boundaries =
        plan::ExplainPlan(described.input, *plan, planning.branches.costs);
    if (!boundaries.ok()) return boundaries.status();
    result.boundaries = *std::move(boundaries);
  }
  result.names = std::move(described.input.names);
  result.file.binding = std::move(described.binding);
  result.file.operations = std::move(described.operations);
  result.file.plan = *std::move(plan);
  Append(described.notes, &result.file.plan.notes);
  result.file.max_branches = options.max_branches;
  result.file.costs = planning.branches.costs;
  result.file.durations_from = std::move(source);
  return result;
}

absl::StatusOr<LoadedPlan> LoadPlan(const std::string& path,
                                    const trace::Reader& reader,
                                    const replay::Program& program,
                                    const replay::StepBounds& bounds,
                                    const device::Driver& driver,
                                    CUdevice device) {
  absl::StatusOr<plan::PlanFile> file = plan::ReadPlanFile(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<plan::PlanBinding> here = rewrite::BindToDevice(
      replay::BindingOf(reader, program, bounds), driver, device);
  if (!here.ok()) return here.status();
  if (absl::Status s = plan::CheckBinding(file->binding, *here, path);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = plan::CheckOperations(
          file->operations, replay::IdentitiesOf(program), path);
      !s.ok()) {
    return s;
  }
  LoadedPlan loaded;
  loaded.file = *std::move(file);
  if (loaded.file.plan.level != plan::Level::kO2) return loaded;
  absl::StatusOr<replay::StepAccess> accesses =
      replay::FindAccesses(reader, program, cubin::CacheFolder::DefaultPath());
  if (!accesses.ok()) return accesses.status();
  loaded.effects = replay::EffectsOf(accesses->operations);
  loaded.notes = std::move(accesses->notes);
  return loaded;
}

}  // namespace heddle::tools
