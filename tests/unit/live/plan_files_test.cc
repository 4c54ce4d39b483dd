// SPDX-License-Identifier: Apache-2.0
// Plans of files in a program: used for the graphs that they fit, refused for
// others with the reason, and never believed about what memory needs.

#include <algorithm>
#include <memory>

#include "runtime/rewrite/graph_model.h"
#include "runtime/rewrite/node_times.h"
#include "runtime/rewrite/planned.h"
#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

constexpr char kName[] = "test.hplan";

class LivePlanFilesTest : public LiveTest {
 protected:
  // What `heddle plan` makes of a trace of `graph`.
  static plan::PlanFile FileFor(CUgraph graph) {
    Optimizer& optimizer = *Optimizer::Get();
    const device::Driver& driver = optimizer.driver();
    plan::PlanFile file;
    auto model = rewrite::ReadGraph(driver, graph, &optimizer.code());
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return file;
    const auto order = rewrite::SubmissionOrder(*model);
    EXPECT_TRUE(order.ok()) << order.status();
    if (!order.ok()) return file;
    const GraphEffects effects = optimizer.accesses().Find(*model);
    plan::PlanInput input = rewrite::PlanInputOf(*model, *order);
    for (const uint32_t node : *order) {
      input.effects.push_back(effects.nodes[node]);
      input.durations_us.push_back(3.0);
      const rewrite::GraphNode& from = model->nodes[node];
      plan::OperationIdentity identity;
      if (from.type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const CUDA_KERNEL_NODE_PARAMS& shape = from.launch.shape();
        identity.kind = plan::OperationKind::kKernel;
        identity.name = from.source.name;
        identity.image = from.source.code->image_hash;
        identity.grid = {shape.gridDimX, shape.gridDimY, shape.gridDimZ};
        identity.block = {shape.blockDimX, shape.blockDimY, shape.blockDimZ};
        identity.shared_bytes = shape.sharedMemBytes;
        identity.param_bytes =
            static_cast<uint32_t>(from.launch.Block().size());
      } else {
        identity.kind = plan::OperationKind::kFill;
        identity.name = "fill of 32 B";  // as traces name it
      }
      file.operations.push_back(identity);
    }
    plan::PlanOptions options;
    options.branches.max_branches = file.max_branches = 3;
    options.limits = rewrite::ReadLimits(driver, 0);
    auto plan = plan::MakePlan(input, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (plan.ok()) file.plan = *std::move(plan);
    const auto binding = rewrite::BindToDevice({}, driver, 0);
    EXPECT_TRUE(binding.ok()) << binding.status();
    if (binding.ok()) file.binding = *binding;
    return file;
  }
  // The program with `file` tried on its graph, from instantiation on. Every
  // launch leaves what it should.
  void Run(const Program& program, const plan::PlanFile& file) {
    LiveOptions options = Options();
    options.styles = {plan::Style::kProgrammatic};
    options.plans = {{kName, std::make_shared<plan::PlanFile>(file)}};
    StartOptimizer(options);
    PlaceApart(program);
    const CUgraph graph = Build(program, nullptr);
    const CUgraphExec exec = Instantiate(graph);
    Memory expected = program.Start();
    for (unsigned launch = 0; launch < 8; ++launch) {
      heddleHostDeviceSetSeed(++seed_);
      for (unsigned& value : expected[0]) value = value * 69069 + launch;
      Write(0, expected[0]);
      Launch(exec);
      program.RunSerially(&expected);
      ASSERT_EQ(ReadAll(program), expected) << "launch " << launch;
    }
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec));
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
    FreeApart();
    ASSERT_EQ(Reports().size(), 1u);
    EXPECT_EQ(Reports().back()["outcome"], "rewritten") << Reports().back();
  }
  plan::PlanFile MakeFile(const Program& program) {
    PlaceApart(program);
    const CUgraph graph = Build(program, nullptr);
    plan::PlanFile file = FileFor(graph);
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
    FreeApart();
    EXPECT_GT(file.plan.branches, 1u);
    return file;
  }
  void ExpectRefused(const Program& program, const plan::PlanFile& file,
                     const std::string& reason) {
    Run(program, file);
    const nlohmann::json report = Reports().back();
    EXPECT_EQ(report["level"], "O1") << report;
    bool said = false;
    for (const std::string note : report["notes"]) {
      said = said || (note.rfind("plan test.hplan: ", 0) == 0 &&
                      note.find(reason) != std::string::npos);
    }
    EXPECT_TRUE(said) << reason << " is not in " << report;
  }

  static Program Lanes() {
    Program program = Program::Lanes(3, 3, 2);
    program.steps[1].kernel = false;
    program.steps[1].reads.clear();
    return program;
  }

  uint64_t seed_ = 0;
};

