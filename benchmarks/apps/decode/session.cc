// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/decode/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/apps/common/status_macros.h"
#include "benchmarks/apps/common/step_range.h"

namespace decode {
namespace {

constexpr int kWarmupSteps = 3;

}  // namespace

void CompareLogits(const std::vector<float>& device,
                   const std::vector<float>& reference, int32_t chosen,
                   CheckResult* check) {
  double scale = 0;
  for (const float value : reference) {
    scale = std::max(scale, std::abs(static_cast<double>(value)));
  }
  scale = std::max(scale, 1e-30);
  for (size_t i = 0; i < reference.size(); ++i) {
    double error = std::abs(static_cast<double>(device[i]) - reference[i]);
    error /= scale;
    // A NaN compares false with everything, so it is asked for.
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    check->max_error = std::max(check->max_error, error);
  }
  const float best = *std::max_element(reference.begin(), reference.end());
  const bool in_range =
      chosen >= 0 && static_cast<size_t>(chosen) < reference.size();
  // Near ties may fall either way.
  if (!in_range || best - reference[chosen] > 2 * check->tolerance * scale) {
    ++check->wrong_tokens;
  }
  ++check->steps;
}

absl::Status Session::Prepare() {
  if (!options_.graph) return absl::OkStatus();
  APPS_RETURN_IF_ERROR(decoder_->Reset(options_.prompt));
  if (options_.gemm == GemmKind::kCublas) {
    // cuBLAS picks its kernels, and loads them, at the first call.
    APPS_RETURN_IF_ERROR(decoder_->EnqueueStep());
    APPS_RETURN_IF_ERROR(gpu_->Synchronize());
  }
  APPS_RETURN_IF_ERROR(gpu_->BeginCapture());
  absl::Status status = decoder_->EnqueueStep();
  absl::Status end = gpu_->EndCapture();
  APPS_RETURN_IF_ERROR(status);
  return end;
}

absl::Status Session::Step() {
  const apps::StepRange range(options_.steps_range);
  if (options_.graph) return gpu_->LaunchGraph();
  return decoder_->EnqueueStep();
}

absl::Status Session::CompareStep(Reference* reference, int position,
                                  CheckResult* check) {
  absl::StatusOr<std::vector<float>> logits = decoder_->ReadLogits();
  if (!logits.ok()) return logits.status();
  absl::StatusOr<std::vector<int32_t>> tokens =
      decoder_->ReadTokens(position + 2);
  if (!tokens.ok()) return tokens.status();
  const int32_t input = (*tokens)[position];
  const int32_t next = (*tokens)[position + 1];
  const std::vector<float> expected = reference->Forward(input);
  // Within the prompt the next token is given, not chosen.
  const bool given = position + 1 < static_cast<int>(options_.prompt.size());
  const auto best = std::max_element(expected.begin(), expected.end());
  CompareLogits(*logits, expected,
                given ? static_cast<int32_t>(best - expected.begin()) : next,
                check);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Session::Generate(Reference* reference,
                                                       CheckResult* check) {
  APPS_RETURN_IF_ERROR(decoder_->Reset(options_.prompt));
  const int length = static_cast<int>(options_.prompt.size()) + options_.tokens;
  for (int position = 0; position + 1 < length; ++position) {
    APPS_RETURN_IF_ERROR(Step());
    if (options_.stream_tokens) {
      absl::StatusOr<DecodeState> state = decoder_->ReadState();
      if (!state.ok()) return state.status();
      if (state->position != position + 1) {
        return absl::InternalError(absl::StrCat("after step ", position,
                                                " the device is at position ",
                                                state->position));
      }
    }
    if (reference != nullptr) {
      APPS_RETURN_IF_ERROR(CompareStep(reference, position, check));
    }
  }
  return decoder_->ReadTokens(length);
}

absl::StatusOr<apps::BenchResult> Session::Bench() {
  using Clock = std::chrono::steady_clock;
  const int capacity = options_.model.max_seq - 1;
  APPS_RETURN_IF_ERROR(decoder_->Reset(options_.prompt));
  for (int i = 0; i < std::min(kWarmupSteps, capacity); ++i) {
    APPS_RETURN_IF_ERROR(Step());
  }
  APPS_RETURN_IF_ERROR(decoder_->Reset(options_.prompt));
  Clock::duration wall{};
  for (int i = 0; i < options_.bench;) {
    // A run of steps without a break, then the clock stands while the sequence
    // starts anew.
    const int run = std::min(capacity, options_.bench - i);
    const Clock::time_point start = Clock::now();
    for (int j = 0; j < run; ++j) {
      APPS_RETURN_IF_ERROR(gpu_->StartTimer(i + j));
      APPS_RETURN_IF_ERROR(Step());
      APPS_RETURN_IF_ERROR(gpu_->StopTimer(i + j));
      if (options_.stream_tokens) {
        absl::StatusOr<DecodeState> state = decoder_->ReadState();
        if (!state.ok()) return state.status();
      }
    }
    APPS_RETURN_IF_ERROR(gpu_->Synchronize());
    wall += Clock::now() - start;
    i += run;
    APPS_RETURN_IF_ERROR(decoder_->Reset(options_.prompt));
  }
  std::vector<double> times;
  for (int i = 0; i < options_.bench; ++i) {
    absl::StatusOr<float> milliseconds = gpu_->Milliseconds(i);
    if (!milliseconds.ok()) return milliseconds.status();
    times.push_back(1000.0 * *milliseconds);
  }
  return apps::SummarizeBench(
      std::move(times),
      std::chrono::duration<double, std::micro>(wall).count());
}

}  // namespace decode
