// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/inception/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/apps/common/hash.h"
#include "benchmarks/apps/common/program.h"
#include "benchmarks/apps/common/seeded.h"
#include "benchmarks/apps/common/status_macros.h"
#include "benchmarks/apps/common/step_range.h"
#include "benchmarks/apps/inception/device_network.h"
#include "benchmarks/apps/inception/reference.h"

namespace inception {
namespace {

constexpr int kWarmupPasses = 3;

// Share of the largest output. What differs from the reference is the order of
// fp32 sums, Winograd's transforms and, if asked for, TF32's 10-bit fractions.
constexpr double kTolerance = 2e-3;
constexpr double kTf32Tolerance = 3e-2;

struct CheckResult {
  double max_error = 0;
  double tolerance = kTolerance;
  bool ok() const { return max_error <= tolerance; }
};

struct Outcome {
  std::string device;
  size_t cudnn_version = 0;
  size_t graph_nodes = 0;
  std::vector<std::string> checksums;  // of each batch's output
  std::optional<CheckResult> check;
  std::optional<apps::BenchResult> bench;
};

std::vector<float> MakeImages(const Options& options, int index) {
  return apps::SeededFloats(options.seed, absl::StrCat("images", index),
                            options.network.elements(), 0.5f, 0.5f);
}

// Adds the difference of one batch's output to `check`.
void Compare(const std::vector<float>& output,
             const std::vector<float>& expected, CheckResult* check) {
  double scale = 1e-30;
  for (const float value : expected) {
    scale = std::max(scale, std::abs(static_cast<double>(value)));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    double error =
        std::abs(static_cast<double>(output[i]) - expected[i]) / scale;
    // A NaN compares false with everything, so it is asked for.
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    check->max_error = std::max(check->max_error, error);
  }
}

std::vector<float> RunReference(const NetworkConfig& config,
                                const std::vector<Block>& blocks,
                                std::vector<float> images) {
  Activation x = {config.batch, config.channels, config.size, config.size,
                  std::move(images)};
  for (const Block& block : blocks) x = RunBlock(x, block);
  return std::move(x.data);
}

// Runs forward passes, from the stream or from a graph.
class Session {
 public:
  Session(const Options& options, apps::Gpu* gpu, DeviceNetwork* network)
      : options_(options), gpu_(gpu), network_(network) {}

  absl::Status Prepare() {
    if (!options_.graph) return absl::OkStatus();
    // cuDNN loads its kernels at the first pass, which a capture forbids.
    APPS_RETURN_IF_ERROR(network_->Enqueue());
    APPS_RETURN_IF_ERROR(gpu_->Synchronize());
    APPS_RETURN_IF_ERROR(gpu_->BeginCapture());
    const absl::Status status = network_->Enqueue();
    const absl::Status end = gpu_->EndCapture();
    APPS_RETURN_IF_ERROR(status);
    return end;
  }

  absl::StatusOr<std::vector<float>> Run(const std::vector<float>& images) {
    APPS_RETURN_IF_ERROR(network_->WriteInput(images));
    APPS_RETURN_IF_ERROR(Pass());
    return network_->ReadOutput();
  }

  absl::StatusOr<apps::BenchResult> Bench() {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < kWarmupPasses; ++i) APPS_RETURN_IF_ERROR(Pass());
    APPS_RETURN_IF_ERROR(gpu_->Synchronize());
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < options_.bench; ++i) {
      APPS_RETURN_IF_ERROR(gpu_->StartTimer(i));
      APPS_RETURN_IF_ERROR(Pass());
      APPS_RETURN_IF_ERROR(gpu_->StopTimer(i));
    }
    APPS_RETURN_IF_ERROR(gpu_->Synchronize());
    const std::chrono::duration<double, std::micro> wall = Clock::now() - start;
    std::vector<double> times;
    for (int i = 0; i < options_.bench; ++i) {
      absl::StatusOr<float> milliseconds = gpu_->Milliseconds(i);
      if (!milliseconds.ok()) return milliseconds.status();
      times.push_back(1000.0 * *milliseconds);
    }
    return apps::SummarizeBench(std::move(times), wall.count());
  }

 private:
  absl::Status Pass() {
    const apps::StepRange range(options_.steps_range);
    return options_.graph ? gpu_->LaunchGraph() : network_->Enqueue();
  }

  const Options& options_;
  apps::Gpu* const gpu_;
  DeviceNetwork* const network_;
};