TEST_F(LivePlanFilesTest, APlanThatFitsIsUsed) {
  const Program program = Lanes();
  const plan::PlanFile file = MakeFile(program);
  Run(program, file);
  const nlohmann::json report = Reports().back();
  EXPECT_EQ(report["style"], "plan test.hplan") << report;
  EXPECT_EQ(report["level"], "O2") << report;
  EXPECT_EQ(report["branches"], file.plan.branches) << report;
  EXPECT_EQ(report["converted"], file.plan.converted) << report;
}

// Also from the bytes of a file.
TEST_F(LivePlanFilesTest, PlansOfRandomPrograms) {
  Random random(31);
  int used = 0;
  for (int i = 0; i < 40; ++i) {
    const Program program = Program::InLine(random, 12, 8);
    PlaceApart(program);
    const CUgraph graph = Build(program, nullptr);
    const plan::PlanFile made = FileFor(graph);
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
    FreeApart();
    const auto bytes = plan::SerializePlan(made);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto file = plan::ParsePlan(*bytes, kName);
    ASSERT_TRUE(file.ok()) << file.status();
    const bool two_kernels =
        std::count_if(program.steps.begin(), program.steps.end(),
                      [](const Step& step) { return step.kernel; }) >= 2;
    if (!two_kernels || made.plan.converted == 0) continue;
    Run(program, *file);
    ASSERT_FALSE(HasFailure()) << "program " << i;
    const nlohmann::json report = Reports().back();
    EXPECT_EQ(report["notes"].dump().find("plan test.hplan: "),
              std::string::npos)
        << report;
    if (report["style"] == "plan test.hplan") ++used;
  }
  EXPECT_GT(used, 4);
}

TEST_F(LivePlanFilesTest, APlanForSomethingElseIsRefused) {
  const Program program = Lanes();
  const plan::PlanFile right = MakeFile(program);
  const auto refused = [&](const std::function<void(plan::PlanFile*)>& change,
                           const std::string& reason) {
    plan::PlanFile file = right;
    change(&file);
    ExpectRefused(program, file, reason);
    ASSERT_FALSE(HasFailure()) << reason;
  };
  refused([](auto* file) { file->operations[2].name = "another"; }, "another");
  refused([](auto* file) { file->operations[2].image.lo ^= 1; }, "image");
  refused([](auto* file) { file->operations[2].grid[0] += 1; }, "grid");
  refused([](auto* file) { file->operations[2].block[0] += 1; }, "block");
  refused([](auto* file) { file->operations[2].shared_bytes += 16; }, "shared");
  refused([](auto* file) { file->operations[2].param_bytes += 8; }, "param");
  refused(
      [](auto* file) { std::swap(file->operations[1], file->operations[2]); },
      "fold");
  refused([](auto* file) { file->binding.device_name = "GPU 9"; }, "GPU 9");
  refused([](auto* file) { file->binding.multiprocessors += 1; },
          "multiprocessors");
  // The trace and its step are none of the program's business, nor what
  // drivers have different names for.
  for (const auto& change : std::vector<std::function<void(plan::PlanFile*)>>{
           [](auto* file) { file->binding.trace[3] = 7; },
           [](auto* file) { file->binding.end_record = 1000; },
           [](auto* file) { file->binding.driver_version = 1; },
           [](auto* file) {
             file->operations[1].name = "a fill, as it were";
           }}) {
    plan::PlanFile file = right;
    change(&file);
    Run(program, file);
    EXPECT_EQ(Reports().back()["notes"].dump().find("test.hplan: "),
              std::string::npos)
        << Reports().back();
  }
}

TEST_F(LivePlanFilesTest, APlanForMoreOrFewerOperationsIsRefused) {
  const plan::PlanFile file = MakeFile(Lanes());
  Program longer = Lanes();
  longer.steps.push_back(longer.steps.back());
  longer.steps.back().after = {static_cast<uint32_t>(longer.steps.size() - 2)};
  longer.steps.back().writes = longer.buffers++;
  ExpectRefused(longer, file, "11");
  Program shorter = Lanes();
  shorter.steps.pop_back();
  ExpectRefused(shorter, file, "9");
}

