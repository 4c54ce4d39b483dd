// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/program.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    trace_.Image({1, 2, 3}, fb::ImageKind::kCubin, 9, 0);
    scale_ = trace_.Kernel("scale", {8, 4});
  }
  absl::StatusOr<Program> Build() {
    reader_ = trace_.Read();
    return BuildProgram(*reader_, BoundsOf(*reader_));
  }
  static bool Warned(const Program& program, const std::string& text) {
    return std::any_of(program.warnings.begin(), program.warnings.end(),
                       [&](const std::string& warning) {
                         return warning.find(text) != std::string::npos;
                       });
  }
  std::vector<uint8_t> Params(uint64_t address = kBase) {
    return Pack(address, uint32_t{3});
  }

  TestTrace trace_;
  uint32_t scale_ = 0;
  std::unique_ptr<trace::Reader> reader_;
};

TEST_F(ProgramTest, AStepHoldsItsOperationsItsKernelsAndTheMemoryBeforeIt) {
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kBase, std::vector<uint8_t>(64, 7)}});
  trace_.Launch(scale_, 5, Params());
  trace_.Fill(kBase, 1, 16, 5);
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->step.operations.size(), 2U);
  EXPECT_EQ(program->kernels[0].name, "scale");
  EXPECT_EQ(program->modules[0].size, 3U);
  EXPECT_EQ(program->step.operations[1].dependencies,
            (std::vector<Dependency>{{0, 0, 0}}));
  EXPECT_EQ(program->step.operations[0].launch()->params, Params());
  ASSERT_EQ(program->allocations.size(), 1U);
  ASSERT_EQ(program->content.size(), 1U);
  EXPECT_TRUE(program->exact);
  EXPECT_TRUE(program->prefix.operations.empty());
  EXPECT_TRUE(program->warnings.empty()) << program->warnings[0];
}

TEST_F(ProgramTest, WorkBetweenAnEarlierSnapshotAndTheStepIsThePrefix) {
  trace_.Alloc(kBase, 64);
  trace_.Launch(scale_, 5, Params());  // before: its effect is in the snapshot
  trace_.Snapshot(fb::SnapshotWhen::kManual,
                  {{kBase, std::vector<uint8_t>(64, 7)}});
  trace_.Fill(kBase, 1, 16, 5);
  trace_.Begin();
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->prefix.operations.size(), 1U);
  EXPECT_NE(program->prefix.operations[0].fill(), nullptr);
  ASSERT_EQ(program->step.operations.size(), 1U);
  EXPECT_TRUE(program->step.operations[0].dependencies.empty());
}

TEST_F(ProgramTest, WithoutASnapshotAllWorkFromTheBeginningIsThePrefix) {
  trace_.Alloc(kBase, 64);
  trace_.CopyIn(kBase, std::vector<uint8_t>(64, 9));
  trace_.Begin();
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->prefix.operations.size(), 1U);
  EXPECT_TRUE(Warned(*program, "no memory snapshot"));
  EXPECT_TRUE(program->allocations[0].inside);
}

TEST_F(ProgramTest, MemoryThatTheSnapshotLeavesOutStartsAsZerosWithAWarning) {
  trace_.Alloc(kBase, 64);
  trace_.Alloc(kBase + 64, 64);
  trace_.Begin();
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kBase + 16, std::vector<uint8_t>(64, 7)}});
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(Warned(*program, "64 bytes is not in the trace"));
  EXPECT_FALSE(program->exact);
}

TEST_F(ProgramTest, DescribedMemoryIsNotExact) {
  trace_.Alloc(kBase, 4096);
  trace_.Begin();
  TestTrace::Range range;
  range.address = kBase;
  range.size = 4096;
  range.fill = fb::FillKind::kDescribed;
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin, {range});
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(program->exact);
}

TEST_F(ProgramTest, ExactMemoryAfterTheStepIsFoundForComparison) {
  trace_.Alloc(kBase, 8);
  trace_.Begin();
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kBase, std::vector<uint8_t>(8, 1)}});
  trace_.Launch(scale_, 5, Params());
  trace_.Snapshot(fb::SnapshotWhen::kStepEnd,
                  {{kBase, std::vector<uint8_t>(8, 2)}});
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->after.size(), 1U);
  EXPECT_EQ(program->after[0].address, kBase);
}

TEST_F(ProgramTest, AnEndSnapshotAfterFurtherWorkIsNotTheStepsOwn) {
  trace_.Alloc(kBase, 8);
  trace_.Begin();
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kBase, std::vector<uint8_t>(8, 1)}});
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  trace_.Launch(scale_, 5, Params());
  trace_.Snapshot(fb::SnapshotWhen::kStepEnd,
                  {{kBase, std::vector<uint8_t>(8, 2)}});
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->after.empty());
}

TEST_F(ProgramTest, CapturedAndFailedWorkIsNotRun) {
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  fb::LaunchT captured = trace_.LaunchOf(scale_, 5, Params());
  captured.capturing = true;
  trace_.Add(captured);
  fb::LaunchT failed = trace_.LaunchOf(scale_, 5, Params());
  failed.status = 1;
  trace_.Add(failed);
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->step.operations.size(), 1U);
}

