// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cubin/cache_folder.h"
#include "runtime/device/driver.h"
#include "runtime/plan/dependencies.h"
#include "runtime/replay/observe.h"
#include "runtime/replay/program_access.h"
#include "runtime/replay/session.h"
#include "tools/command.h"
#include "tools/probe_output.h"
#include "tools/record_json.h"
#include "tools/retry_layout.h"
#include "tools/trace_args.h"

namespace heddle::tools {
namespace {

struct ProbeOptions {
  replay::ObserveOptions observe;
  bool use_observed = false;
  bool mangled = false;
  int device = 0;
  replay::Progress progress;
};

uint64_t CountEdges(const replay::StepAccess& access) {
  std::vector<plan::Effects> effects;
  for (const access::AccessSet& set : access.operations) {
    effects.push_back(plan::EffectsOf(set));
  }
  return plan::BuildDependencies(effects).edges.size();
}

// Says in words where what was found lies; needs the session's memory.
void FindPlaces(const replay::MemoryImage& image, ProbeResult* result) {
  for (const replay::Observation& seen : result->observed.operations) {
    const access::ExtentSet& bytes = RemarkableBytes(seen);
    result->places.push_back(
        bytes.empty() ? "" : image.Describe(bytes.extents()[0].address));
  }
  for (const access::Extent& extent : result->observed.unwatched) {
    result->unwatched_places.push_back(image.Describe(extent.address));
  }
}

absl::Status ObserveOn(const device::Driver& driver,
                       const trace::Reader& reader,
                       const replay::Program& program,
                       const ProbeOptions& options, ProbeResult* result) {
  absl::StatusOr<std::unique_ptr<device::ScopedContext>> context =
      device::ScopedContext::Create(driver, options.device);
  if (!context.ok()) return context.status();
  absl::StatusOr<report::DeviceProperties> device =
      report::QueryDevice(driver, (*context)->device());
  if (!device.ok()) return device.status();
  result->device = *std::move(device);
  absl::StatusOr<std::unique_ptr<replay::Session>> session =
      replay::Session::Create(driver, **context, reader, program,
                              options.progress);
  if (!session.ok()) return session.status();
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<replay::StepObservation> observed =
      replay::Observe(**session, result->predicted, options.observe);
  if (!observed.ok()) return observed.status();
  result->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  result->observed = *std::move(observed);
  FindPlaces((*session)->image(), result);
  return absl::OkStatus();
}

absl::StatusOr<ProbeResult> RunProbe(const trace::Reader& reader,
                                     const ChosenStep& step,
                                     const ProbeOptions& options) {
  ProbeResult result;
  result.trace = reader.path();
  result.step = step;
  absl::StatusOr<replay::Program> program =
      replay::BuildProgram(reader, step.bounds);
  if (!program.ok()) return program.status();
  absl::StatusOr<replay::StepAccess> predicted =
      replay::FindAccesses(reader, *program, cubin::CacheFolder::DefaultPath());
  if (!predicted.ok()) return predicted.status();
  result.predicted = *std::move(predicted);
  result.notes = program->warnings;
  result.notes.insert(result.notes.end(), result.predicted.notes.begin(),
                      result.predicted.notes.end());
  result.instruction_set =
      absl::StrCat("sm_", program->compute_major, program->compute_minor);
  result.operations = program->step.operations;
  for (const replay::Operation& operation : result.operations) {
    const bool demangle = operation.launch() != nullptr && !options.mangled;
    result.names.push_back(demangle ? Demangle(operation.label)
                                    : operation.label);
  }
  absl::StatusOr<device::Driver> driver = device::Driver::Load();
  if (!driver.ok()) return driver.status();
  if (absl::Status s = ObserveOn(*driver, reader, *program, options, &result);
      !s.ok()) {
    return s;
  }
  if (options.use_observed) {
    result.use_observed = true;
    result.predicted_edges = CountEdges(result.predicted);
    result.combined_edges =
        CountEdges(replay::Combine(result.predicted, result.observed, true));
  }
  return result;
}

absl::StatusOr<int> Run(Invocation& call) {
  ProbeOptions options;
  int64_t step_number = -1;
  std::string by = "auto";
  std::string watch = "changed";
  std::string invert = "targets";
  int64_t limit = 0;
  int64_t device = 0;
  bool all = false;
  bool json = false;
  bool quiet = false;
  call.flags()
      .Int("step", "N", &step_number,
           "which step, from 0; -1: the largest that begins with a memory "
           "snapshot")
      .String("by", "SOURCE", &by,
              "what a step is: auto, recorded, graph, nvtx[:NAME], repeat[:N]")
      .Int("limit", "N", &limit,
           "only the first N operations of the step; 0: all of them")
      .Choice("watch", {"changed", "predicted", "all"}, &watch,
              "memory to look at after every operation: what the step changes "
              "or is predicted to write, the latter alone, or everything")
      .Choice("invert", {"targets", "all"}, &invert,
              "memory to invert before one of the two runs: what the operation "
              "is predicted to write and not to read, or all that is watched "
              "and that it is not predicted to read")
      .Bool("use-observed", &options.use_observed,
            "also say how many edges the order needs if an operation that "
            "could not be predicted writes what it was seen to write")
      .Int("device", "N", &device, "ordinal of the device")
      .Bool("all", &all, "a line for every operation")
      .Bool("json", &json, "print the result as JSON")
      .Bool("mangled", &options.mangled,
            "kernel names as they are in the image")
      .Bool("quiet", &quiet, "no progress on stderr")
      .Short('q');
  if (std::optional<int> exit = call.Parse({.min = 1, .max = 1})) return *exit;
  if (step_number < -1) return call.UsageError("--step counts from 0");
  if (limit < 0) return call.UsageError("--limit must not be negative");
  if (device < 0 || device > 1023) {
    return call.UsageError("--device must be an ordinal");
  }
  options.device = static_cast<int>(device);
  options.observe.limit = static_cast<uint64_t>(limit);
  options.observe.invert_all = invert == "all";
  options.observe.watch = watch == "all"         ? replay::Watch::kAll
                          : watch == "predicted" ? replay::Watch::kPredicted
                                                 : replay::Watch::kChanged;
  if (!quiet) {
    options.progress = [](const std::string& line) {
      std::fprintf(stderr, "heddle probe: %s\n", line.c_str());
    };
  }
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);  // see cmd_replay.cc

