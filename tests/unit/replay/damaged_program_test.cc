// SPDX-License-Identifier: Apache-2.0
//
// Traces whose records are well-formed and say nonsense.

#include <cuda.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/replay/graph_book.h"
#include "runtime/replay/memory_image.h"
#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

// A little of everything that the program builder reads.
void WriteSample(TestTrace& trace) {
  trace.Image({1, 2, 3}, fb::ImageKind::kCubin, 9, 0);
  const uint32_t kernel = trace.Kernel("scale", {8, 4});
  const std::vector<uint8_t> params = Pack(kBase, uint32_t{3});
  trace.Stream(5, 1);
  trace.Alloc(kBase, 4096);
  trace.Alloc(kBase + 0x10000, 64, fb::MemoryKind::kHost);
  fb::GlobalT global;
  global.module_id = 1;
  global.name = "table";
  global.address = kBase + 0x100000;
  global.size = 64;
  trace.Add(global);
  trace.CopyIn(kBase + 0x100000, {1, 2, 3, 4});
  fb::GraphT graph;
  graph.id = 1;
  for (int i = 0; i < 3; ++i) {
    graph.nodes.push_back(std::make_unique<fb::GraphNodeT>());
    graph.nodes.back()->launch =
        std::make_unique<fb::LaunchT>(trace.LaunchOf(kernel, 0, params));
  }
  graph.edges.emplace_back(0, 1, 0, 0, 0, 0);
  graph.edges.emplace_back(1, 2, 1, 0, 1, 0);
  trace.Add(graph);
  fb::GraphExecT exec;
  exec.handle = 9;
  exec.graph = 1;
  trace.Add(exec);
  trace.Begin();
  TestTrace::Range described;
  described.address = kBase + 1024;
  described.size = 1024;
  described.fill = fb::FillKind::kDescribed;
  trace.Snapshot(fb::SnapshotWhen::kStepBegin,
                 {{kBase, std::vector<uint8_t>(1024, 7)}, described});
  trace.Launch(kernel, 5, params);
  trace.Event(fb::EventOp::kRecord, 0x9, 5);
  trace.Event(fb::EventOp::kWait, 0x9, 0);
  trace.Add(trace.CopyOf(fb::MemcpyKind::kDefault, kBase, kBase + 64, 32));
  trace.Add(trace.CopyOf(fb::MemcpyKind::kDtoH, kBase + 0x10000, kBase, 32));
  trace.Fill(kBase, 1, 16, 5);
  fb::GraphLaunchT launch;
  launch.exec = 9;
  launch.stream = 5;
  trace.Add(launch);
  trace.Sync(fb::SyncOp::kContext);
  CUstreamBatchMemOpParams write = {};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = kBase;
  fb::MemOpT memop;
  memop.count = 1;
  memop.operations = Pack(write);
  trace.Add(memop);
  trace.Snapshot(fb::SnapshotWhen::kStepEnd,
                 {{kBase, std::vector<uint8_t>(1024, 8)}});
  trace.End();
  trace.Free(kBase);
}

// What a replay does with a trace before it needs a device.
bool Use(const trace::Reader& reader) {
  StepBounds bounds;
  bounds.end_record = reader.records().size();
  const auto program = BuildProgram(reader, bounds);
  if (!program.ok()) return false;
  return PageRuns(program->allocations, 2 << 20).ok();
}

TEST(DamagedProgramTest, ChangedPayloadsAreRefusedOrReplayedButNeverCrash) {
  TestTrace trace;
  WriteSample(trace);
  const auto reader = trace.Read();
  ASSERT_TRUE(Use(*reader));
  std::mt19937 random(1);
  const std::string path = trace.path() + ".damaged";
  size_t built = 0;
  size_t refused = 0;
  for (int round = 0; round < 600; ++round) {
    trace::WriterOptions options;
    options.chunk_bytes = 1 << 20;
    auto writer = trace::Writer::Create(path, options);
    ASSERT_TRUE(writer.ok());
    const uint64_t victim = random() % reader->records().size();
    for (const trace::Record& record : reader->records()) {
      std::vector<uint8_t> payload(record.payload.begin(),
                                   record.payload.end());
      if (record.index == victim && !payload.empty()) {
        for (uint32_t i = 0; i < 1 + random() % 3; ++i) {
          payload[random() % payload.size()] =
              static_cast<uint8_t>(random() % 2 == 0 ? random() : 0xff);
        }
      }
      (*writer)->Append(record.type, payload);
    }
    ASSERT_TRUE((*writer)->Close().ok());
    const auto damaged = trace::Reader::Open(path);
    if (!damaged.ok()) continue;
    ++(Use(**damaged) ? built : refused);
  }
  std::remove(path.c_str());
  // Both happen, so both were tried.
  EXPECT_GT(built, 50U);
  EXPECT_GT(refused, 50U);
}

TEST(DamagedProgramTest, EveryPrefixOfATraceIsRefusedOrReplayed) {
  TestTrace trace;
  WriteSample(trace);
  const auto reader = trace.Read();
  for (uint64_t end = 0; end <= reader->records().size(); ++end) {
    for (uint64_t first = 0; first <= end; first += 3) {
      BuildProgram(*reader, {first, end, kNoRecord}).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace heddle::replay
