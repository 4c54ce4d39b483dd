// SPDX-License-Identifier: Apache-2.0
// Plans on the host device: patched kernels in rewritten graphs give what the
// kernels give one after another, and wrong plans are seen.

#include "tests/unit/hostdevice/device_test.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "absl/types/span.h"
#include "runtime/cubin/patch.h"
#include "runtime/plan/overlap.h"
#include "tests/unit/plan/mix.h"
#include "tests/unit/plan/random_graph.h"

namespace heddle::plan {
namespace {

using cubin::Prologue;

constexpr uint32_t kCount = 8;  // values of a buffer; no grid has more blocks
using Buffer = std::vector<unsigned>;

// What a node does: a kernel reads up to three buffers and writes one; other
// nodes fill one.
struct Job {
  std::vector<uint32_t> reads;
  uint32_t writes = 0;
  uint32_t salt = 0;
};

// A graph with jobs that its edges allow: whoever touches a buffer is ordered
// with whoever touched it before, unless both only read it.
struct Program {
  Graph graph;
  std::vector<Job> jobs;
};

Program RandomProgram(Random& random, const GraphMix& mix) {
  Program program;
  program.graph = RandomGraph(random, mix);
  const auto count = static_cast<uint32_t>(program.graph.nodes.size());
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (uint32_t to = 0; to < count; ++to) {
    for (const Edge& edge : program.graph.edges) {
      if (edge.to != to) continue;
      before[to][edge.from] = true;
      // All kernels with PDL of their own wait here, so that this holds for
      // programmatic edges, too.
      for (uint32_t i = 0; i < count; ++i) {
        if (before[edge.from][i]) before[to][i] = true;
      }
    }
  }
  struct Touched {
    std::vector<uint32_t> readers;
    std::vector<uint32_t> writer;  // at most one
  };
  std::vector<Touched> buffers(count);
  for (uint32_t node = 0; node < count; ++node) {
    const auto ordered = [&](const std::vector<uint32_t>& others) {
      return std::all_of(others.begin(), others.end(),
                         [&](uint32_t other) { return before[node][other]; });
    };
    Job job;
    job.salt = static_cast<uint32_t>(random());
    std::vector<uint32_t> readable;
    std::vector<uint32_t> writable;
    for (uint32_t i = 0; i < count; ++i) {
      if (!ordered(buffers[i].writer)) continue;
      readable.push_back(i);
      if (ordered(buffers[i].readers)) writable.push_back(i);
    }
    // If none is, one of its own that nobody reads.
    job.writes = count + node;
    if (!writable.empty()) {
      job.writes =
          writable[Below(random, static_cast<uint32_t>(writable.size()))];
    }
    if (program.graph.nodes[node].kernel) {
      std::shuffle(readable.begin(), readable.end(), random);
      for (const uint32_t i : readable) {
        // Recent results most of all.
        if (i == job.writes ||
            (buffers[i].writer.empty() && OneIn(random, 2)) ||
            job.reads.size() == 3) {
          continue;
        }
        job.reads.push_back(i);
        buffers[i].readers.push_back(node);
      }
    }
    if (job.writes < count) buffers[job.writes] = {{}, {node}};
    program.jobs.push_back(std::move(job));
  }
  return program;
}

std::vector<Buffer> StartingMemory(const Program& program) {
  std::vector<Buffer> memory(2 * program.jobs.size(), Buffer(kCount));
  for (uint32_t i = 0; i < memory.size(); ++i) {
    for (uint32_t k = 0; k < kCount; ++k) {
      memory[i][k] = 0xabcd0000 + i * 1000 + k;
    }
  }
  return memory;
}

// One node after another, on the host.
std::vector<Buffer> RunSerially(const Program& program) {
  std::vector<Buffer> memory = StartingMemory(program);
  for (uint32_t node = 0; node < program.jobs.size(); ++node) {
    const Job& job = program.jobs[node];
    Buffer& out = memory[job.writes];
    if (!program.graph.nodes[node].kernel) {
      std::fill(out.begin(), out.end(), job.salt);
      continue;
    }
    const unsigned* in[3] = {};
    for (size_t k = 0; k < job.reads.size(); ++k) {
      in[k] = memory[job.reads[k]].data();
    }
    for (uint32_t b = 0; b < program.graph.nodes[node].needs.blocks; ++b) {
      out[b] = Mix(in, kCount, job.salt, b);
    }
  }
  return memory;
}

class PlanDeviceTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    LoadPatched();
    limits_.multiprocessors =
        Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    limits_.blocks_per_sm =
        Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    limits_.threads_per_sm =
        Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    limits_.registers_per_sm =
        Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    limits_.shared_per_sm =
        Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    limits_.reserved_shared_per_block =
        Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    limits_.warp_threads = Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  }

