// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_INCEPTION_OPTIONS_H_
#define HEDDLE_BENCHMARKS_APPS_INCEPTION_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/apps/common/driver_api.h"
#include "benchmarks/apps/inception/network.h"

namespace inception {

enum class ConcatKind : uint8_t { kKernel, kMemcpy };
enum class WorkspaceKind : uint8_t { kOwn, kShared };

// The command line of inception and inception_cudart.
struct Options {
  NetworkConfig network;
  uint64_t seed = 1;
  int images = 4;

  bool graph = false;
  ConcatKind concat = ConcatKind::kKernel;
  WorkspaceKind workspace = WorkspaceKind::kOwn;
  bool tf32 = false;
  apps::LoadRoute load = apps::LoadRoute::kDlsym;  // of inception alone
  int device = 0;
  bool steps_range = false;

  bool check = false;
  int bench = 0;  // images to time; 0: none
  std::string json_path;
  bool help = false;
};

// `args` without the program's name. InvalidArgument names the option and what
// it takes.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args);

// The text of --help for a program called `program`.
std::string HelpText(absl::string_view program);

}  // namespace inception

#endif  // HEDDLE_BENCHMARKS_APPS_INCEPTION_OPTIONS_H_
