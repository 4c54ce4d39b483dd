// SPDX-License-Identifier: Apache-2.0
// Plan files: what is written comes back, and nothing else is believed.

#include "runtime/plan/plan_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/plan_generated.h"
#include "runtime/plan/plan_format.h"
#include "runtime/trace/format.h"
#include "tests/fuzz/plan_entry.h"
#include "tests/unit/plan/random_effects.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

// A plan of a random step of `count` operations.
PlanFile RandomFile(uint32_t seed, uint32_t count = 12) {
  Random random(seed);
  GraphMix mix;
  mix.min_nodes = mix.max_nodes = count;
  mix.own_pdl = 0;
  PlanInput input;
  input.graph = RandomGraph(random, mix);
  input.effects = RandomEffects(random, count, 20);
  input.durations_us.assign(count, 2.5);
  PlanFile file;
  file.plan = *MakePlan(input, {});
  file.max_branches = 2;
  file.binding.trace = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  file.binding.first_record = 100;
  file.binding.end_record = 200;
  file.binding.device_name = "NVIDIA H200";
  file.binding.compute_major = 9;
  file.binding.multiprocessors = 132;
  file.binding.driver_version = 13000;
  file.durations_from = "all equal";
  file.plan.notes.push_back("a note");
  for (const Node& node : input.graph.nodes) {
    OperationIdentity& operation = file.operations.emplace_back();
    operation.name = absl::StrCat("operation ", file.operations.size());
    operation.kind = OperationKind::kFill;
    if (!node.kernel) continue;
    operation.kind = OperationKind::kKernel;
    operation.image = {Below(random, 3), 7};
    operation.grid = {Below(random, 9), 2, 1};
    operation.block = {32, 1, 1};
    operation.shared_bytes = 48;
    operation.param_bytes = 24;
  }
  return file;
}

void ExpectSame(const PlanFile& a, const PlanFile& b) {
  EXPECT_EQ(a.operations, b.operations);
  EXPECT_EQ(a.binding.trace, b.binding.trace);
  EXPECT_EQ(a.binding.first_record, b.binding.first_record);
  EXPECT_EQ(a.binding.end_record, b.binding.end_record);
  EXPECT_EQ(a.binding.device_name, b.binding.device_name);
  EXPECT_EQ(a.binding.compute_major, b.binding.compute_major);
  EXPECT_EQ(a.binding.compute_minor, b.binding.compute_minor);
  EXPECT_EQ(a.binding.multiprocessors, b.binding.multiprocessors);
  EXPECT_EQ(a.binding.driver_version, b.binding.driver_version);
  EXPECT_EQ(a.durations_from, b.durations_from);
  EXPECT_EQ(a.max_branches, b.max_branches);
  EXPECT_EQ(a.costs.full_us, b.costs.full_us);
  EXPECT_EQ(a.plan.level, b.plan.level);
  EXPECT_EQ(a.plan.style, b.plan.style);
  EXPECT_EQ(a.plan.branches, b.plan.branches);
  EXPECT_EQ(a.plan.notes, b.plan.notes);
  EXPECT_EQ(a.plan.converted, b.plan.converted);
  EXPECT_EQ(a.plan.launch_order, b.plan.launch_order);
  EXPECT_EQ(a.plan.graph_us, b.plan.graph_us);
  EXPECT_EQ(a.plan.estimate_us, b.plan.estimate_us);
  ASSERT_EQ(a.plan.nodes.size(), b.plan.nodes.size());
  for (size_t i = 0; i < a.plan.nodes.size(); ++i) {
    EXPECT_EQ(a.plan.nodes[i].prologue, b.plan.nodes[i].prologue);
    EXPECT_EQ(a.plan.nodes[i].branch, b.plan.nodes[i].branch);
    EXPECT_EQ(a.plan.nodes[i].duration_us, b.plan.nodes[i].duration_us);
    EXPECT_EQ(a.plan.nodes[i].start_us, b.plan.nodes[i].start_us);
  }
  ASSERT_EQ(a.plan.edges.size(), b.plan.edges.size());
  for (size_t i = 0; i < a.plan.edges.size(); ++i) {
    EXPECT_EQ(a.plan.edges[i].edge, b.plan.edges[i].edge);
    EXPECT_EQ(a.plan.edges[i].reasons, b.plan.edges[i].reasons);
  }
}

std::vector<uint8_t> Bytes(const PlanFile& file) {
  const auto bytes = SerializePlan(file);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : std::vector<uint8_t>{};
}