  static uint32_t Attribute(CUdevice_attribute attribute) {
    int value = 0;
    EXPECT_OK(cuDeviceGetAttribute(&value, attribute, 0));
    return static_cast<uint32_t>(value);
  }

  // Gives the kernels of a program blocks that need much.
  void MakeDemanding(Random& random, Program* program) {
    for (Node& node : program->graph.nodes) {
      int registers = 0;
      EXPECT_OK(
          cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                             Function(node.has_own_pdl ? "mix_own" : "mix")));
      node.needs.registers = static_cast<uint32_t>(registers);
      node.needs.threads = 32u << Below(random, 6);
      node.needs.shared_bytes = OneIn(random, 3) ? 10000 * Below(random, 5) : 0;
    }
  }

  void LoadPatched() {
    modules_ = {{Prologue::kNone, module_}};
    const auto* bytes = reinterpret_cast<const uint8_t*>(image_.data());
    for (const Prologue prologue :
         {Prologue::kWait, Prologue::kTriggerWait, Prologue::kWaitTrigger}) {
      const auto patched = cubin::PatchCubin(
          absl::MakeConstSpan(bytes, image_.size()), {.prologue = prologue});
      ASSERT_TRUE(patched.ok()) << patched.status();
      for (const cubin::KernelPatch& kernel : patched->kernels) {
        ASSERT_TRUE(kernel.patched) << kernel.reason;
      }
      ASSERT_CUDA(cuModuleLoadData(&modules_[prologue], patched->image.data()));
    }
  }

  // A program as a graph of the driver.
  struct Built {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr memory = 0;
  };

  void AddNode(const Program& program, const OverlapPlan& plan, uint32_t i,
               const Built& built, CUgraphNode* node) {
    const Job& job = program.jobs[i];
    const auto address = [&](size_t buffer) {
      return built.memory + buffer * kCount * sizeof(unsigned);
    };
    if (!program.graph.nodes[i].kernel) {
      CUDA_MEMSET_NODE_PARAMS params{};
      params.dst = address(job.writes);
      params.value = job.salt;
      params.elementSize = sizeof(unsigned);
      params.width = kCount;
      params.height = 1;
      ASSERT_CUDA(cuGraphAddMemsetNode(node, built.graph, nullptr, 0, &params,
                                       context_));
      return;
    }
    CUfunction function = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(
        &function, modules_.at(plan.prologue[i]),
        program.graph.nodes[i].has_own_pdl ? "mix_own" : "mix"));
    CUdeviceptr out = address(job.writes);
    CUdeviceptr in[3] = {};
    for (size_t k = 0; k < job.reads.size(); ++k) in[k] = address(job.reads[k]);
    unsigned count = kCount;
    unsigned salt = job.salt;
    void* pointers[] = {&out, &in[0], &in[1], &in[2], &count, &salt};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function;
    params.gridDimX =
        static_cast<unsigned>(program.graph.nodes[i].needs.blocks);
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = program.graph.nodes[i].needs.threads;
    params.blockDimY = params.blockDimZ = 1;
    params.sharedMemBytes = program.graph.nodes[i].needs.shared_bytes;
    params.kernelParams = pointers;
    ASSERT_CUDA(cuGraphAddKernelNode(node, built.graph, nullptr, 0, &params));
    if (program.graph.nodes[i].needs.cooperative) {
      CUkernelNodeAttrValue value{};
      value.cooperative = 1;
      ASSERT_CUDA(cuGraphKernelNodeSetAttribute(
          *node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    }
  }

  Built Build(const Program& program, const OverlapPlan& plan) {
    Built built;
    built.memory =
        Allocate(2 * program.jobs.size() * kCount * sizeof(unsigned));
    EXPECT_OK(cuGraphCreate(&built.graph, 0));
    std::vector<CUgraphNode> nodes(program.jobs.size());
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      AddNode(program, plan, i, built, &nodes[i]);
    }
    for (const Edge& edge : plan.edges) {
      CUgraphEdgeData data{};
      data.type = edge.type;
      data.from_port = edge.from_port;
      EXPECT_OK(cuGraphAddDependencies_v2(built.graph, &nodes[edge.from],
                                          &nodes[edge.to], &data, 1));
    }
    EXPECT_OK(cuGraphInstantiateWithFlags(&built.exec, built.graph, 0));
    return built;
  }

  void Free(const Built& built) {
    EXPECT_OK(cuGraphExecDestroy(built.exec));
    EXPECT_OK(cuGraphDestroy(built.graph));
    EXPECT_OK(cuMemFree(built.memory));
  }

  CUresult Run(const Program& program, const Built& built, uint64_t seed,
               std::vector<Buffer>* out) {
    std::vector<Buffer> memory = StartingMemory(program);
    for (size_t i = 0; i < memory.size(); ++i) {
      const CUdeviceptr at = built.memory + i * kCount * sizeof(unsigned);
      EXPECT_OK(cuMemcpyHtoD(at, memory[i].data(), kCount * sizeof(unsigned)));
    }
    EXPECT_OK(cuCtxSynchronize());
    heddleHostDeviceSetSeed(seed);
    EXPECT_OK(cuGraphLaunch(built.exec, nullptr));
    const CUresult result = cuCtxSynchronize();
    if (result != CUDA_SUCCESS) return result;
    for (size_t i = 0; i < memory.size(); ++i) {
      const CUdeviceptr at = built.memory + i * kCount * sizeof(unsigned);
      EXPECT_OK(cuMemcpyDtoH(memory[i].data(), at, kCount * sizeof(unsigned)));
    }
    *out = std::move(memory);
    return result;
  }

  // Of `seeds` runs: how many end with the memory that the serial order leaves.
  int RightRuns(const Program& program, const OverlapPlan& plan, int seeds) {
    const std::vector<Buffer> right = RunSerially(program);
    const Built built = Build(program, plan);
    int good = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      std::vector<Buffer> memory;
      EXPECT_OK(Run(program, built, static_cast<uint64_t>(seed), &memory));
      good += memory == right ? 1 : 0;
    }
    Free(built);
    return good;
  }

  // Each kernel reads what the one before it wrote.
  static Program Chain(uint32_t count, uint32_t blocks) {
    Program program;
    Node node;
    node.kernel = node.patchable = true;
    node.needs = {.blocks = blocks, .threads = 32, .registers = 32};
    program.graph.nodes.assign(count, node);
    for (uint32_t i = 0; i < count; ++i) {
      Job job{{}, i, i};
      if (i > 0) {
        program.graph.edges.push_back({i - 1, i});
        job.reads = {i - 1};
      }
      program.jobs.push_back(job);
    }
    return program;
  }

  std::map<Prologue, CUmodule> modules_;
  DeviceLimits limits_;
};

