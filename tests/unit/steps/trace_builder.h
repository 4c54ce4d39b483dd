// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_STEPS_TRACE_BUILDER_H_
#define HEDDLE_TESTS_UNIT_STEPS_TRACE_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/writer.h"

namespace heddle::trace {

// Writes a small trace of a program that exists in a test only.
class TraceBuilder {
 public:
  TraceBuilder();
  ~TraceBuilder();
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  // Kernel with parameters of these sizes, packed with natural alignment.
  // Returns its id.
  uint32_t Kernel(const std::string& name, const std::vector<uint32_t>& sizes);

  // Each returns the index of its record.
  uint64_t Launch(uint32_t kernel, const std::vector<uint8_t>& params = {},
                  uint32_t grid = 1, bool capturing = false);
  uint64_t CopyToHost(bool async = false);
  uint64_t Wait();
  uint64_t Push(const std::string& name);
  uint64_t Pop();
  uint64_t Mark(fb::StepOp op, uint32_t index);
  uint64_t Snapshot(uint32_t id);
  uint64_t Graph(uint32_t id, const std::vector<uint32_t>& kernels,
                 const std::vector<uint8_t>& params = {});
  uint64_t Instantiate(uint64_t exec, uint32_t graph);
  uint64_t UpdateNode(uint64_t exec, uint32_t graph, uint32_t node,
                      uint32_t kernel, const std::vector<uint8_t>& params);
  uint64_t GraphLaunch(uint64_t exec, uint32_t graph);

  // Closes the file and reads it. Call once.
  std::unique_ptr<Reader> Read();

 private:
  fb::Stamp Now();
  template <typename T>
  uint64_t Add(const T& object);

  std::string path_;
  std::unique_ptr<Writer> writer_;
  uint64_t records_ = 0;
  uint32_t kernels_ = 0;
};

// The bytes of a value, to make parameters of.
template <typename... T>
std::vector<uint8_t> BytesOf(T... values) {
  std::vector<uint8_t> bytes((sizeof(T) + ... + 0));
  size_t at = 0;
  const auto store = [&](const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    at += sizeof(value);
  };
  (store(values), ...);
  return bytes;
}

}  // namespace heddle::trace

#endif  // HEDDLE_TESTS_UNIT_STEPS_TRACE_BUILDER_H_