// The same launches on memory that they share: the plan fits by all that it
// says, and leaves out an order that is needed here.
TEST_F(LivePlanFilesTest, APlanThatIsWrongForThisMemoryIsRefused) {
  const plan::PlanFile file = MakeFile(Lanes());
  Program program = Lanes();
  program.steps[3].reads = {0, 3};  // of another lane
  ExpectRefused(program, file, "read-after-write");
}

// Every edge that bytes force, left out.
TEST_F(LivePlanFilesTest, APlanWithoutAnEdgeIsRefused) {
  const Program program = Lanes();
  const plan::PlanFile right = MakeFile(program);
  int refused = 0;
  for (size_t i = 0; i < right.plan.edges.size(); ++i) {
    if (right.plan.edges[i].reasons.empty()) continue;
    plan::PlanFile file = right;
    file.plan.edges.erase(file.plan.edges.begin() + static_cast<long>(i));
    Run(program, file);
    ASSERT_FALSE(HasFailure()) << "without edge " << i;
    if (Reports().back()["notes"].dump().find("plan test.hplan: ") !=
        std::string::npos) {
      ++refused;
    }
  }
  // Others may imply it.
  EXPECT_GT(refused, 4);
}

// ---- what nodes touch
// --------------------------------------------------------

TEST_F(LivePlanFilesTest, WhatNodesOfEachKindTouch) {
  const CUdeviceptr out = Values(Buffer(16, 0));
  const CUdeviceptr in = Values(Buffer(16, 0));
  const CUdeviceptr counter = Values(Buffer(16, 0));
  const CUdeviceptr table = Values(Buffer(16, 0));
  const CUdeviceptr unused = Values(Buffer(16, 0));
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  std::vector<CUgraphNode> nodes;
  nodes.push_back(Add(graph, nullptr, Kernel("count_up"), counter + 8));
  nodes.push_back(AddFold(graph, nullptr, out, in, 1));
  nodes.push_back(Add(graph, nullptr, Kernel("follow"), table, 1u));
  CUfunction foreign = nullptr;  // of a module that was loaded past heddle
  EXPECT_OK(cuModuleGetFunction(&foreign, module_, "count_up"));
  nodes.push_back(Add(graph, nullptr, foreign, counter));
  nodes.emplace_back();
  EXPECT_OK(LIVE(cuGraphAddEmptyNode)(&nodes.back(), graph, nullptr, 0));
  nodes.emplace_back();
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = out + 4;
  fill.elementSize = 4;
  fill.width = 3;
  fill.height = 1;
  EXPECT_OK(LIVE(cuGraphAddMemsetNode)(&nodes.back(), graph, nullptr, 0, &fill,
                                       context_));
  nodes.emplace_back();
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = in;
  copy.dstDevice = out + 16;
  copy.WidthInBytes = 20;
  copy.Height = copy.Depth = 1;
  EXPECT_OK(LIVE(cuGraphAddMemcpyNode)(&nodes.back(), graph, nullptr, 0, &copy,
                                       context_));
  Optimizer& optimizer = *Optimizer::Get();
  const auto model =
      rewrite::ReadGraph(optimizer.driver(), graph, &optimizer.code());
  ASSERT_TRUE(model.ok()) << model.status();
  const GraphEffects found = optimizer.accesses().Find(*model);
  ASSERT_EQ(found.nodes.size(), nodes.size());
  const auto of = [&](size_t node) -> const plan::Effects& {
    return found
        .nodes[model->index.at(reinterpret_cast<uint64_t>(nodes[node]))];
  };
  const auto bytes = [](uint64_t address, uint64_t size) {
    return access::ExtentSet({{address, size}});
  };
  EXPECT_EQ(of(0).reads, bytes(counter + 8, 4));
  EXPECT_EQ(of(0).writes, bytes(counter + 8, 4));
  EXPECT_FALSE(of(0).reads_anything || of(0).writes_anything);
  // An element a block; a bound for what is read in a loop.
  EXPECT_EQ(of(1).writes, bytes(out, 8));
  EXPECT_TRUE(bytes(in, kCount * 4).Minus(of(1).reads).empty());
  EXPECT_TRUE(of(1).reads.Minus(bytes(out, 8)).Minus(bytes(in, 64)).empty());
  EXPECT_FALSE(of(1).reads_anything || of(1).writes_anything);
  EXPECT_TRUE(of(2).reads_anything || of(2).writes_anything);
  EXPECT_TRUE(of(2).writes_anything);
  EXPECT_TRUE(of(3).reads_anything && of(3).writes_anything);
  EXPECT_TRUE(of(4).none());
  EXPECT_EQ(of(5).writes, bytes(out + 4, 12));
  EXPECT_TRUE(of(5).reads.empty());
  EXPECT_EQ(of(6).writes, bytes(out + 16, 20));
  EXPECT_EQ(of(6).reads, bytes(in, 20));
  EXPECT_EQ(found.unknown, 2u);
  EXPECT_NE(found.why, "");
  const auto rests_on = [&](CUdeviceptr address) {
    return std::find(found.rests_on.begin(), found.rests_on.end(),
                     access::Extent{address, 64}) != found.rests_on.end();
  };
  EXPECT_TRUE(rests_on(out) && rests_on(in) && rests_on(counter));
  EXPECT_FALSE(rests_on(unused));
}