TEST_F(ProgramTest, AGraphLaunchBecomesItsNodesBetweenItsNeighbours) {
  trace_.Alloc(kBase, 64);
  fb::GraphT graph;
  graph.id = 1;
  for (int i = 0; i < 3; ++i) {
    graph.nodes.push_back(std::make_unique<fb::GraphNodeT>());
    graph.nodes.back()->type = CU_GRAPH_NODE_TYPE_KERNEL;
    graph.nodes.back()->launch =
        std::make_unique<fb::LaunchT>(trace_.LaunchOf(scale_, 0, Params()));
  }
  graph.edges.emplace_back(0, 1, 1, 0, 1, 0);  // programmatic
  graph.edges.emplace_back(0, 2, 0, 0, 0, 0);
  trace_.Add(graph);
  fb::GraphExecT exec;
  exec.handle = 9;
  exec.graph = 1;
  trace_.Add(exec);
  trace_.Begin();
  trace_.Launch(scale_, 5, Params());
  fb::GraphLaunchT launch;
  launch.exec = 9;
  launch.graph = 1;
  launch.stream = 5;
  trace_.Add(launch);
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto& operations = program->step.operations;
  ASSERT_EQ(operations.size(), 6U);  // launch, 3 nodes, join, launch
  EXPECT_EQ(operations[1].dependencies, (std::vector<Dependency>{{0, 0, 0}}));
  EXPECT_EQ(operations[2].dependencies, (std::vector<Dependency>{{1, 1, 1}}));
  EXPECT_EQ(operations[3].dependencies, (std::vector<Dependency>{{1, 0, 0}}));
  EXPECT_TRUE(operations[4].empty());
  EXPECT_EQ(operations[4].dependencies,
            (std::vector<Dependency>{{2, 0, 0}, {3, 0, 0}}));
  EXPECT_EQ(operations[5].dependencies, (std::vector<Dependency>{{4, 0, 0}}));
}

TEST_F(ProgramTest, CopiesUseBuffersOfTheReplayOnTheHostSide) {
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  trace_.CopyIn(kBase, {1, 2, 3, 4});
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kDtoH, 0x5000, kBase, 16));
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kDefault, 0x6000, kBase, 8));
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->host_buffers.size(), 3U);
  EXPECT_TRUE(program->host_buffers[0].known);
  EXPECT_FALSE(program->host_buffers[0].output);
  EXPECT_TRUE(program->host_buffers[1].output);
  EXPECT_EQ(program->host_buffers[2].size, 8U);
  EXPECT_TRUE(program->step.operations[2].copy()->dst.host);
}

TEST_F(ProgramTest, BytesThatWereNotKeptAreZerosWithAWarning) {
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kHtoD, kBase, 0x5000, 16));
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(program->host_buffers[0].known);
  EXPECT_TRUE(Warned(*program, "16 bytes that the program copied"));
}

TEST_F(ProgramTest, PinnedMemoryNamedInParametersIsReplayedOnTheDevice) {
  constexpr uint64_t kHost = 0x7e0000000000;
  trace_.Alloc(kBase, 64);
  trace_.Alloc(kHost, 4096, fb::MemoryKind::kHost);
  trace_.Begin();
  trace_.Launch(scale_, 5, Params(kHost + 16));
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kDtoH, kHost + 32, kBase, 16, 5));
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(Warned(*program, "pinned host memory"));
  EXPECT_TRUE(
      std::any_of(program->allocations.begin(), program->allocations.end(),
                  [&](const Allocation& a) { return a.address == kHost; }));
  const CopyWork* copy = program->step.operations[1].copy();
  ASSERT_NE(copy, nullptr);
  EXPECT_FALSE(copy->dst.host);
  EXPECT_EQ(copy->dst.address, kHost + 32);
}

TEST_F(ProgramTest, MemoryAllocatedInTheStepExists) {
  trace_.Begin();
  trace_.Alloc(kBase, 64, fb::MemoryKind::kAsync, 5);
  trace_.Launch(scale_, 5, Params());
  trace_.Free(kBase, fb::MemoryKind::kAsync, 5);
  trace_.Alloc(kBase, 32, fb::MemoryKind::kAsync, 6);
  trace_.Launch(scale_, 6, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->allocations.size(), 2U);
  EXPECT_TRUE(program->allocations[0].inside);
  EXPECT_EQ(program->step.operations[1].dependencies,
            (std::vector<Dependency>{{0, 0, 0}}))
      << "memory that was freed on another stream is reused after it";
}

TEST_F(ProgramTest, AVariableThatTheProgramSetIsSetAgain) {
  fb::GlobalT global;
  global.module_id = 1;
  global.name = "table";
  global.address = kBase + 0x100000;
  global.size = 64;
  trace_.Add(global);
  trace_.Alloc(kBase, 64);
  trace_.CopyIn(kBase + 0x100000, {1, 2, 3, 4});
  trace_.Snapshot(fb::SnapshotWhen::kManual,
                  {{kBase, std::vector<uint8_t>(64, 7)}});
  trace_.Begin();
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->variables.size(), 1U);
  ASSERT_EQ(program->prefix.operations.size(), 1U);
  EXPECT_NE(program->prefix.operations[0].copy(), nullptr);
}

