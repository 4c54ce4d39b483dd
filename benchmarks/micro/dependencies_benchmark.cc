// SPDX-License-Identifier: Apache-2.0
//
// How long it takes to find the dependencies of a step, by its number of
// launches: synthetic decode programs, one token after another.

#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/plan/critical_path.h"
#include "runtime/plan/dependencies.h"
#include "tests/unit/plan/synthetic_effects.h"

namespace heddle::plan {
namespace {

void Build(benchmark::State& state, const DecodeShape& shape) {
  const std::vector<Effects> operations =
      SyntheticDecode(shape, static_cast<uint32_t>(state.range(0)));
  Dependencies built;
  while (state.KeepRunning()) {
    built = BuildDependencies(operations);
    benchmark::DoNotOptimize(built);
  }
  const auto launches = static_cast<double>(state.range(0));
  state.counters["edges"] = static_cast<double>(built.edges.size());
  state.counters["steps/launch"] = static_cast<double>(built.work) / launches;
  state.SetComplexityN(state.range(0));
}

void Decode(benchmark::State& state) { Build(state, {}); }

// 1 launch in 50 may touch anything.
void DecodeWithUnknown(benchmark::State& state) {
  Build(state, {.unknown_one_in = 50});
}

// 1 launch in 3 reads 2 GiB, 1 in 1,000 writes 10,000 pieces of a buffer.
void DecodeWithArenas(benchmark::State& state) {
  Build(state, {.read_all_one_in = 3, .scattered_one_in = 1000});
}

// 1 launch in 4 is ordered with nothing.
void DecodeWithIndependent(benchmark::State& state) {
  Build(state, {.independent_one_in = 4});
}

void CriticalPathOfDecode(benchmark::State& state) {
  const std::vector<Effects> operations =
      SyntheticDecode({}, static_cast<uint32_t>(state.range(0)));
  const auto pairs = BuildDependencies(operations).Pairs();
  const std::vector<double> durations(operations.size(), 1);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(FindCriticalPath(durations, pairs));
    benchmark::DoNotOptimize(ProfileParallelism(durations, pairs));
  }
  state.SetComplexityN(state.range(0));
}

#define HEDDLE_LAUNCHES(name)         \
  BENCHMARK(name)                     \
      ->Arg(1000)                     \
      ->Arg(10000)                    \
      ->Arg(100000)                   \
      ->Unit(benchmark::kMillisecond) \
      ->Complexity(benchmark::oNLogN)
HEDDLE_LAUNCHES(Decode);
HEDDLE_LAUNCHES(DecodeWithUnknown);
HEDDLE_LAUNCHES(DecodeWithArenas);
HEDDLE_LAUNCHES(DecodeWithIndependent);
HEDDLE_LAUNCHES(CriticalPathOfDecode);

}  // namespace
}  // namespace heddle::plan

BENCHMARK_MAIN();