TEST_F(PlanDeviceTest, RandomGraphsGiveWhatTheSerialOrderGives) {
  Random random(8);
  constexpr int kGraphs = 3000;
  uint32_t converted = 0;
  uint32_t launch_order = 0;
  for (int graphs = 0; graphs < kGraphs; ++graphs) {
    GraphMix mix;
    mix.max_nodes = 10;
    mix.own_launch_order = false;
    mix.max_blocks = graphs % 2 == 0 ? kCount : 2;
    // Cooperative grids must find room for all of their blocks.
    mix.cooperative = graphs % 3 == 0 ? 0 : 12;
    Program program = RandomProgram(random, mix);
    if (mix.cooperative == 0) MakeDemanding(random, &program);
    for (const Style style : {Style::kProgrammaticEarly, Style::kProgrammatic,
                              Style::kLaunchOrder}) {
      const auto plan = PlanOverlap(program.graph, style, limits_);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_TRUE(CheckOrder(program.graph, *plan).ok());
      constexpr int kSeeds = 6;
      ASSERT_EQ(RightRuns(program, *plan, kSeeds), kSeeds)
          << "graph " << graphs << ", style " << static_cast<int>(style);
      converted += plan->converted;
      launch_order += plan->launch_order;
    }
  }
  std::printf("%d graphs, %u edges converted, %u to launch order\n", kGraphs,
              converted, launch_order);
  EXPECT_GT(converted, 500u);
  EXPECT_GT(launch_order, 50u);
}

TEST_F(PlanDeviceTest, WrongPlansOfRandomGraphsAreRefusedOrHarmless) {
  Random random(9);
  int wrong = 0;
  for (int round = 0; round < 600; ++round) {
    GraphMix mix;
    mix.max_nodes = 6;
    mix.own_edges = 0;
    mix.max_blocks = 2;
    const Program program = RandomProgram(random, mix);
    OverlapPlan plan = RandomPlan(random, program.graph);
    for (Edge& edge : plan.edges) {
      // Nothing that could get stuck.
      if (edge.from_port != kPortLaunchOrder) continue;
      edge.from_port = kPortDefault;
      edge.type = kTypeDefault;
    }
    const bool accepted = CheckOrder(program.graph, plan).ok();
    const int good = RightRuns(program, plan, 6);
    if (accepted) {
      ASSERT_EQ(good, 6) << "round " << round;
    }
    wrong += good < 6 ? 1 : 0;
  }
  std::printf("%d of 600 random plans gave a wrong answer\n", wrong);
  EXPECT_GT(wrong, 20);
}

