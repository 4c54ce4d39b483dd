// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/apps/common/program.h"

#include <algorithm>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace apps {

BenchResult SummarizeBench(std::vector<double> device_us, double wall_us) {
  std::sort(device_us.begin(), device_us.end());
  BenchResult result;
  result.count = static_cast<int>(device_us.size());
  result.median_us = device_us[device_us.size() / 2];
  result.min_us = device_us.front();
  result.max_us = device_us.back();
  result.wall_us = wall_us / result.count;
  return result;
}

std::string BenchText(const BenchResult& bench, absl::string_view what) {
  return absl::StrFormat(
      "bench: %d %s, %.1f us each (median on the device; %.1f to %.1f), %.1f "
      "us on the host\n",
      bench.count, what, bench.median_us, bench.min_us, bench.max_us,
      bench.wall_us);
}

nlohmann::json BenchJson(const BenchResult& bench) {
  return {{"count", bench.count},
          {"median_us", bench.median_us},
          {"min_us", bench.min_us},
          {"max_us", bench.max_us},
          {"wall_us", bench.wall_us}};
}

std::ostream& TextStream(const std::string& json_path) {
  return json_path == "-" ? std::cerr : std::cout;
}

absl::Status WriteJson(const std::string& path, const nlohmann::json& json) {
  const std::string text = json.dump(2) + "\n";
  if (path == "-") {
    std::cout << text << std::flush;
    return absl::OkStatus();
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat("--json: cannot write ", path));
  }
  return absl::OkStatus();
}

std::string ProgramName(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "program";
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> ProgramArguments(int argc, char** argv) {
  return std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc);
}

int Fail(absl::string_view program, const absl::Status& status, ExitCode code) {
  std::cout.flush();
  std::cerr << program << ": " << status.message() << "\n";
  return code;
}

}  // namespace apps