TEST_F(ProgramTest, ASynchronousCopyToTheHostOrdersWorkOfOtherStreamsAfterIt) {
  trace_.Stream(5, CU_STREAM_NON_BLOCKING);
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  fb::MemcpyT copy = trace_.CopyOf(fb::MemcpyKind::kDtoH, 0x5000, kBase, 16);
  copy.async = false;
  trace_.Add(copy);
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->step.operations[1].dependencies,
            (std::vector<Dependency>{{0, 0, 0}}));
}

TEST_F(ProgramTest, HostFunctionsKeepTheirPlaceAndAreNamed) {
  trace_.Begin();
  fb::HostFuncT function;
  function.stream = 5;
  function.symbol = "on_done";
  trace_.Add(function);
  trace_.Launch(scale_, 5, Params());
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->step.operations[0].empty());
  EXPECT_EQ(program->step.operations[1].dependencies.size(), 1U);
  EXPECT_TRUE(Warned(*program, "on_done"));
}

TEST_F(ProgramTest, AWriteOfAStreamMemoryOperationIsReplayed) {
  CUstreamBatchMemOpParams params = {};
  params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  params.writeValue.address = kBase + 8;
  params.writeValue.value64 = 0x1122334455667788;
  fb::MemOpT memop;
  memop.stream = 5;
  memop.count = 1;
  memop.operations = Pack(params);
  trace_.Alloc(kBase, 64);
  trace_.Begin();
  trace_.Add(memop);
  trace_.End();
  const auto program = Build();
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->step.operations.size(), 2U);
  EXPECT_EQ(program->step.operations[0].fill()->value, 0x55667788U);
  EXPECT_EQ(program->step.operations[1].fill()->address, kBase + 12);
  EXPECT_EQ(program->step.operations[1].fill()->value, 0x11223344U);
}

// ---- traces that contradict themselves ----

TEST_F(ProgramTest, AKernelThatTheTraceDoesNotHoldIsNotFound) {
  trace_.Begin();
  trace_.Launch(77, 5, Params());
  trace_.End();
  const auto program = Build();
  EXPECT_EQ(program.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(program.status().message().find("kernel 77"), std::string::npos);
}

TEST_F(ProgramTest, FewerParameterBytesThanTheKernelTakesIsAnError) {
  trace_.Begin();
  trace_.Launch(scale_, 5, {1, 2, 3});
  trace_.End();
  EXPECT_EQ(Build().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ProgramTest, AStepWithoutWorkIsAnError) {
  trace_.Begin();
  trace_.End();
  EXPECT_EQ(Build().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ProgramTest, ArraysAreRefusedByName) {
  trace_.Begin();
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kHtoA, 1, 2, 16));
  trace_.End();
  const auto program = Build();
  EXPECT_EQ(program.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(program.status().message().find("array"), std::string::npos);
}

TEST_F(ProgramTest, AbsurdExtentsAreErrors) {
  for (int form = 0; form < 4; ++form) {
    TestTrace trace;
    trace.Begin();
    fb::MemcpyT copy = trace.CopyOf(fb::MemcpyKind::kDtoD, kBase, kBase, 16);
    if (form == 0) copy.width = ~uint64_t{0};
    if (form == 1) copy.height = copy.depth = uint64_t{1} << 40;
    if (form == 2) copy.height = 2;  // pitch 0
    if (form == 3) copy.depth = 2;   // slice 0
    trace.Add(copy);
    trace.End();
    const auto reader = trace.Read();
    EXPECT_EQ(BuildProgram(*reader, BoundsOf(*reader)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << form;
  }
}

TEST_F(ProgramTest, AnAllocationOrRangeThatWrapsAroundIsAnError) {
  TestTrace trace;
  trace.Alloc(~uint64_t{0} - 10, 100);
  trace.Begin();
  trace.Fill(kBase, 0, 1);
  trace.End();
  const auto reader = trace.Read();
  EXPECT_EQ(BuildProgram(*reader, BoundsOf(*reader)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ProgramTest, BoundsOutsideTheTraceAreAnError) {
  trace_.Begin();
  trace_.End();
  reader_ = trace_.Read();
  EXPECT_FALSE(BuildProgram(*reader_, {0, 1000, kNoRecord}).ok());
  EXPECT_FALSE(BuildProgram(*reader_, {2, 1, kNoRecord}).ok());
  EXPECT_FALSE(BuildProgram(*reader_, {0, 1, 0}).ok()) << "not a snapshot";
}

TEST_F(ProgramTest, ConditionalNodesAreRefused) {
  fb::GraphT graph;
  graph.id = 1;
  graph.nodes.push_back(std::make_unique<fb::GraphNodeT>());
  graph.nodes.back()->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  trace_.Add(graph);
  trace_.Begin();
  fb::GraphLaunchT launch;
  launch.graph = 1;
  trace_.Add(launch);
  trace_.End();
  EXPECT_EQ(Build().status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace heddle::replay
