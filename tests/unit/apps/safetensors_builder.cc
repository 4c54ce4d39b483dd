// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/apps/safetensors_builder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "nlohmann/json.hpp"

namespace decode {

std::string SafetensorsBytes(const std::string& header,
                             const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>((header.size() >> (8 * i)) & 0xff));
  }
  return bytes + header + data;
}

std::string CheckpointBytes(const ModelConfig& config, ModelWeights weights) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const NamedTensor& named : NameTensors(config, &weights)) {
    const std::vector<float>& values = named.tensor->data;
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()),
                values.size() * sizeof(float));
    header[named.name] = {
        {"dtype", "F32"},
        {"shape", named.rows == 1 ? nlohmann::json{named.cols}
                                  : nlohmann::json{named.rows, named.cols}},
        {"data_offsets", {begin, data.size()}}};
  }
  return SafetensorsBytes(header.dump(), data);
}

TemporaryFile::TemporaryFile(const std::string& bytes)
    : path_(testing::TempDir() + "decode_XXXXXX") {
  const int fd = mkstemp(path_.data());
  EXPECT_GE(fd, 0) << path_;
  if (fd >= 0) close(fd);
  std::ofstream(path_, std::ios::binary) << bytes;
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

}  // namespace decode