TEST_F(PlanDeviceTest, AMissingWaitGivesAWrongAnswer) {
  const Program program = Chain(3, kCount);
  auto plan = PlanOverlap(program.graph, Style::kProgrammaticEarly, limits_);
  ASSERT_TRUE(plan.ok());
  constexpr int kSeeds = 60;
  EXPECT_EQ(RightRuns(program, *plan, kSeeds), kSeeds);
  plan->prologue[1] = Prologue::kNone;
  EXPECT_FALSE(CheckOrder(program.graph, *plan).ok());
  EXPECT_LT(RightRuns(program, *plan, kSeeds), kSeeds);
}

TEST_F(PlanDeviceTest, AWaitBehindAnUnorderedMiddleIsNotEnough) {
  // The last kernel reads what the first wrote, and the middle does not wait.
  Program program = Chain(3, kCount);
  program.jobs[1].reads = {};
  program.jobs[2].reads = {0};
  auto plan = PlanOverlap(program.graph, Style::kProgrammatic, limits_);
  ASSERT_TRUE(plan.ok());
  constexpr int kSeeds = 60;
  EXPECT_EQ(RightRuns(program, *plan, kSeeds), kSeeds);
  plan->prologue[1] = Prologue::kNone;
  EXPECT_FALSE(CheckOrder(program.graph, *plan).ok());
  EXPECT_LT(RightRuns(program, *plan, kSeeds), kSeeds);
}

TEST_F(PlanDeviceTest, AnEarlyTriggerBreaksTheProgramsOwnOverlap) {
  // The last kernel relies on what was complete when its producer started: it
  // reads what the first wrote, and does not wait.
  Program program = Chain(3, 2);
  program.graph.edges[1].type = kTypeProgrammatic;
  program.graph.edges[1].from_port = kPortProgrammatic;
  program.graph.nodes[2].patchable = false;
  program.jobs[1].reads = {};
  program.jobs[2].reads = {0};
  auto plan = PlanOverlap(program.graph, Style::kProgrammaticEarly, limits_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->converted, 0u);
  constexpr int kSeeds = 60;
  EXPECT_EQ(RightRuns(program, *plan, kSeeds), kSeeds);
  plan->edges[0].type = kTypeProgrammatic;
  plan->edges[0].from_port = kPortProgrammatic;
  plan->prologue[0] = plan->prologue[1] = Prologue::kTriggerWait;
  EXPECT_FALSE(CheckOrder(program.graph, *plan).ok());
  EXPECT_LT(RightRuns(program, *plan, kSeeds), kSeeds);
}

TEST_F(PlanDeviceTest, LaunchOrderWithoutTheProofGetsStuck) {
  const Program program = Chain(3, kCount);
  // As if for a large device; this one has eight places.
  const auto wrong = PlanOverlap(program.graph, Style::kLaunchOrder, {});
  ASSERT_TRUE(wrong.ok());
  ASSERT_EQ(wrong->launch_order, 2u);
  EXPECT_TRUE(CheckOrder(program.graph, *wrong).ok());
  EXPECT_FALSE(CheckResidency(program.graph, *wrong, limits_).ok());
  // The right one first: a deadlock ends the context.
  const auto right = PlanOverlap(program.graph, Style::kLaunchOrder, limits_);
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->launch_order, 0u);
  EXPECT_EQ(right->converted, 2u);
  constexpr int kSeeds = 100;
  EXPECT_EQ(RightRuns(program, *right, kSeeds), kSeeds);

  const Built built = Build(program, *wrong);
  CUresult result = CUDA_SUCCESS;
  testing::internal::CaptureStderr();
  for (uint64_t seed = 1; seed < 500 && result == CUDA_SUCCESS; ++seed) {
    std::vector<Buffer> memory;
    result = Run(program, built, seed, &memory);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_TIMEOUT, result);
  EXPECT_NE(text.find("DEADLOCK"), std::string::npos) << text;
  EXPECT_NE(text.find("wait for mix"), std::string::npos) << text;
  Restart();
}

TEST_F(PlanDeviceTest, LaunchOrderWithTheProofIsUsedAndRight) {
  const Program program = Chain(6, 2);
  const auto plan = PlanOverlap(program.graph, Style::kLaunchOrder, limits_);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(plan->launch_order, 2u);
  EXPECT_LT(plan->launch_order, 5u);
  constexpr int kSeeds = 200;
  EXPECT_EQ(RightRuns(program, *plan, kSeeds), kSeeds);
}

}  // namespace
}  // namespace heddle::plan
