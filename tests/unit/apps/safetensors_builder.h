// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_APPS_SAFETENSORS_BUILDER_H_
#define HEDDLE_TESTS_UNIT_APPS_SAFETENSORS_BUILDER_H_

// Builds safetensors files for tests, good ones and, by way of a hand-written
// header, bad ones.

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/apps/decode/model.h"

namespace decode {

// A file of this header and this data, whatever they say.
std::string SafetensorsBytes(const std::string& header,
                             const std::string& data);

// A checkpoint with every tensor of the model, stored as F32.
std::string CheckpointBytes(const ModelConfig& config, ModelWeights weights);

// A file in the test's temporary folder, removed at the end of scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace decode

#endif  // HEDDLE_TESTS_UNIT_APPS_SAFETENSORS_BUILDER_H_
