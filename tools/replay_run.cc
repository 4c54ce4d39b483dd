// SPDX-License-Identifier: Apache-2.0
#include "tools/replay_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/executor.h"
#include "runtime/replay/session.h"
#include "tools/plan_run.h"

namespace heddle::tools {
namespace {

using ExecutorPointer = std::unique_ptr<replay::Executor>;
using MakeExecutor = std::function<absl::StatusOr<ExecutorPointer>()>;

MakeExecutor MakeRewritten(const replay::Session& session, plan::Style style,
                           const replay::GraphOptions& graph) {
  return [&session, style, graph]() -> absl::StatusOr<ExecutorPointer> {
    absl::StatusOr<replay::RewrittenExecutor> made =
        session.NewRewritten(style, graph);
    if (!made.ok()) return made.status();
    return std::move(made->executor);
  };
}

// Finds out which rewritten forms there are, and appends them to `modes`. What
// cannot be rewritten is no error: the form is left out, with the reason.
absl::StatusOr<Rewriting> Rewrite(const replay::Session& session,
                                  const ReplayOptions& options,
                                  std::vector<MakeExecutor>& modes) {
  const replay::GraphOptions graph = {.drop_dependency =
                                          options.drop_dependency};
  Rewriting rewriting;
  rewriting.replaced_modules = session.modules().code()->replaced_count();
  std::vector<plan::Style> styles = {plan::Style::kProgrammatic,
                                     plan::Style::kLaunchOrder};
  if (options.style) styles = {*options.style};
  for (const plan::Style style : styles) {
    RewrittenForm& form = rewriting.forms.emplace_back();
    form.name = replay::RewrittenName(style);
    absl::StatusOr<replay::RewrittenExecutor> made =
        session.NewRewritten(style, graph);
    if (made.ok()) {
      form.summary = std::move(made->summary);
      // Without such an edge it is the programmatic form again.
      if (!options.style && style == plan::Style::kLaunchOrder &&
          form.summary.launch_order == 0) {
        form.skipped = "no edge qualifies for launch order";
        continue;
      }
      modes.push_back(MakeRewritten(session, style, graph));
    } else if (absl::IsNotFound(made.status()) ||
               absl::IsUnimplemented(made.status()) ||
               absl::IsFailedPrecondition(made.status())) {
      form.skipped = absl::StrCat(made.status().message());
    } else {
      return absl::Status(
          made.status().code(),
          absl::StrCat(form.name, ": ", made.status().message()));
    }
  }
  return rewriting;
}

// Verifies serial and graph, and all rewritten forms: `modes` from `first` on.
absl::StatusOr<replay::VerifyResult> VerifyModes(
    replay::Session& session, std::vector<MakeExecutor> modes, size_t first,
    const MakeExecutor& orders, const ReplayOptions& options) {
  replay::VerifyOptions verify;
  if (orders != nullptr) {
    modes.push_back(orders);
    verify.runs = std::max(verify.runs, options.orders);
  }
  verify.graph.drop_dependency = options.drop_dependency;
  std::vector<ExecutorPointer> owned;
  for (size_t i = first; i < modes.size(); ++i) {
    absl::StatusOr<ExecutorPointer> executor = modes[i]();
    if (!executor.ok()) return executor.status();
    verify.others.push_back(executor->get());
    owned.push_back(*std::move(executor));
  }
  return replay::Verify(session, verify);
}

bool FailedVerification(const ReplayResult& result, const std::string& name) {
  if (!result.verify) return false;
  for (const replay::InputVerdict& input : result.verify->inputs) {
    for (const replay::FormVerdict& form : input.forms) {
      if (form.name == name && form.verdict == replay::Verdict::kDifferent) {
        return true;
      }
    }
  }
  return false;
}

std::string FastestMode(const ReplayResult& result) {
  const replay::Timing* fastest = nullptr;
  for (const replay::Timing& timing : result.timings) {
    if (timing.name == "serial" || FailedVerification(result, timing.name)) {
      continue;
    }
    if (fastest == nullptr || timing.median_us < fastest->median_us) {
      fastest = &timing;
    }
  }
  return fastest == nullptr ? "" : fastest->name;
}

// The ways to run the step that were asked for, without rewritten ones.
std::vector<MakeExecutor> Modes(const replay::Session& session,
                                const ReplayOptions& options) {
  std::vector<MakeExecutor> modes;
  if (options.serial) {
    modes.push_back([&session] { return session.NewSerial(); });
  }
  if (options.graph) {
    const replay::GraphOptions graph = {.drop_dependency =
                                            options.drop_dependency};
    modes.push_back([&session, graph] { return session.NewGraph(graph); });
  }
  return modes;
}

// Adds the graph of the plan file to `modes`, and its random orders.
absl::Status AddPlan(const replay::Session& session, const LoadedPlan& loaded,
                     const ReplayOptions& options,
                     std::vector<MakeExecutor>* modes, MakeExecutor* orders,
                     ReplayResult* result) {
  const MakeExecutor make = [&session,
                             &loaded]() -> absl::StatusOr<ExecutorPointer> {
    absl::StatusOr<replay::RewrittenExecutor> made =
        session.NewPlanned(loaded.file.plan, loaded.effects);
    if (!made.ok()) return made.status();
    return std::move(made->executor);
  };
  absl::StatusOr<replay::RewrittenExecutor> made =
      session.NewPlanned(loaded.file.plan, loaded.effects);
  if (!made.ok()) {
    return absl::Status(
        made.status().code(),
        absl::StrCat(options.plan, ": ", made.status().message(),
                     "; plan the step again"));
  }
  if (!result->rewriting) {
    result->rewriting.emplace();
    result->rewriting->replaced_modules =
        session.modules().code()->replaced_count();
  }
  RewrittenForm& form = result->rewriting->forms.emplace_back();
  form.name = made->executor->name();
  form.summary = std::move(made->summary);
  modes->push_back(make);
  if (options.orders > 0) {
    *orders = [&session, &loaded, seed = options.seed] {
      return session.NewOrders(loaded.file.plan, seed);
    };
  }
  return absl::OkStatus();
}

// Runs the step once to find what it writes, which is what is put back before
// every measured run.
absl::Status FindWritten(replay::Session& session, const MakeExecutor& make) {
  absl::StatusOr<ExecutorPointer> executor = make();
  if (!executor.ok()) return executor.status();
  if (absl::Status s = session.Reset(); !s.ok()) return s;
  if (absl::Status s = replay::RunAndWait(session.driver(), **executor);
      !s.ok()) {
    return s;
  }
  absl::StatusOr<replay::ExtentSet> changed = session.ChangedSinceStart();
  if (!changed.ok()) return changed.status();
  session.SetWritten(changed->Rounded(replay::Session::kWrittenBlock)
                         .Intersect(session.image().extents()));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<replay::Timing>> TimeModes(
    replay::Session& session, const std::vector<MakeExecutor>& modes,
    const ReplayOptions& options) {
  std::vector<ExecutorPointer> owned;
  std::vector<replay::Executor*> executors;
  for (const MakeExecutor& make : modes) {
    absl::StatusOr<ExecutorPointer> executor = make();
    if (!executor.ok()) return executor.status();
    executors.push_back(executor->get());
    owned.push_back(*std::move(executor));
  }
  return replay::TimeExecutors(session, executors, options.warm_up,
                               options.loop);
}

absl::StatusOr<report::Timeline> WatchMode(replay::Session& session,
                                           const MakeExecutor& make,
                                           report::ActivitySource& source) {
  if (absl::Status s = source.Start(); !s.ok()) return s;
  absl::StatusOr<ExecutorPointer> executor = make();
  if (!executor.ok()) return executor.status();
  // Once to warm up, and once to be seen.
  if (absl::Status s = session.ResetWritten(); !s.ok()) return s;
  if (absl::Status s = replay::RunAndWait(session.driver(), **executor);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = session.ResetWritten(); !s.ok()) return s;
  if (absl::Status s = source.Start(); !s.ok()) return s;
  if (absl::Status s = replay::RunAndWait(session.driver(), **executor);
      !s.ok()) {
    return s;
  }
  absl::StatusOr<std::vector<report::Activity>> activities = source.Stop();
  if (!activities.ok()) return activities.status();
  return report::Timeline{(*executor)->name(), source.name(),
                          *std::move(activities)};
}

report::Activity ToActivity(const replay::Operation& operation, size_t index,
                            uint64_t start_ns, uint64_t end_ns) {
  report::Activity activity;
  activity.name = operation.label;
  activity.start_ns = start_ns;
  activity.end_ns = end_ns;
  activity.correlation = index;
  if (const replay::LaunchWork* launch = operation.launch()) {
    std::copy_n(launch->grid, 3, activity.grid);
    std::copy_n(launch->block, 3, activity.block);
    activity.dynamic_shared = launch->shared_bytes;
  } else if (const replay::CopyWork* copy = operation.copy()) {
    activity.kind = report::ActivityKind::kMemcpy;
    activity.bytes = copy->width * copy->height * copy->depth;
  } else if (const replay::FillWork* fill = operation.fill()) {
    activity.kind = report::ActivityKind::kMemset;
    activity.bytes = fill->width * fill->element_size * fill->height;
  }
  return activity;
}

// Without a profiler: one operation at a time, with events around each. They
// measure an operation with its launch, and nothing overlaps.
absl::StatusOr<report::Timeline> WatchWithEvents(replay::Session& session) {
  const device::Driver& driver = session.driver();
  if (absl::Status s = session.ResetWritten(); !s.ok()) return s;
  report::Timeline timeline{"serial", "events around each operation", {}};
  const auto& operations = session.bound().step().operations;
  CUevent events[2] = {};
  CUresult result = driver.EventCreate(&events[0], CU_EVENT_DEFAULT);
  if (result == CUDA_SUCCESS) {
    result = driver.EventCreate(&events[1], CU_EVENT_DEFAULT);
  }
  absl::Status status = driver.Check(result, "cuEventCreate");
  uint64_t now_ns = 0;
  for (size_t i = 0; i < operations.size() && status.ok(); ++i) {
    if (operations[i].empty()) continue;
    float ms = 0;
    status = session.RunBetween(i, events[0], events[1]);
    if (!status.ok()) break;
    status = driver.Check(driver.EventElapsedTime(&ms, events[0], events[1]),
                          "cuEventElapsedTime");
    const auto ns = static_cast<uint64_t>(std::max(0.0F, ms) * 1e6F);
    timeline.activities.push_back(
        ToActivity(operations[i], i, now_ns, now_ns + ns));
    now_ns += ns;
  }
  for (CUevent event : events) {
    if (event != nullptr) driver.EventDestroy(event);
  }
  if (!status.ok()) return status;
  report::NumberActivities(timeline.activities);
  return timeline;
}

void CountProgram(const replay::Program& program, ReplayResult& result) {
  result.operations = program.step.operations.size();
  for (const replay::Operation& operation : program.step.operations) {
    if (operation.launch() != nullptr) ++result.launches;
    result.dependencies += operation.dependencies.size();
  }
  result.streams = program.step.lanes.size();
  result.kernels = program.kernels.size();
  result.images = program.modules.size();
  result.warnings = program.warnings;
}

}  // namespace

absl::StatusOr<ReplayResult> RunReplay(const trace::Reader& reader,
                                       const ChosenStep& step,
                                       const ReplayOptions& options) {
  ReplayResult result;
  result.trace = reader.path();
  result.step = step;
  absl::StatusOr<replay::Program> program =
      replay::BuildProgram(reader, step.bounds);
  if (!program.ok()) return program.status();
  CountProgram(*program, result);

  absl::StatusOr<device::Driver> driver = device::Driver::Load();
  if (!driver.ok()) return driver.status();
  std::unique_ptr<report::ActivitySource> source;
  if (options.watch) {
    // CUPTI wants to be there before the context is.
    absl::StatusOr<std::unique_ptr<report::ActivitySource>> made =
        report::CreateActivitySource(*driver);
    if (made.ok()) {
      source = *std::move(made);
    } else {
      result.warnings.push_back(
          absl::StrCat(made.status().message(),
                       ". The report has the serial run alone, "
                       "timed with events"));
    }
  }
  absl::StatusOr<std::unique_ptr<device::ScopedContext>> context =
      device::ScopedContext::Create(*driver, options.device);
  if (!context.ok()) return context.status();
  absl::StatusOr<report::DeviceProperties> device =
      report::QueryDevice(*driver, (*context)->device());
  if (!device.ok()) return device.status();
  result.device = *std::move(device);

  LoadedPlan plan;
  if (!options.plan.empty()) {
    absl::StatusOr<LoadedPlan> loaded =
        LoadPlan(options.plan, reader, *program, step.bounds, *driver,
                 (*context)->device());
    if (!loaded.ok()) return loaded.status();
    plan = *std::move(loaded);
    result.warnings.insert(result.warnings.end(), plan.notes.begin(),
                           plan.notes.end());
  }
  const replay::ModuleOptions modules = {.rewritable = options.opt > 0 ||
                                                       !options.plan.empty()};
  absl::StatusOr<std::unique_ptr<replay::Session>> made =
      replay::Session::Create(*driver, **context, reader, *program,
                              options.progress, modules);
  if (!made.ok()) return made.status();
  replay::Session& session = **made;
  result.warnings.insert(result.warnings.end(),
                         session.modules().warnings().begin(),
                         session.modules().warnings().end());
  result.memory_bytes = session.image().bytes();
  for (const replay::Content& content : program->content) {
    if (content.fill == fb::FillKind::kDescribed) {
      result.described_bytes += content.size;
    }
  }

  std::vector<MakeExecutor> modes = Modes(session, options);
  const size_t plain_modes = modes.size();
  if (options.opt > 0) {
    absl::StatusOr<Rewriting> rewriting = Rewrite(session, options, modes);
    if (!rewriting.ok()) return rewriting.status();
    result.rewriting = *std::move(rewriting);
  }
  MakeExecutor orders;
  if (!options.plan.empty()) {
    if (absl::Status s =
            AddPlan(session, plan, options, &modes, &orders, &result);
        !s.ok()) {
      return s;
    }
  }
  if (options.verify) {
    absl::StatusOr<replay::VerifyResult> verified =
        VerifyModes(session, modes, plain_modes, orders, options);
    if (!verified.ok()) return verified.status();
    result.verify = *std::move(verified);
  } else {
    absl::StatusOr<replay::Session::Input> input = session.LoadInput(1);
    if (!input.ok()) return input.status();
    if (absl::Status s = FindWritten(session, modes[0]); !s.ok()) return s;
  }
  if (options.loop > 0) {
    session.Report(absl::StrCat("timing ", options.loop, " runs"));
    absl::StatusOr<std::vector<replay::Timing>> timings =
        TimeModes(session, modes, options);
    if (!timings.ok()) return timings.status();
    result.timings = *std::move(timings);
  }
  result.compare = options.compare;
  if (result.rewriting) result.rewriting->fastest = FastestMode(result);
  if (!options.watch) return result;
  if (source == nullptr) {
    absl::StatusOr<report::Timeline> timeline = WatchWithEvents(session);
    if (!timeline.ok()) return timeline.status();
    result.timelines.push_back(*std::move(timeline));
    return result;
  }
  for (const MakeExecutor& make : modes) {
    absl::StatusOr<report::Timeline> timeline =
        WatchMode(session, make, *source);
    if (!timeline.ok()) return timeline.status();
    result.timelines.push_back(*std::move(timeline));
  }
  return result;
}

}  // namespace heddle::tools
