// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_REPLAY_TEST_TRACE_H_
#define HEDDLE_TESTS_UNIT_REPLAY_TEST_TRACE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "heddle/trace.h"
#include "runtime/replay/program.h"
#include "runtime/trace/writer.h"

namespace heddle::replay {

// The trace of a program that exists in a test only. Its kernels come from
// one image.
class TestTrace {
 public:
  TestTrace();
  ~TestTrace();
  TestTrace(const TestTrace&) = delete;
  TestTrace& operator=(const TestTrace&) = delete;

  template <typename T>
  void Add(const T& object) {
    writer_->AppendObject(object);
  }
  trace::Hash128 Blob(const std::vector<uint8_t>& bytes) {
    return writer_->AppendBlob(bytes);
  }

  // The device and image that the kernels below belong to. Called again, the
  // image of another module of the same device.
  void Image(const std::vector<uint8_t>& bytes, fb::ImageKind kind,
             int compute_major, int compute_minor);
  uint32_t Kernel(const std::string& name, const std::vector<uint32_t>& sizes);
  void Alloc(uint64_t address, uint64_t size,
             fb::MemoryKind kind = fb::MemoryKind::kDevice,
             uint64_t stream = 0);
  void Free(uint64_t address, fb::MemoryKind kind = fb::MemoryKind::kDevice,
            uint64_t stream = 0);
  void Stream(uint64_t handle, uint32_t flags);
  void Event(fb::EventOp op, uint64_t event, uint64_t stream);
  void Sync(fb::SyncOp op, uint64_t handle = 0);

  fb::LaunchT LaunchOf(uint32_t kernel, uint64_t stream,
                       const std::vector<uint8_t>& params, uint32_t grid = 1);
  void Launch(uint32_t kernel, uint64_t stream,
              const std::vector<uint8_t>& params, uint32_t grid = 1) {
    Add(LaunchOf(kernel, stream, params, grid));
  }
  fb::MemcpyT CopyOf(fb::MemcpyKind kind, uint64_t dst, uint64_t src,
                     uint64_t bytes, uint64_t stream = 0);
  // A copy to the device whose bytes the trace holds.
  void CopyIn(uint64_t dst, const std::vector<uint8_t>& bytes,
              uint64_t stream = 0);
  void Fill(uint64_t dst, uint32_t value, uint64_t bytes, uint64_t stream = 0);

  void Begin(uint32_t step = 0) { Mark(fb::StepOp::kBegin, step); }
  void End(uint32_t step = 0) { Mark(fb::StepOp::kEnd, step); }

  struct Range {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;  // exact; empty: described or zero
    uint64_t size = 0;
    fb::FillKind fill = fb::FillKind::kExact;
    fb::ScalarType likely = fb::ScalarType::kF32;
    double mean = 0;
    double stddev = 1;
  };
  void Snapshot(fb::SnapshotWhen when, const std::vector<Range>& ranges,
                uint32_t step = 0);

  // Closes the file and reads it. Call once.
  std::unique_ptr<trace::Reader> Read();
  const std::string& path() const { return path_; }

 private:
  void Mark(fb::StepOp op, uint32_t step);
  std::unique_ptr<fb::Stamp> Now();

  std::string path_;
  std::unique_ptr<trace::Writer> writer_;
  uint64_t time_ns_ = 0;
  uint32_t modules_ = 0;
  uint32_t kernels_ = 0;
  uint32_t snapshots_ = 0;
};

// From the Step-begin mark of that index to its end.
StepBounds BoundsOf(const trace::Reader& reader, uint32_t step = 0);

// The bytes of values, to make parameters and memory of.
template <typename... T>
std::vector<uint8_t> Pack(T... values) {
  std::vector<uint8_t> bytes((sizeof(values) + ...));
  size_t at = 0;
  const auto add = [&](const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    at += sizeof(value);
  };
  (add(values), ...);
  return bytes;
}

template <typename T>
std::vector<uint8_t> PackVector(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace heddle::replay

#endif  // HEDDLE_TESTS_UNIT_REPLAY_TEST_TRACE_H_
