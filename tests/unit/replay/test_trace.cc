// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/replay/test_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace heddle::replay {

TestTrace::TestTrace() {
  static std::atomic<int> number = 0;
  path_ = testing::TempDir() + "replay_" + std::to_string(getpid()) + "_" +
          std::to_string(number++) + ".htrace";
  trace::WriterOptions options;
  options.chunk_bytes = 1 << 20;
  auto writer = trace::Writer::Create(path_, options);
  EXPECT_TRUE(writer.ok()) << writer.status();
  writer_ = *std::move(writer);
  fb::ContextT context;
  context.id = 1;
  Add(context);
}

TestTrace::~TestTrace() { std::remove(path_.c_str()); }

std::unique_ptr<fb::Stamp> TestTrace::Now() {
  return std::make_unique<fb::Stamp>(time_ns_ += 1000, 0, 1);
}

void TestTrace::Image(const std::vector<uint8_t>& bytes, fb::ImageKind kind,
                      int compute_major, int compute_minor) {
  if (modules_++ == 0) {
    fb::DeviceT device;
    device.name = "test device";
    device.compute_major = compute_major;
    device.compute_minor = compute_minor;
    Add(device);
  }
  const trace::Hash128 hash = Blob(bytes);
  fb::ImageT image;
  image.id = modules_;
  image.kind = kind;
  image.hash = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  image.size = bytes.size();
  image.stored = true;
  Add(image);
  fb::ModuleT module;
  module.stamp = Now();
  module.id = modules_;
  module.image = modules_;
  Add(module);
}

uint32_t TestTrace::Kernel(const std::string& name,
                           const std::vector<uint32_t>& sizes) {
  fb::KernelT kernel;
  kernel.id = ++kernels_;
  kernel.name = name;
  kernel.module_id = modules_;
  uint32_t end = 0;
  for (const uint32_t size : sizes) {
    end = (end + size - 1) / size * size;
    kernel.params.emplace_back(end, size);
    end += size;
  }
  kernel.param_bytes = end;
  Add(kernel);
  return kernels_;
}

void TestTrace::Alloc(uint64_t address, uint64_t size, fb::MemoryKind kind,
                      uint64_t stream) {
  fb::AllocT alloc;
  alloc.stamp = Now();
  alloc.address = address;
  alloc.size = size;
  alloc.kind = kind;
  alloc.stream = stream;
  Add(alloc);
}

void TestTrace::Free(uint64_t address, fb::MemoryKind kind, uint64_t stream) {
  fb::FreeT free;
  free.stamp = Now();
  free.address = address;
  free.kind = kind;
  free.stream = stream;
  Add(free);
}

void TestTrace::Stream(uint64_t handle, uint32_t flags) {
  fb::StreamT stream;
  stream.stamp = Now();
  stream.handle = handle;
  stream.flags = flags;
  Add(stream);
}

void TestTrace::Event(fb::EventOp op, uint64_t event, uint64_t stream) {
  fb::EventT record;
  record.stamp = Now();
  record.op = op;
  record.handle = event;
  record.stream = stream;
  Add(record);
}

void TestTrace::Sync(fb::SyncOp op, uint64_t handle) {
  fb::SyncT sync;
  sync.stamp = Now();
  sync.op = op;
  sync.handle = handle;
  Add(sync);
}

fb::LaunchT TestTrace::LaunchOf(uint32_t kernel, uint64_t stream,
                                const std::vector<uint8_t>& params,
                                uint32_t grid) {
  fb::LaunchT launch;
  launch.head = std::make_unique<fb::LaunchHead>(
      *Now(), stream, kernel, fb::Dim3(grid, 1, 1), fb::Dim3(32, 1, 1), 0);
  launch.params = params;
  return launch;
}

fb::MemcpyT TestTrace::CopyOf(fb::MemcpyKind kind, uint64_t dst, uint64_t src,
                              uint64_t bytes, uint64_t stream) {
  fb::MemcpyT copy;
  copy.stamp = Now();
  copy.stream = stream;
  copy.kind = kind;
  copy.dst = dst;
  copy.src = src;
  copy.width = bytes;
  copy.async = true;
  return copy;
}

void TestTrace::CopyIn(uint64_t dst, const std::vector<uint8_t>& bytes,
                       uint64_t stream) {
  fb::MemcpyT copy =
      CopyOf(fb::MemcpyKind::kHtoD, dst, 0x1000, bytes.size(), stream);
  const trace::Hash128 hash = Blob(bytes);
  copy.data = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
  Add(copy);
}

void TestTrace::Fill(uint64_t dst, uint32_t value, uint64_t bytes,
                     uint64_t stream) {
  fb::MemsetT fill;
  fill.stamp = Now();
  fill.stream = stream;
  fill.dst = dst;
  fill.value = value;
  fill.element_size = 1;
  fill.width = bytes;
  Add(fill);
}

void TestTrace::Mark(fb::StepOp op, uint32_t step) {
  fb::StepT mark;
  mark.stamp = Now();
  mark.op = op;
  mark.index = step;
  Add(mark);
}

void TestTrace::Snapshot(fb::SnapshotWhen when,
                         const std::vector<Range>& ranges, uint32_t step) {
  fb::SnapshotT snapshot;
  snapshot.stamp = Now();
  snapshot.id = ++snapshots_;
  snapshot.when = when;
  snapshot.step = step;
  snapshot.policy = "small";
  snapshot.ranges = static_cast<uint32_t>(ranges.size());
  Add(snapshot);
  for (const Range& range : ranges) {
    fb::MemoryRangeT record;
    record.snapshot = snapshots_;
    record.address = range.address;
    record.size = range.bytes.empty() ? range.size : range.bytes.size();
    record.fill = range.fill;
    record.likely = range.likely;
    record.mean = range.mean;
    record.stddev = range.stddev;
    if (range.fill == fb::FillKind::kExact) {
      const trace::Hash128 hash = Blob(range.bytes);
      record.hash = std::make_unique<fb::Hash128>(hash.lo, hash.hi);
    }
    Add(record);
  }
}

std::unique_ptr<trace::Reader> TestTrace::Read() {
  EXPECT_TRUE(writer_->Close().ok());
  auto reader = trace::Reader::Open(path_);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

StepBounds BoundsOf(const trace::Reader& reader, uint32_t step) {
  StepBounds bounds;
  for (const trace::Record& record : reader.records()) {
    const auto* mark = record.As<fb::Step>();
    if (mark == nullptr || mark->index() != step) continue;
    if (mark->op() == fb::StepOp::kBegin) bounds.first_record = record.index;
    if (mark->op() == fb::StepOp::kEnd) bounds.end_record = record.index + 1;
  }
  return bounds;
}

}  // namespace heddle::replay