// ---- how long nodes take ----------------------------------------------------

// Each node is run once a run, one after the other, whatever the graph's order
// leaves open; the graph stays what it is.
TEST_F(LivePlanFilesTest, NodesAreTimedOneByOne) {
  Random random(37);
  for (int i = 0; i < 30; ++i) {
    const Program program =
        i % 2 == 0 ? Program::Any(random, 10) : Program::InLine(random, 10, 6);
    PlaceApart(program);
    std::vector<CUgraphNode> nodes;
    const CUgraph graph = Build(program, &nodes);
    Optimizer& optimizer = *Optimizer::Get();
    const auto model =
        rewrite::ReadGraph(optimizer.driver(), graph, &optimizer.code());
    ASSERT_TRUE(model.ok()) << model.status();
    const int runs = 1 + i % 3;
    heddleHostDeviceSetSeed(++seed_);
    const auto times =
        rewrite::MeasureNodes(optimizer.driver(), graph, *model, stream_, runs);
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_EQ(times->size(), nodes.size());
    for (const double time : *times) EXPECT_GT(time, 0);
    Memory expected = program.Start();
    for (int run = 0; run < runs; ++run) program.RunSerially(&expected);
    EXPECT_EQ(ReadAll(program), expected) << "program " << i;
    const auto after =
        rewrite::ReadGraph(optimizer.driver(), graph, &optimizer.code());
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->graph.edges, model->graph.edges);
    EXPECT_EQ(after->nodes.size(), model->nodes.size());
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
    FreeApart();
  }
}

// By index of the model, not in the order in which the nodes ran.
TEST_F(LivePlanFilesTest, TimesBelongToTheirNodes) {
  const CUdeviceptr out = Values(Buffer(4096, 0));
  const CUdeviceptr in = Values(Buffer(kCount, 1));
  for (int slow = 0; slow < 4; ++slow) {
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    std::vector<CUgraphNode> nodes;
    for (int i = 0; i < 4; ++i) {
      nodes.push_back(Add(graph, nullptr, Kernel("fold"), out, in,
                          CUdeviceptr{0}, CUdeviceptr{0}, kCount, 1u));
    }
    Arguments arguments;
    apart_ = {in, out};
    Step step;
    step.reads = {0};
    step.blocks = 4096;
    Fill(step, &arguments);
    apart_.clear();
    EXPECT_OK(LIVE(cuGraphKernelNodeSetParams)(nodes[static_cast<size_t>(slow)],
                                               &arguments.params));
    // Against the order in which they were added.
    for (size_t i = 1; i < nodes.size(); ++i) {
      EXPECT_OK(cuGraphAddDependencies_v2(graph, &nodes[i], &nodes[i - 1],
                                          nullptr, 1));
    }
    Optimizer& optimizer = *Optimizer::Get();
    const auto model =
        rewrite::ReadGraph(optimizer.driver(), graph, &optimizer.code());
    ASSERT_TRUE(model.ok()) << model.status();
    const auto times =
        rewrite::MeasureNodes(optimizer.driver(), graph, *model, stream_, 3);
    ASSERT_TRUE(times.ok()) << times.status();
    const auto slowest = std::max_element(times->begin(), times->end());
    const auto index = static_cast<size_t>(slowest - times->begin());
    EXPECT_EQ(model->nodes[index].handle, nodes[static_cast<size_t>(slow)]);
    EXPECT_OK(LIVE(cuGraphDestroy)(graph));
  }
}

}  // namespace
}  // namespace heddle::live
