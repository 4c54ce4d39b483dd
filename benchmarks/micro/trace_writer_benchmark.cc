// SPDX-License-Identifier: Apache-2.0

// What a record costs the program that is recorded: appends of 160 bytes, the
// size of a launch with ten parameters, by one thread and by several.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {
namespace {

constexpr size_t kPayloadBytes = 160;
// Each run starts a new file before the disk is full.
constexpr int64_t kIterations = 1'000'000;

std::unique_ptr<Writer> writer;

std::string Path() {
  const char* folder = std::getenv("HEDDLE_BENCHMARK_DIR");
  return (folder != nullptr ? std::filesystem::path(folder)
                            : std::filesystem::temp_directory_path()) /
         ("heddle-benchmark-" + std::to_string(getpid()) + ".htrace");
}

void Open(const benchmark::State&) {
  absl::StatusOr<std::unique_ptr<Writer>> created = Writer::Create(Path(), {});
  if (!created.ok()) {
    std::fprintf(stderr, "%s\n", created.status().ToString().c_str());
    std::exit(1);
  }
  writer = *std::move(created);
}

void Close(const benchmark::State&) {
  writer->Close().IgnoreError();
  writer.reset();
  std::filesystem::remove(Path());
}

void Append(benchmark::State& state) {
  std::array<uint8_t, kPayloadBytes> payload{};
  uint64_t number = 0;
  while (state.KeepRunning()) {
    std::memcpy(payload.data() + 64, &++number, sizeof(number));
    if (!writer->Append(fb::RecordType::kLaunch, payload)) {
      state.SkipWithError(writer->error().ToString().c_str());
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

// As the recorder does it: the payload is written in place from a template.
void ReserveAndCommit(benchmark::State& state) {
  std::array<uint8_t, kPayloadBytes> payload{};
  uint64_t number = 0;
  while (state.KeepRunning()) {
    uint8_t* to = writer->Reserve(kPayloadBytes);
    if (to == nullptr) {
      state.SkipWithError(writer->error().ToString().c_str());
      break;
    }
    std::memcpy(to, payload.data(), kPayloadBytes);
    std::memcpy(to + 64, &++number, sizeof(number));
    writer->Commit(to, fb::RecordType::kLaunch, kPayloadBytes);
  }
  state.SetItemsProcessed(state.iterations());
}

// What a program does between two records; the same number of instructions each
// time.
void Pace() {
  for (int i = 0; i < 400; ++i) benchmark::DoNotOptimize(i);
}

// As programs do it: a launch now and then. Nothing that the writer does ahead
// in its own thread is in the CPU time; take that of PaceAlone off.
void PacedAppend(benchmark::State& state) {
  std::array<uint8_t, kPayloadBytes> payload{};
  uint64_t number = 0;
  while (state.KeepRunning()) {
    Pace();
    std::memcpy(payload.data() + 64, &++number, sizeof(number));
    if (!writer->Append(fb::RecordType::kLaunch, payload)) {
      state.SkipWithError(writer->error().ToString().c_str());
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void PaceAlone(benchmark::State& state) {
  while (state.KeepRunning()) Pace();
}

BENCHMARK(PaceAlone)->Iterations(kIterations)->Threads(1)->UseRealTime();
BENCHMARK(PacedAppend)
    ->Setup(Open)
    ->Teardown(Close)
    ->Iterations(kIterations)
    ->Threads(1)
    ->Threads(8)
    ->UseRealTime();
BENCHMARK(Append)
    ->Setup(Open)
    ->Teardown(Close)
    ->Iterations(kIterations)
    ->Threads(1)
    ->Threads(2)
    ->Threads(8)
    ->UseRealTime();
BENCHMARK(ReserveAndCommit)
    ->Setup(Open)
    ->Teardown(Close)
    ->Iterations(kIterations)
    ->Threads(1)
    ->Threads(8)
    ->UseRealTime();

}  // namespace
}  // namespace heddle::trace

BENCHMARK_MAIN();