void Seal(std::vector<uint8_t>* bytes) {
  PlanHeader header;
  std::memcpy(&header, bytes->data(), sizeof(header));
  header.payload_bytes = bytes->size() - sizeof(header);
  header.payload_checksum =
      trace::HashBytes64(bytes->data() + sizeof(header), header.payload_bytes);
  header.checksum = trace::HashBytes64(&header, offsetof(PlanHeader, checksum));
  std::memcpy(bytes->data(), &header, sizeof(header));
}

// The file with its payload changed by `change`, checksums that match.
std::vector<uint8_t> Changed(
    const std::function<void(planfb::PlanT&)>& change) {
  std::vector<uint8_t> bytes = Bytes(RandomFile(3));
  const std::vector<uint8_t> payload(bytes.begin() + sizeof(PlanHeader),
                                     bytes.end());
  planfb::PlanT plan;
  flatbuffers::GetRoot<planfb::Plan>(payload.data())->UnPackTo(&plan);
  change(plan);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(planfb::Plan::Pack(builder, &plan));
  bytes.resize(sizeof(PlanHeader));
  bytes.insert(bytes.end(), builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
  Seal(&bytes);
  return bytes;
}

// The content of traces/golden-plan-v1.hplan: every enumerator of version 1.
PlanFile GoldenFile() {
  PlanFile file;
  file.binding = {{0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xaf},
                  1000,
                  2000,
                  "NVIDIA H200",
                  9,
                  0,
                  132,
                  13000};
  const auto kernel = [](const char* name, uint64_t image) {
    return OperationIdentity{OperationKind::kKernel,
                             name,
                             {image, ~image},
                             {7, 2, 1},
                             {128, 1, 1},
                             4096,
                             40};
  };
  OperationIdentity copy{
      OperationKind::kCopy, "memcpy HtoD 4 B", {}, {}, {}, 0, 0};
  OperationIdentity fill{OperationKind::kFill, "memset 64 B", {}, {}, {}, 0, 0};
  OperationIdentity join{OperationKind::kEmpty, "join", {}, {}, {}, 0, 0};
  file.operations = {copy,
                     fill,
                     kernel("_Z4gemm", 1),
                     kernel("_Z4silu", 2),
                     kernel("_Z3add", 1),
                     kernel("_Z4norm", 3),
                     join};
  file.max_branches = 3;
  file.costs = {0.9, 0.5, 1.25};
  file.durations_from = "measured";
  Plan& plan = file.plan;
  plan.level = Level::kO2;
  plan.style = Style::kLaunchOrder;
  plan.branches = 2;
  plan.graph_us = 20.5;
  plan.estimate_us = 15.25;
  plan.notes = {"1 edge stays full: one end is no kernel"};
  plan.nodes = {{cubin::Prologue::kNone, 0, 1, 0},
                {cubin::Prologue::kNone, 1, 1.5, 0},
                {cubin::Prologue::kTriggerWait, 0, 4, 2},
                {cubin::Prologue::kWaitTrigger, 0, 2.5, 7},
                {cubin::Prologue::kWait, 1, 2.5, 7},
                {cubin::Prologue::kWait, 0, 2, 10},
                {cubin::Prologue::kNone, 0, 0, 13}};
  plan.edges = {{{0, 2}, {{Hazard::kReadAfterWrite, {0x7000, 4}, 4}}},
                {{1, 2}, {{Hazard::kWriteAfterWrite, {0x8000, 32}, 64}}},
                {{2, 3, kTypeProgrammatic, kPortProgrammatic},
                 {{Hazard::kReadAfterWrite, {0x9000, 16}, 16},
                  {Hazard::kWriteAfterRead, {0xa000, 16}, 16}}},
                {{2, 4, kTypeProgrammatic, kPortProgrammatic},
                 {{Hazard::kUnknownAccess, {}, 0}}},
                {{3, 5, kTypeProgrammatic, kPortLaunchOrder}, {}},
                {{4, 5, kTypeProgrammatic, kPortLaunchOrder}, {}},
                {{5, 6}, {{Hazard::kOrderingPoint, {}, 0}}}};
  plan.converted = 4;
  plan.launch_order = 2;
  return file;
}

TEST(PlanFileTest, TheGoldenFileOfEveryVersionIsStillReadable) {
  const std::string path = HEDDLE_TRACES_DIR "/golden-plan-v1.hplan";
  const auto read = ReadPlanFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(GoldenFile(), *read);
}

TEST(PlanFileTest, WhatIsWrittenComesBack) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const PlanFile file = RandomFile(seed, 1 + seed % 40);
    const auto read = ParsePlan(Bytes(file), "a.hplan");
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectSame(file, *read);
    ASSERT_EQ(Bytes(*read), Bytes(file)) << "the same plan, the same bytes";
  }
}

