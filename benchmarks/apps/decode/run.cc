// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/run.h"

#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/apps/common/program.h"
#include "benchmarks/apps/decode/cublas.h"
#include "benchmarks/apps/decode/decoder.h"
#include "benchmarks/apps/decode/reference.h"
#include "benchmarks/apps/decode/session.h"
#include "benchmarks/apps/decode/weights.h"
#include "nlohmann/json.hpp"

namespace decode {
namespace {

// Share of the largest logit. Both sides use the same weights; what differs is
// the order of fp32 sums, and bfloat16 rounding of inputs that lie on an edge
// when cuBLAS multiplies bfloat16.
constexpr double kTolerance = 2e-4;
constexpr double kRoundedTolerance = 3e-2;

bool RoundsInputs(const Options& options) {
  return options.gemm == GemmKind::kCublas && options.dtype == DataType::kBf16;
}

absl::StatusOr<ModelWeights> LoadWeights(Options* options) {
  if (options->weights_path.empty()) {
    return SeededWeights(options->model, options->seed);
  }
  if (!options->heads_given) {
    return absl::InvalidArgumentError(
        "--weights needs --heads: a checkpoint does not say how many there "
        "are; it is num_attention_heads in its config.json");
  }
  absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(options->weights_path);
  if (!file.ok()) return file.status();
  absl::Status status = InferConfig(*file, &options->model);
  if (!status.ok()) return status;
  return ReadWeights(*file, options->model);
}

struct Outcome {
  std::vector<int32_t> tokens;
  std::optional<CheckResult> check;
  std::optional<apps::BenchResult> bench;
  size_t graph_nodes = 0;
  std::string device;
};

nlohmann::json ToJson(const Options& options, const Outcome& outcome) {
  const ModelConfig& model = options.model;
  nlohmann::json json = {
      {"program", "decode"},
      {"device", outcome.device},
      {"model",
       {{"layers", model.layers},
        {"hidden", model.hidden},
        {"heads", model.heads},
        {"kv_heads", model.kv_heads},
        {"head_dim", model.head_dim},
        {"intermediate", model.intermediate},
        {"vocab", model.vocab},
        {"max_seq", model.max_seq}}},
      {"dtype", options.dtype == DataType::kF32 ? "f32" : "bf16"},
      {"gemm", options.gemm == GemmKind::kOwn ? "own" : "cublas"},
      {"mode", options.graph ? "graph" : "stream"},
      {"prompt_length", options.prompt.size()},
      {"tokens", outcome.tokens}};
  if (options.graph) json["graph_nodes"] = outcome.graph_nodes;
  if (outcome.check) {
    json["check"] = {{"ok", outcome.check->ok()},
                     {"steps", outcome.check->steps},
                     {"max_error", outcome.check->max_error},
                     {"tolerance", outcome.check->tolerance},
                     {"wrong_tokens", outcome.check->wrong_tokens}};
  }
  if (outcome.bench) {
    json["bench"] = apps::BenchJson(*outcome.bench);
  }
  return json;
}

void Print(const Options& options, const Outcome& outcome) {
  std::ostream& text = apps::TextStream(options.json_path);
  const auto first = outcome.tokens.begin();
  const auto split = first + static_cast<std::ptrdiff_t>(options.prompt.size());
  text << "tokens: " << absl::StrJoin(first, split, " ") << " | "
       << absl::StrJoin(split, outcome.tokens.end(), " ") << "\n";
  if (outcome.check) {
    const CheckResult& check = *outcome.check;
    text << absl::StreamFormat(
        "check: %d steps, max error %.3g of the largest logit (tolerance "
        "%.3g), %d wrong tokens: %s\n",
        check.steps, check.max_error, check.tolerance, check.wrong_tokens,
        check.ok() ? "ok" : "MISMATCH");
  }
  if (outcome.bench) {
    text << apps::BenchText(*outcome.bench, "tokens");
  }
}

absl::StatusOr<Outcome> RunWith(Options* options, const Device& device) {
  apps::Gpu* const gpu = device.gpu.get();
  absl::StatusOr<ModelWeights> weights = LoadWeights(options);
  if (!weights.ok()) return weights.status();
  RoundWeights(options->dtype, &*weights);
  std::unique_ptr<Cublas> cublas;
  if (options->gemm == GemmKind::kCublas) {
    absl::StatusOr<std::unique_ptr<Cublas>> created = Cublas::Create(gpu);
    if (!created.ok()) return created.status();
    cublas = *std::move(created);
  }
  absl::StatusOr<std::unique_ptr<Decoder>> decoder =
      Decoder::Create(options->model, *weights, options->dtype, gpu,
                      device.launcher.get(), cublas.get());
  if (!decoder.ok()) return decoder.status();

  Outcome outcome;
  outcome.device = gpu->Describe();
  apps::TextStream(options->json_path) << absl::StreamFormat(
      "decode: %d layers, hidden %d, vocab %d, %.1f M parameters (%s) on %s, "
      "%s\n",
      options->model.layers, options->model.hidden, options->model.vocab,
      static_cast<double>(weights->parameters()) / 1e6,
      options->dtype == DataType::kF32 ? "f32" : "bf16", outcome.device,
      options->graph ? "graph" : "stream");

  Session session(*options, gpu, decoder->get());
  absl::Status status = session.Prepare();
  if (!status.ok()) return status;
  outcome.graph_nodes = gpu->graph_nodes();

  std::optional<Reference> reference;
  if (options->check) {
    reference.emplace(options->model, *weights, RoundsInputs(*options));
    outcome.check.emplace();
    outcome.check->tolerance =
        RoundsInputs(*options) ? kRoundedTolerance : kTolerance;
  }
  absl::StatusOr<std::vector<int32_t>> tokens =
      session.Generate(options->check ? &*reference : nullptr,
                       options->check ? &*outcome.check : nullptr);
  if (!tokens.ok()) return tokens.status();
  outcome.tokens = *std::move(tokens);
  if (options->bench > 0) {
    absl::StatusOr<apps::BenchResult> bench = session.Bench();
    if (!bench.ok()) return bench.status();
    outcome.bench = *bench;
  }
  return outcome;
}

}  // namespace

int Main(int argc, char** argv, const DeviceFactory& create_device) {
  const std::string program = apps::ProgramName(argc, argv);
  absl::StatusOr<Options> options =
      ParseOptions(apps::ProgramArguments(argc, argv));
  if (!options.ok()) {
    return apps::Fail(program, options.status(), apps::kExitUsage);
  }
  if (options->help) {
    std::cout << HelpText(program);
    return apps::kExitOk;
  }
  absl::StatusOr<Device> device = create_device(*options);
  if (!device.ok()) {
    return apps::Fail(program, device.status(), apps::kExitError);
  }
  absl::StatusOr<Outcome> outcome = RunWith(&*options, *device);
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

}  // namespace decode
