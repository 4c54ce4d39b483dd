// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/steps/trace_builder.h"

#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace heddle::trace {
namespace {

std::unique_ptr<fb::LaunchT> MakeLaunch(uint32_t kernel,
                                        const std::vector<uint8_t>& params,
                                        uint32_t grid, const fb::Stamp& stamp) {
  auto launch = std::make_unique<fb::LaunchT>();
  launch->head = std::make_unique<fb::LaunchHead>(
      stamp, 0, kernel, fb::Dim3(grid, 1, 1), fb::Dim3(128, 1, 1), 0);
  launch->params = params;
  return launch;
}

std::unique_ptr<fb::Stamp> Own(const fb::Stamp& stamp) {
  return std::make_unique<fb::Stamp>(stamp);
}

}  // namespace

TraceBuilder::TraceBuilder() {
  static int count = 0;
  path_ = testing::TempDir() + "/steps-" + std::to_string(getpid()) + "-" +
          std::to_string(count++) + ".htrace";
  WriterOptions options;
  options.chunk_bytes = 1 << 20;
  auto writer = Writer::Create(path_, options);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  writer_ = *std::move(writer);
}

TraceBuilder::~TraceBuilder() { unlink(path_.c_str()); }

fb::Stamp TraceBuilder::Now() { return fb::Stamp(records_ * 1000, 0, 1); }

template <typename T>
uint64_t TraceBuilder::Add(const T& object) {
  EXPECT_TRUE(writer_->AppendObject(object));
  return records_++;
}

uint32_t TraceBuilder::Kernel(const std::string& name,
                              const std::vector<uint32_t>& sizes) {
  fb::KernelT kernel;
  kernel.id = ++kernels_;
  kernel.name = name;
  uint32_t offset = 0;
  for (const uint32_t size : sizes) {
    const uint32_t alignment = size >= 8 ? 8 : size;
    offset = (offset + alignment - 1) / alignment * alignment;
    kernel.params.emplace_back(offset, size);
    offset += size;
  }
  kernel.param_bytes = offset;
  Add(kernel);
  return kernel.id;
}

uint64_t TraceBuilder::Launch(uint32_t kernel,
                              const std::vector<uint8_t>& params, uint32_t grid,
                              bool capturing) {
  auto launch = MakeLaunch(kernel, params, grid, Now());
  launch->capturing = capturing;
  return Add(*launch);
}

uint64_t TraceBuilder::CopyToHost(bool async) {
  fb::MemcpyT copy;
  copy.stamp = Own(Now());
  copy.kind = fb::MemcpyKind::kDtoH;
  copy.width = 4;
  copy.async = async;
  return Add(copy);
}

uint64_t TraceBuilder::Wait() {
  fb::SyncT sync;
  sync.stamp = Own(Now());
  sync.op = fb::SyncOp::kStream;
  return Add(sync);
}

uint64_t TraceBuilder::Push(const std::string& name) {
  fb::RangeT range;
  range.stamp = Own(Now());
  range.op = fb::RangeOp::kPush;
  range.name = name;
  return Add(range);
}

uint64_t TraceBuilder::Pop() {
  fb::RangeT range;
  range.stamp = Own(Now());
  range.op = fb::RangeOp::kPop;
  return Add(range);
}

uint64_t TraceBuilder::Mark(fb::StepOp op, uint32_t index) {
  fb::StepT step;
  step.stamp = Own(Now());
  step.op = op;
  step.index = index;
  return Add(step);
}

uint64_t TraceBuilder::Snapshot(uint32_t id) {
  fb::SnapshotT snapshot;
  snapshot.stamp = Own(Now());
  snapshot.id = id;
  return Add(snapshot);
}

uint64_t TraceBuilder::Graph(uint32_t id, const std::vector<uint32_t>& kernels,
                             const std::vector<uint8_t>& params) {
  fb::GraphT graph;
  graph.stamp = Own(Now());
  graph.id = id;
  for (const uint32_t kernel : kernels) {
    auto node = std::make_unique<fb::GraphNodeT>();
    node->launch = MakeLaunch(kernel, params, 1, Now());
    graph.nodes.push_back(std::move(node));
  }
  return Add(graph);
}

uint64_t TraceBuilder::Instantiate(uint64_t exec, uint32_t graph) {
  fb::GraphExecT event;
  event.stamp = Own(Now());
  event.op = fb::GraphExecOp::kInstantiate;
  event.handle = exec;
  event.graph = graph;
  return Add(event);
}

uint64_t TraceBuilder::UpdateNode(uint64_t exec, uint32_t graph, uint32_t node,
                                  uint32_t kernel,
                                  const std::vector<uint8_t>& params) {
  fb::GraphExecT event;
  event.stamp = Own(Now());
  event.op = fb::GraphExecOp::kNodeUpdate;
  event.handle = exec;
  event.graph = graph;
  event.node = node;
  event.update = std::make_unique<fb::GraphNodeT>();
  event.update->launch = MakeLaunch(kernel, params, 1, Now());
  return Add(event);
}

uint64_t TraceBuilder::GraphLaunch(uint64_t exec, uint32_t graph) {
  fb::GraphLaunchT launch;
  launch.stamp = Own(Now());
  launch.exec = exec;
  launch.graph = graph;
  return Add(launch);
}

std::unique_ptr<Reader> TraceBuilder::Read() {
  EXPECT_TRUE(writer_->Close().ok());
  auto reader = Reader::Open(path_);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *std::move(reader);
}

}  // namespace heddle::trace