  auto reader = OpenTrace(call.positional()[0]);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<ChosenStep> step = ChooseStep(**reader, step_number, by);
  if (!step.ok()) return step.status();
  absl::StatusOr<ProbeResult> result = RunProbe(**reader, *step, options);
  if (!result.ok()) {
    RunAgainOnCollision(result.status());
    return result.status();
  }
  const std::string text = json ? DumpJson(ProbeToJson(*result), 1) + "\n"
                                : ProbeToText(*result, all);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return result->observed.confirmed() ? kExitOk : kExitNo;
}

}  // namespace

const Command& ProbeCommand() {
  static const std::string& help = *new std::string(absl::StrCat(
      "`heddle graph` and `heddle plan -O2` predict from the machine code "
      "which "
      "bytes each operation of a step touches. This measures it on the device "
      "and compares.\n"
      "\nEvery operation runs by itself, in the recorded order, on the memory "
      "that it really starts from, twice: with the bytes that it should write "
      "and not read inverted, and as it is. Whatever it writes into those "
      "shows, even a value that was there before. A result that is not the "
      "same both times, of a kernel that repeats itself, means that it reads "
      "more than predicted.\n"
      "\n  within      it writes nothing that is not predicted; the share of "
      "the\n              predicted bytes that it does write says how tight "
      "that is\n  unknown     nothing could be predicted: what it was seen to "
      "write\n  reads more  its results depend on bytes that it should not "
      "read\n  outside     it writes bytes that it should not write\n"
      "\nThe last two are errors of heddle's analysis: please report them with "
      "the trace. No plan above O1 can be trusted for that step.\n"
      "\n  heddle probe llama.htrace\n"
      "  heddle probe llama.htrace --watch all --invert all   # strictest\n"
      "\nWhat it cannot see: writes with other inputs than these, beside all "
      "recorded memory, and (but for --invert all) writes outside the "
      "prediction of values that were there before. An observation is a test "
      "of a prediction and no replacement for it.\n"
      "\nCost: a run of the step, then for each operation two runs and the "
      "watched memory once over the bus: some 30 ms for 140 MB. --watch all "
      "takes all memory of the trace instead, as much host memory, and weights "
      "are most of it; --invert all sends it to the device once more, twice. A "
      "kernel that reads inverted memory as a pointer may fault: the error "
      "names it.\n"
      "\n--json prints one object:\n",
      kProbeJsonHelp,
      "\nExit code: 0 nothing contradicts the prediction; 1 something does; 2 "
      "wrong usage, a trace that cannot be replayed, or no device.\n"));
  static const Command kCommand = {
      .name = "probe",
      .synopsis = "measure what each operation writes; is the prediction right",
      .arguments = "[flags] TRACE",
      .help = help.c_str(),
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
