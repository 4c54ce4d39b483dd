// SPDX-License-Identifier: Apache-2.0
//
// Whole replays on the host device: the driver is real to everything above
// it, and executes what is independent in any order.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "runtime/replay/session.h"
#include "runtime/replay/timing.h"
#include "runtime/replay/verifier.h"
#include "runtime/report/report.h"
#include "runtime/report/summary.h"
#include "tests/unit/replay/test_trace.h"

namespace heddle::replay {
namespace {

// Addresses as another device may have given them out.
constexpr uint64_t kA = 0x610000000000;
constexpr uint64_t kB = kA + 0x1000;      // shares a page with kA
constexpr uint64_t kC = kA + 0x40000000;  // far away
constexpr uint32_t kN = 100;
constexpr uint64_t kBytes = kN * sizeof(float);
constexpr uint64_t kStream1 = 0x55;
constexpr uint64_t kStream2 = 0x66;

const device::Driver& HostDevice() {
  static const device::Driver* const driver = [] {
    setenv("HEDDLE_HOSTDEVICE_KERNELS", HEDDLE_REPLAY_HOST_KERNELS, 1);
    auto loaded = device::Driver::Load(HEDDLE_HOSTDEVICE_LIBRARY);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new device::Driver(*std::move(loaded));
  }();
  return *driver;
}

std::vector<uint8_t> Image() {
  std::ifstream file(HEDDLE_REPLAY_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<uint8_t> Floats(float first, float step) {
  std::vector<float> values(kN);
  for (uint32_t i = 0; i < kN; ++i) {
    values[i] = first + step * static_cast<float>(i);
  }
  return PackVector(values);
}

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() {
    trace_.Image(Image(), fb::ImageKind::kCubin, 9, 0);
    scale_ = trace_.Kernel("test_scale", {8, 4, 4});
    add_ = trace_.Kernel("test_add", {8, 8, 8, 4});
    gather_ = trace_.Kernel("test_gather", {8, 8, 4});
    from_table_ = trace_.Kernel("test_from_table", {8, 8, 4});
    clock_ = trace_.Kernel("test_clock", {8, 4});
    trace_.Alloc(kA, kBytes);
    trace_.Alloc(kB, kBytes);
    trace_.Alloc(kC, 3 << 20);
    trace_.Stream(kStream1, CU_STREAM_NON_BLOCKING);
    trace_.Stream(kStream2, CU_STREAM_NON_BLOCKING);
  }

  void Start() {
    trace_.Begin();
    trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                    {{kA, Floats(1, 1)},
                     {kB, Floats(0.5, 0.25)},
                     {kC, std::vector<uint8_t>(3 << 20, 0)}});
  }
  void Scale(uint64_t x, float factor, uint64_t stream = kStream1) {
    trace_.Launch(scale_, stream, Pack(x, factor, kN), 4);
  }
  void Add(uint64_t out, uint64_t a, uint64_t b, uint64_t stream = kStream1) {
    trace_.Launch(add_, stream, Pack(out, a, b, kN, uint32_t{0}), 4);
  }
  // Two streams that meet: C = (A * 2) + (B * 3), C *= 0.5.
  void ForkAndJoin() {
    Scale(kA, 2);
    Scale(kB, 3, kStream2);
    trace_.Event(fb::EventOp::kRecord, 0x9, kStream2);
    trace_.Event(fb::EventOp::kWait, 0x9, kStream1);
    Add(kC, kA, kB);
    Scale(kC, 0.5);
  }

  // Ends the trace and sets the step up.
  absl::Status Open() {
    trace_.End();
    return OpenAsIs();
  }
  absl::Status OpenAsIs() {
    reader_ = trace_.Read();
    auto program = BuildProgram(*reader_, BoundsOf(*reader_));
    if (!program.ok()) return program.status();
    program_ = *std::move(program);
    auto context = device::ScopedContext::Create(HostDevice(), 0);
    if (!context.ok()) return context.status();
    context_ = *std::move(context);
    auto session =
        Session::Create(HostDevice(), *context_, *reader_, program_, nullptr);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    return absl::OkStatus();
  }
  std::vector<float> Read(uint64_t address) {
    std::vector<float> values(kN);
    const auto device = session_->image().Translate(address, kBytes);
    EXPECT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(HostDevice().MemcpyDtoH(values.data(), *device, kBytes),
              CUDA_SUCCESS);
    return values;
  }
  VerifyResult MustVerify(const VerifyOptions& options = {}) {
    auto result = Verify(*session_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : VerifyResult{};
  }

  TestTrace trace_;
  uint32_t scale_ = 0;
  uint32_t add_ = 0;
  uint32_t gather_ = 0;
  uint32_t from_table_ = 0;
  uint32_t clock_ = 0;
  std::unique_ptr<trace::Reader> reader_;
  Program program_;
  std::unique_ptr<device::ScopedContext> context_;
  std::unique_ptr<Session> session_;  // before what it refers to
};

TEST_F(DeviceTest, SerialAndGraphComputeWhatTheProgramComputed) {
  Start();
  ForkAndJoin();
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_TRUE(session_->LoadInput(1).ok());
  for (const bool graph : {false, true}) {
    ASSERT_EQ(session_->Reset(), absl::OkStatus());
    auto executor = graph ? session_->NewGraph() : session_->NewSerial();
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_EQ(RunAndWait(HostDevice(), **executor), absl::OkStatus());
    const std::vector<float> c = Read(kC);
    for (uint32_t i = 0; i < kN; ++i) {
      const auto f = static_cast<float>(i);
      ASSERT_EQ(c[i], 0.5F * ((1 + f) * 2 + (0.5F + 0.25F * f) * 3));
    }
  }
}

TEST_F(DeviceTest, VerificationPassesOnTwoDifferentInputs) {
  Start();
  ForkAndJoin();
  ASSERT_EQ(Open(), absl::OkStatus());
  const VerifyResult result = MustVerify();
  EXPECT_TRUE(result.passed);
  ASSERT_EQ(result.inputs.size(), 2U);
  for (const InputVerdict& verdict : result.inputs) {
    EXPECT_EQ(verdict.verdict(), Verdict::kIdentical);
    EXPECT_EQ(verdict.serial_differing_bytes, 0U);
    EXPECT_GT(verdict.written_bytes, kBytes);
  }
  EXPECT_GT(result.inputs[1].changed_bytes, 0U);
}

TEST_F(DeviceTest, AMissingEdgeIsFoundAndItsVictimIsNamed) {
  Start();
  ForkAndJoin();
  ASSERT_EQ(Open(), absl::OkStatus());
  // Every edge of this step is needed; no order may hide that.
  size_t edges = 0;
  for (const Operation& o : program_.step.operations) {
    edges += o.dependencies.size();
  }
  ASSERT_EQ(edges, 3U);
  for (size_t edge = 0; edge < edges; ++edge) {
    VerifyOptions options;
    options.graph.drop_dependency = static_cast<int64_t>(edge);
    options.runs = 60;  // in some of which the order is wrong
    const VerifyResult result = MustVerify(options);
    EXPECT_FALSE(result.passed) << "edge " << edge;
    ASSERT_FALSE(result.inputs[0].forms[0].findings.empty());
    EXPECT_GT(result.inputs[0].forms[0].differing_bytes, 0U);
    EXPECT_EQ(result.inputs[0].forms[0].findings[0].writer.rfind("test_", 0),
              0U);
  }
}

TEST_F(DeviceTest, AKernelThatDoesNotRepeatIsNamedAndIsNoFailure) {
  Start();
  ForkAndJoin();
  trace_.Launch(clock_, kStream1, Pack(kC + 4096, kN, uint32_t{0}), 4);
  ASSERT_EQ(Open(), absl::OkStatus());
  const VerifyResult result = MustVerify();
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.inputs[0].verdict(), Verdict::kWithinSerial);
  ASSERT_EQ(result.inputs[0].unrepeatable.size(), 1U);
  EXPECT_EQ(result.inputs[0].unrepeatable[0].name, "test_clock");
  EXPECT_EQ(result.inputs[0].unrepeatable[0].launches, 1U);
}

TEST_F(DeviceTest, ARaceOfTheGraphIsNotExcusedByAnUnrepeatableKernelElsewhere) {
  Start();
  ForkAndJoin();
  trace_.Launch(clock_, kStream1, Pack(kC + 65536, kN, uint32_t{0}), 4);
  ASSERT_EQ(Open(), absl::OkStatus());
  VerifyOptions options;
  options.graph.drop_dependency = 2;
  options.runs = 60;
  EXPECT_FALSE(MustVerify(options).passed);
}

TEST_F(DeviceTest, PointersInMemoryAreValidAtTheRecordedAddresses) {
  trace_.Begin();
  std::vector<uint64_t> list(kN);
  for (uint32_t i = 0; i < kN; ++i) list[i] = kA + 4 * (kN - 1 - i);
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kA, Floats(1, 1)}, {kC, PackVector(list)}});
  trace_.Launch(gather_, kStream1, Pack(kB, kC, kN), 4);
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_TRUE(session_->LoadInput(1).ok());
  auto graph = session_->NewGraph();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(RunAndWait(HostDevice(), **graph), absl::OkStatus());
  EXPECT_EQ(Read(kB)[0], 100);
  EXPECT_EQ(Read(kB)[99], 1);
}