TEST(PlanFileTest, FilesAreReplacedAsAWhole) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "plan_file_test_", getpid(), ".hplan");
  const PlanFile file = RandomFile(1);
  ASSERT_TRUE(WritePlanFile(file, path).ok());
  ASSERT_TRUE(WritePlanFile(RandomFile(2), path).ok());
  ASSERT_TRUE(WritePlanFile(file, path).ok());
  const auto read = ReadPlanFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(file, *read);
  // One that could not be read again is not written.
  PlanFile wrong = file;
  wrong.operations.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(WritePlanFile(wrong, path)));
  wrong = file;
  wrong.plan.nodes[0].duration_us = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(absl::IsInvalidArgument(WritePlanFile(wrong, path)));
  EXPECT_TRUE(ReadPlanFile(path).ok());
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::TempDir())) {
    files += absl::StartsWith(entry.path().string(), path) ? 1 : 0;
  }
  EXPECT_EQ(files, 1u) << "nothing is left over";
  std::remove(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(ReadPlanFile(path).status()));
  EXPECT_FALSE(ReadPlanFile(testing::TempDir()).ok());
  EXPECT_FALSE(WritePlanFile(file, "/no/such/folder/a.hplan").ok());
  EXPECT_FALSE(WritePlanFile(file, testing::TempDir()).ok());
}

TEST(PlanFileTest, APlanThatIsCutAnywhereIsRefused) {
  const std::vector<uint8_t> bytes = Bytes(RandomFile(3));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read =
        ParsePlan(absl::MakeConstSpan(bytes).subspan(0, size), "a.hplan");
    ASSERT_TRUE(absl::IsInvalidArgument(read.status())) << size;
    ASSERT_TRUE(absl::StrContains(read.status().message(), "a.hplan"));
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_TRUE(absl::IsInvalidArgument(ParsePlan(longer, "a").status()));
}

TEST(PlanFileTest, EveryFlippedBitIsFound) {
  std::vector<uint8_t> bytes = Bytes(RandomFile(3));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_FALSE(ParsePlan(bytes, "a.hplan").ok()) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

TEST(PlanFileTest, DamageWithMatchingChecksumsNeverCrashesTheReader) {
  Random random(31);
  const std::vector<uint8_t> good = Bytes(RandomFile(3));
  const std::vector<uint8_t> payload(good.begin() + sizeof(PlanHeader),
                                     good.end());
  for (size_t bit = 0; bit < 8 * payload.size(); ++bit) {
    std::vector<uint8_t> bad = payload;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    FuzzPlanFile(bad);
  }
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bad = payload;
    for (uint32_t i = 1 + Below(random, 4); i > 0; --i) {
      bad[random() % bad.size()] = static_cast<uint8_t>(random());
    }
    if (OneIn(random, 8)) bad.resize(random() % bad.size());
    FuzzPlanFile(bad);
  }
}

TEST(PlanFileTest, ForeignFilesAndNewerVersionsAreCalledWhatTheyAre) {
  const std::string text = "hello, I am a text\n";
  const auto foreign =
      ParsePlan(absl::MakeConstSpan(
                    reinterpret_cast<const uint8_t*>(text.data()), text.size()),
                "notes.txt");
  EXPECT_TRUE(absl::StrContains(foreign.status().message(),
                                "notes.txt is not a heddle plan"))
      << foreign.status();
  std::vector<uint8_t> bytes = Bytes(RandomFile(3));
  PlanHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = 7;
  std::memcpy(bytes.data(), &header, sizeof(header));
  Seal(&bytes);
  EXPECT_TRUE(ParsePlan(bytes, "a").ok()) << "newer, and compatible";
  header.min_reader_version = 6;
  std::memcpy(bytes.data(), &header, sizeof(header));
  Seal(&bytes);
  const auto newer = ParsePlan(bytes, "a.hplan").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(newer));
  EXPECT_TRUE(absl::StrContains(newer.message(), "version 6 at least"))
      << newer;
}

