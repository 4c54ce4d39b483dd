// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_DECODE_OPTIONS_H_
#define HEDDLE_BENCHMARKS_APPS_DECODE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "benchmarks/apps/decode/model.h"

namespace decode {

enum class GemmKind : uint8_t { kOwn, kCublas };

// The command line of decode and decode_cudart.
struct Options {
  ModelConfig model;
  DataType dtype = DataType::kF32;
  std::string weights_path;  // empty: seeded weights
  bool heads_given = false;  // --heads, which a checkpoint does not hold
  uint64_t seed = 1;
  std::vector<int32_t> prompt = {1};
  int tokens = 16;

  bool graph = false;
  GemmKind gemm = GemmKind::kOwn;
  std::string load = "direct";   // "direct", "dlsym" or "procaddress"
  std::string image = "fatbin";  // "fatbin" or "cubin"
  int device = 0;
  bool stream_tokens = false;
  bool steps_range = false;

  bool check = false;
  int bench = 0;  // tokens to time; 0: none
  std::string json_path;
  bool help = false;
};

// `args` without the program's name. InvalidArgument names the option and what
// it takes.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args);

// The text of --help for a program called `program`.
std::string HelpText(absl::string_view program);

}  // namespace decode

#endif  // HEDDLE_BENCHMARKS_APPS_DECODE_OPTIONS_H_