TEST_F(DeviceTest, APointerToAModuleVariableIsMovedToWhereItIsNow) {
  constexpr uint64_t kTable = 0x620000000000;
  fb::GlobalT global;
  global.module_id = 1;
  global.name = "table";
  global.address = kTable;
  global.size = 64;
  trace_.Add(global);
  trace_.CopyIn(kTable, Pack(10.0F, 20.0F, 30.0F, 40.0F));
  Start();
  trace_.Launch(from_table_, kStream1, Pack(kB, kTable + 4, uint32_t{3}), 1);
  trace_.Fill(kTable, 0x40, 4, kStream1);
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_EQ(session_->bound().patched_pointers(), 1U);
  ASSERT_TRUE(session_->LoadInput(1).ok());
  auto serial = session_->NewSerial();
  ASSERT_TRUE(serial.ok()) << serial.status();
  ASSERT_EQ(RunAndWait(HostDevice(), **serial), absl::OkStatus());
  const std::vector<float> out = Read(kB);
  EXPECT_EQ(out[0], 20);
  EXPECT_EQ(out[2], 40);
  EXPECT_TRUE(MustVerify().passed);
}

TEST_F(DeviceTest, MemoryThatHoldsAModuleVariablesAddressIsRefused) {
  constexpr uint64_t kTable = 0x620000000000;
  fb::GlobalT global;
  global.module_id = 1;
  global.name = "table";
  global.address = kTable;
  global.size = 64;
  trace_.Add(global);
  trace_.Begin();
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin, {{kA, Pack(kTable + 8)}});
  Scale(kB, 2);
  ASSERT_EQ(Open(), absl::OkStatus());
  const auto input = session_->LoadInput(1);
  EXPECT_EQ(input.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(input.status().message().find("table"), std::string::npos);
}