TEST(PlanFileTest, ContradictionsAreFound) {
  const std::vector<std::function<void(planfb::PlanT&)>> changes = {
      [](auto& plan) { plan.binding = nullptr; },
      [](auto& plan) { plan.binding->trace = nullptr; },
      [](auto& plan) { plan.edges[0]->to = 12; },
      [](auto& plan) { plan.edges[0]->from = ~0u; },
      [](auto& plan) { plan.edges[0]->to = plan.edges[0]->from; },
      [](auto& plan) {
        plan.edges[1]->from = plan.edges[0]->from;
        plan.edges[1]->to = plan.edges[0]->to;
      },
      [](auto& plan) { plan.edges[0]->type = 9; },
      [](auto& plan) { plan.edges[0]->from_port = 9; },
      [](auto& plan) { plan.edges[0]->to_port = 1; },
      [](auto& plan) { plan.nodes[0]->branch = 2; },
      [](auto& plan) { plan.nodes[0]->start_us = -1; },
      [](auto& plan) {
        plan.estimate_us = std::numeric_limits<double>::quiet_NaN();
      },
      [](auto& plan) { plan.branches = 0; },
      [](auto& plan) { plan.branches = kMaxBranches + 1; },
      [](auto& plan) { plan.nodes.pop_back(); },
      [](auto& plan) { plan.binding->images.clear(); },
  };
  ASSERT_TRUE(ParsePlan(Changed([](auto&) {}), "a").ok());
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto read = ParsePlan(Changed(changes[i]), "a.hplan");
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << i << read.status();
    EXPECT_TRUE(
        absl::StrContains(read.status().message(), "a.hplan contradicts"))
        << read.status();
  }
}

TEST(PlanFileTest, WhatALaterVersionMayAddIsAClearError) {
  const std::vector<std::function<void(planfb::PlanT&)>> changes = {
      [](auto& plan) { plan.edges[0]->mechanism = planfb::Mechanism{3}; },
      [](auto& plan) { plan.level = planfb::Level{3}; },
      [](auto& plan) { plan.level = planfb::Level{0}; },
      [](auto& plan) { plan.style = planfb::Style{3}; },
      [](auto& plan) { plan.nodes[0]->kind = planfb::NodeKind{4}; },
      [](auto& plan) { plan.nodes[0]->prologue = planfb::Prologue{4}; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto read = ParsePlan(Changed(changes[i]), "a.hplan");
    EXPECT_TRUE(absl::IsUnimplemented(read.status())) << i << read.status();
    EXPECT_TRUE(absl::StrContains(read.status().message(), "update heddle"));
  }
}

TEST(PlanFileTest, APlanForSomethingElseSaysWhatDiffersAndWhatToDo) {
  const PlanBinding plan = RandomFile(1).binding;
  EXPECT_TRUE(CheckBinding(plan, plan, "a.hplan").ok());
  const auto differs = [&](const std::function<void(PlanBinding&)>& change,
                           const std::string& what) {
    PlanBinding here = plan;
    change(here);
    const absl::Status status = CheckBinding(plan, here, "a.hplan");
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << what;
    EXPECT_TRUE(absl::StrContains(status.message(), "a.hplan")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), what)) << status;
  };
  differs([](auto& b) { b.trace[3] = 99; }, "01020304");
  differs([](auto& b) { b.end_record = 201; }, "records 100 to 201");
  differs([](auto& b) { b.compute_major = 10; }, "sm_90, and this one sm_100");
  differs([](auto& b) { b.multiprocessors = 114; }, "132, and this one 114");
  differs([](auto& b) { b.device_name = "NVIDIA H100"; }, "NVIDIA H100");
  PlanBinding unknown = plan;
  unknown.device_name.clear();
  unknown.multiprocessors = 0;
  unknown.driver_version = 12040;
  EXPECT_TRUE(CheckBinding(plan, unknown, "a.hplan").ok());

  const std::vector<OperationIdentity> operations = RandomFile(1).operations;
  EXPECT_TRUE(CheckOperations(operations, operations, "a").ok());
  std::vector<OperationIdentity> others = operations;
  others.pop_back();
  EXPECT_TRUE(absl::StrContains(
      CheckOperations(operations, others, "a").message(), "has 11"));
  for (size_t i = 0; i < operations.size(); ++i) {
    others = operations;
    others[i].grid[1] += 1;
    others[i].name += "x";
    const absl::Status status = CheckOperations(operations, others, "a");
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  absl::StrCat("operation ", i, " is ")))
        << status;
  }
}

}  // namespace
}  // namespace heddle::plan