absl::StatusOr<Outcome> RunWith(const Options& options, apps::Gpu* gpu) {
  absl::StatusOr<CudnnApi> api = CudnnApi::Load();
  if (!api.ok()) return api.status();
  const std::vector<Block> blocks =
      SeededNetwork(options.network, options.seed);
  absl::StatusOr<std::unique_ptr<DeviceNetwork>> network =
      DeviceNetwork::Create(options, blocks, *api, gpu);
  if (!network.ok()) return network.status();
  Session session(options, gpu, network->get());
  APPS_RETURN_IF_ERROR(session.Prepare());

  Outcome outcome;
  outcome.device = gpu->Describe();
  outcome.cudnn_version = api->GetVersion();
  outcome.graph_nodes = gpu->graph_nodes();
  if (options.check) {
    outcome.check.emplace();
    if (options.tf32) outcome.check->tolerance = kTf32Tolerance;
  }
  for (int i = 0; i < options.images; ++i) {
    const std::vector<float> images = MakeImages(options, i);
    absl::StatusOr<std::vector<float>> output = session.Run(images);
    if (!output.ok()) return output.status();
    outcome.checksums.push_back(absl::StrFormat(
        "%016x", apps::Fnv1a(output->data(), output->size() * sizeof(float))));
    if (options.check) {
      Compare(*output, RunReference(options.network, blocks, images),
              &*outcome.check);
    }
  }
  if (options.bench > 0) {
    absl::StatusOr<apps::BenchResult> bench = session.Bench();
    if (!bench.ok()) return bench.status();
    outcome.bench = *bench;
  }
  return outcome;
}

void Print(const Options& options, const Outcome& outcome) {
  std::ostream& text = apps::TextStream(options.json_path);
  const NetworkConfig& network = options.network;
  text << absl::StreamFormat(
      "inception: %d blocks of %d channels, %dx%d, batch %d, on %s, cuDNN %d, "
      "%s\n",
      network.blocks, network.channels, network.size, network.size,
      network.batch, outcome.device, outcome.cudnn_version,
      options.graph ? "graph" : "stream");
  for (size_t i = 0; i < outcome.checksums.size(); ++i) {
    text << "output " << i << ": " << outcome.checksums[i] << "\n";
  }
  if (outcome.check) {
    text << absl::StreamFormat(
        "check: max error %.3g of the largest output (tolerance %.3g): %s\n",
        outcome.check->max_error, outcome.check->tolerance,
        outcome.check->ok() ? "ok" : "MISMATCH");
  }
  if (outcome.bench) text << apps::BenchText(*outcome.bench, "batches");
}

nlohmann::json ToJson(const Options& options, const Outcome& outcome) {
  const NetworkConfig& network = options.network;
  nlohmann::json json = {
      {"program", "inception"},
      {"device", outcome.device},
      {"cudnn", outcome.cudnn_version},
      {"network",
       {{"blocks", network.blocks},
        {"channels", network.channels},
        {"size", network.size},
        {"batch", network.batch}}},
      {"concat", options.concat == ConcatKind::kKernel ? "kernel" : "memcpy"},
      {"workspace",
       options.workspace == WorkspaceKind::kOwn ? "own" : "shared"},
      {"tf32", options.tf32},
      {"mode", options.graph ? "graph" : "stream"},
      {"checksums", outcome.checksums}};
  if (options.graph) json["graph_nodes"] = outcome.graph_nodes;
  if (outcome.check) {
    json["check"] = {{"ok", outcome.check->ok()},
                     {"max_error", outcome.check->max_error},
                     {"tolerance", outcome.check->tolerance}};
  }
  if (outcome.bench) json["bench"] = apps::BenchJson(*outcome.bench);
  return json;
}

}  // namespace

int Main(int argc, char** argv, const GpuFactory& create_gpu) {
  const std::string program = apps::ProgramName(argc, argv);
  const absl::StatusOr<Options> options =
      ParseOptions(apps::ProgramArguments(argc, argv));
  if (!options.ok()) {
    return apps::Fail(program, options.status(), apps::kExitUsage);
  }
  if (options->help) {
    std::cout << HelpText(program);
    return apps::kExitOk;
  }
  absl::StatusOr<std::unique_ptr<apps::Gpu>> gpu = create_gpu(*options);
  if (!gpu.ok()) {
    return apps::Fail(
        program,
        absl::Status(gpu.status().code(),
                     absl::StrCat("no usable GPU: ", gpu.status().message())),
        apps::kExitError);
  }
  absl::StatusOr<Outcome> outcome = RunWith(*options, gpu->get());
  if (!outcome.ok()) {
    return apps::Fail(program, outcome.status(), apps::kExitError);
  }
  Print(*options, *outcome);
  if (!options->json_path.empty()) {
    const absl::Status status =
        apps::WriteJson(options->json_path, ToJson(*options, *outcome));
    if (!status.ok()) return apps::Fail(program, status, apps::kExitError);
  }
  std::cout.flush();
  const bool mismatch = outcome->check && !outcome->check->ok();
  return mismatch ? apps::kExitMismatch : apps::kExitOk;
}

}  // namespace inception