TEST_F(DeviceTest, ThePrefixRunsBeforeTheStepAndNotAgain) {
  trace_.Snapshot(fb::SnapshotWhen::kManual,
                  {{kA, Floats(1, 0)}, {kB, Floats(1, 0)}});
  Scale(kA, 10);
  trace_.Begin();
  Scale(kA, 2);
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_TRUE(session_->LoadInput(1).ok());
  auto serial = session_->NewSerial();
  ASSERT_TRUE(serial.ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(session_->Reset(), absl::OkStatus());
    ASSERT_EQ(RunAndWait(HostDevice(), **serial), absl::OkStatus());
    EXPECT_EQ(Read(kA)[5], 20);
  }
}

TEST_F(DeviceTest, DescribedMemoryIsFilledWithSeededValuesOfItsStatistics) {
  trace_.Begin();
  TestTrace::Range weights;
  weights.address = kC;
  weights.size = 3 << 20;
  weights.fill = fb::FillKind::kDescribed;
  weights.mean = 2;
  weights.stddev = 0.5;
  trace_.Snapshot(fb::SnapshotWhen::kStepBegin,
                  {{kA, Floats(1, 1)}, {kB, Floats(1, 1)}, weights});
  Add(kA, kB, kC);
  ASSERT_EQ(Open(), absl::OkStatus());
  const auto input = session_->LoadInput(1);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->loaded.described, 3U << 20);
  double sum = 0;
  for (const float v : Read(kC)) sum += static_cast<double>(v);
  EXPECT_NEAR(sum / kN, 2, 0.3);
  const std::vector<float> first = Read(kC);
  ASSERT_TRUE(session_->LoadInput(2).ok());
  EXPECT_NE(Read(kC), first);
}

TEST_F(DeviceTest, MemoryAfterTheStepIsComparedWithTheProgramsOwn) {
  Start();
  Scale(kA, 2);
  // The memory of kB after the step is not recorded: not compared.
  trace_.Snapshot(fb::SnapshotWhen::kStepEnd, {{kA, Floats(2, 2)}});
  ASSERT_EQ(Open(), absl::OkStatus());
  const VerifyResult result = MustVerify();
  EXPECT_TRUE(result.passed);
  EXPECT_TRUE(result.original.available);
  EXPECT_EQ(result.original.compared_bytes, kBytes);
  EXPECT_EQ(result.original.differing_bytes, 0U);
}

TEST_F(DeviceTest, MemoryOtherThanTheProgramsOwnIsAFailureWithItsPlace) {
  Start();
  Scale(kA, 2);
  std::vector<uint8_t> after = Floats(2, 2);
  after[4 * 7 + 3] ^= 1;
  trace_.Snapshot(fb::SnapshotWhen::kStepEnd, {{kA, after}});
  ASSERT_EQ(Open(), absl::OkStatus());
  const VerifyResult result = MustVerify();
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.original.differing_bytes, 1U);
  ASSERT_EQ(result.original.findings.size(), 1U);
  EXPECT_EQ(result.original.findings[0].address, kA + 31);
  EXPECT_EQ(result.original.findings[0].writer, "test_scale");
}

