// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_COMMON_PROGRAM_H_
#define HEDDLE_BENCHMARKS_APPS_COMMON_PROGRAM_H_

// What the sample programs do alike around their work: exit codes, where text
// and JSON go, and how timings are summed up.

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace apps {

enum ExitCode : int {
  kExitOk = 0,
  kExitMismatch = 1,  // --check found a difference
  kExitUsage = 2,     // the options are wrong
  kExitError = 3,
};

// Times of `count` repetitions, in microseconds.
struct BenchResult {
  int count = 0;
  double median_us = 0;  // on the device, by events
  double min_us = 0;
  double max_us = 0;
  double wall_us = 0;  // on the host: all repetitions ÷ their number
};

// `device_us` is not empty. `wall_us` is that of all repetitions together.
BenchResult SummarizeBench(std::vector<double> device_us, double wall_us);

// "bench: 20 images, 123.4 us each (median ...". `what` names the repetitions.
std::string BenchText(const BenchResult& bench, absl::string_view what);
nlohmann::json BenchJson(const BenchResult& bench);

// Where text for people goes: standard output, unless JSON goes there.
std::ostream& TextStream(const std::string& json_path);

// Writes to a file, or to standard output if the path is "-".
absl::Status WriteJson(const std::string& path, const nlohmann::json& json);

// The last part of argv[0], and the rest of argv.
std::string ProgramName(int argc, char** argv);
std::vector<std::string> ProgramArguments(int argc, char** argv);

// Prints "program: message" to standard error; returns `code`.
int Fail(absl::string_view program, const absl::Status& status, ExitCode code);

}  // namespace apps

#endif  // HEDDLE_BENCHMARKS_APPS_COMMON_PROGRAM_H_