TEST_F(DeviceTest, CopiesAreReplayedAndWhatReachesTheHostIsCompared) {
  Start();
  trace_.CopyIn(kA, Floats(5, 0), kStream1);
  Scale(kA, 2);
  trace_.Add(trace_.CopyOf(fb::MemcpyKind::kDtoD, kB, kA, kBytes, kStream1));
  trace_.Add(
      trace_.CopyOf(fb::MemcpyKind::kDtoH, 0x5000, kB, kBytes, kStream1));
  fb::MemcpyT block = trace_.CopyOf(fb::MemcpyKind::kDtoD, kC, kA, 8, kStream1);
  block.height = 4;
  block.src_pitch = 16;
  block.dst_pitch = 64;
  trace_.Add(block);
  ASSERT_EQ(Open(), absl::OkStatus());
  const VerifyResult result = MustVerify();
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.inputs[0].output_bytes, kBytes);
  ASSERT_EQ(session_->Reset(), absl::OkStatus());
  auto graph = session_->NewGraph();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(RunAndWait(HostDevice(), **graph), absl::OkStatus());
  float on_host = 0;
  const std::vector<uint8_t> outputs = session_->bound().Outputs();
  std::memcpy(&on_host, outputs.data(), 4);
  EXPECT_EQ(on_host, 10);
  const std::vector<float> c = Read(kC);
  EXPECT_EQ(c[16], 10);  // second row
  EXPECT_EQ(c[2], 0);    // between rows
}

TEST_F(DeviceTest, EveryTimedRunStartsFromTheSameMemory) {
  Start();
  Scale(kA, 2);  // doubles again if the memory is not put back
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_TRUE(MustVerify().passed);
  auto serial = session_->NewSerial();
  auto graph = session_->NewGraph();
  ASSERT_TRUE(serial.ok() && graph.ok());
  const auto timings =
      TimeExecutors(*session_, {serial->get(), graph->get()}, 1, 5);
  ASSERT_TRUE(timings.ok()) << timings.status();
  EXPECT_EQ(Read(kA)[0], 2);
  ASSERT_EQ(timings->size(), 2U);
  for (const Timing& timing : *timings) {
    EXPECT_EQ(timing.us.size(), 5U);
    EXPECT_GE(timing.median_us, timing.min_us);
  }
}

TEST_F(DeviceTest, TheReportSeesEveryOperationInBothModes) {
  Start();
  ForkAndJoin();
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_TRUE(session_->LoadInput(1).ok());
  auto source = report::CreateActivitySource(HostDevice());
  ASSERT_TRUE(source.ok()) << source.status();
  for (const bool graph : {false, true}) {
    ASSERT_EQ((*source)->Start(), absl::OkStatus());
    auto executor = graph ? session_->NewGraph() : session_->NewSerial();
    ASSERT_TRUE(executor.ok());
    ASSERT_EQ(RunAndWait(HostDevice(), **executor), absl::OkStatus());
    const auto activities = (*source)->Stop();
    ASSERT_TRUE(activities.ok());
    std::vector<std::string> names(activities->size());
    for (const report::Activity& a : *activities) names[a.order] = a.name;
    EXPECT_EQ(names, (std::vector<std::string>{"test_scale", "test_scale",
                                               "test_add", "test_scale"}));
  }
}

TEST_F(DeviceTest, ATakenAddressIsAnErrorThatNamesIt) {
  trace_.Alloc(0x1000, 64);  // below what any process may map
  Start();
  Scale(kA, 2);
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_NE(status.message().find("cannot have the recorded device address"),
            std::string::npos)
      << status;
}

TEST_F(DeviceTest, MoreMemoryThanTheDeviceHasIsAnErrorThatSaysHowMuch) {
  trace_.Alloc(0x630000000000, uint64_t{1} << 42);
  Start();
  Scale(kA, 2);
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST_F(DeviceTest, ACopyOutsideKnownMemoryIsAnErrorBeforeAnythingRuns) {
  Start();
  trace_.Fill(0x640000000000, 1, 16, kStream1);
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(status.message().find("memset 16 B"), std::string::npos) << status;
}

TEST_F(DeviceTest, AnotherDeviceIsRefusedByName) {
  TestTrace trace;
  trace.Image(Image(), fb::ImageKind::kCubin, 12, 1);
  trace.Alloc(kA, 64);
  trace.Begin();
  trace.Fill(kA, 1, 16);
  trace.End();
  reader_ = trace.Read();
  auto program = BuildProgram(*reader_, BoundsOf(*reader_));
  ASSERT_TRUE(program.ok());
  auto context = device::ScopedContext::Create(HostDevice(), 0);
  ASSERT_TRUE(context.ok());
  const auto session =
      Session::Create(HostDevice(), **context, *reader_, *program, nullptr);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(session.status().message().find("sm_121"), std::string::npos);
}

}  // namespace
}  // namespace heddle::replay
