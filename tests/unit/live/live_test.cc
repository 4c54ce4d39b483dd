// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/live/live_test.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/live/hooks.h"
#include "runtime/record/hooks.h"

namespace heddle::live {
namespace {

std::map<std::string, void*>& Hooks() {
  static auto* hooks = new std::map<std::string, void*>;
  return *hooks;
}

void InstallHooks() {
  static const HeddleInterposer interposer = [] {
    HeddleInterposer made{};
    made.abi_version = HEDDLE_HOOK_ABI_VERSION;
    made.struct_size = sizeof(made);
    made.real = RealSymbol;
    made.set_hook = [](const char* symbol, void* replacement) {
      Hooks()[symbol] = replacement;
      return 0;
    };
    return made;
  }();
  static std::once_flag once;
  std::call_once(once,
                 [] { record::InstallHooksBelow(&interposer, AllHooks()); });
}

// Reports and patched images of this process.
const std::string& Folder() {
  static const std::string* folder = [] {
    auto* path = new std::string(std::filesystem::temp_directory_path() /
                                 "heddle-live-XXXXXX");
    if (mkdtemp(path->data()) == nullptr) std::abort();
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    setenv("HEDDLE_CACHE_DIR", path->c_str(), 1);
    return path;
  }();
  return *folder;
}

}  // namespace

void* RealSymbol(const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); }

void* Route(const char* symbol) {
  const auto hook = Hooks().find(symbol);
  return hook != Hooks().end() ? hook->second : RealSymbol(symbol);
}

device::Driver HostDriver() {
  absl::StatusOr<device::Driver> driver =
      device::Driver::FromResolver(RealSymbol, "the host device");
  EXPECT_TRUE(driver.ok()) << driver.status();
  if (!driver.ok()) return {};
  // On the host device an event may still be open when a later one of its
  // stream has come; a real driver completes them in their order.
  driver->EventSynchronize = [](CUevent event) {
    const CUresult result = cuEventSynchronize(event);
    return result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
  };
  return *std::move(driver);
}

LiveOptions LiveTest::Options() {
  LiveOptions options;
  options.level = 1;
  options.verify_launches = 3;
  options.least_gain = 0;
  options.styles = {plan::Style::kProgrammatic, plan::Style::kProgrammaticEarly,
                    plan::Style::kLaunchOrder};
  return options;
}

void LiveTest::StartOptimizer(
    LiveOptions options, const std::function<void(device::Driver*)>& change) {
  static int number = 0;
  // Optimizers are for ever; leak checkers shall find them.
  static auto* all = new std::vector<Optimizer*>;
  setenv("HEDDLE_REPORT_FOR_TEST",
         (Folder() + "/report" + std::to_string(number++)).c_str(), 1);
  options.report_path = std::getenv("HEDDLE_REPORT_FOR_TEST");
  device::Driver driver = HostDriver();
  if (change != nullptr) change(&driver);
  Optimizer::Start(std::move(options), std::move(driver), nullptr);
  all->push_back(Optimizer::Get());
  program_ = LoadImage("kernels.cubin");
}

void LiveTest::SetUp() {
  DeviceTest::SetUp();
  InstallHooks();
  StartOptimizer();
  EXPECT_OK(LIVE(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
}

void LiveTest::TearDown() {
  EXPECT_OK(cuCtxSynchronize());
  DeviceTest::TearDown();
}

CUmodule LiveTest::LoadImage(const std::string& name) {
  images_.push_back(ReadImage(name));
  EXPECT_FALSE(images_.back().empty()) << name;
  CUmodule module = nullptr;
  EXPECT_OK(LIVE(cuModuleLoadData)(&module, images_.back().data()));
  return module;
}

CUfunction LiveTest::Kernel(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  EXPECT_OK(LIVE(cuModuleGetFunction)(&function, module, name));
  return function;
}

CUdeviceptr LiveTest::Reserve(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(LIVE(cuMemAlloc)(&address, bytes));
  return address;
}

CUdeviceptr LiveTest::Values(const Buffer& values) {
  const size_t bytes = values.size() * sizeof(unsigned);
  const CUdeviceptr address = Reserve(bytes);
  EXPECT_OK(LIVE(cuMemcpyHtoD)(address, values.data(), bytes));
  EXPECT_OK(LIVE(cuCtxSynchronize)());
  return address;
}

Buffer LiveTest::ReadBack(CUdeviceptr address, size_t count) {
  Buffer values(count);
  EXPECT_OK(
      LIVE(cuMemcpyDtoH)(values.data(), address, count * sizeof(unsigned)));
  return values;
}

void LiveTest::Place(const Program& program) {
  memory_ = Reserve(program.buffers * kCount * sizeof(unsigned));
  const Memory start = program.Start();
  for (uint32_t i = 0; i < program.buffers; ++i) Write(i, start[i]);
}

void LiveTest::PlaceApart(const Program& program) {
  apart_.clear();
  for (const Buffer& values : program.Start()) {
    apart_.push_back(Values(values));
  }
}

void LiveTest::FreeApart() {
  for (const CUdeviceptr address : apart_) EXPECT_OK(LIVE(cuMemFree)(address));
  apart_.clear();
}

void LiveTest::Write(uint32_t buffer, const Buffer& values) const {
  EXPECT_OK(
      LIVE(cuMemcpyHtoD)(At(buffer), values.data(), kCount * sizeof(unsigned)));
  // Else a kernel in a non-blocking stream may come before the data does.
  EXPECT_OK(LIVE(cuCtxSynchronize)());
}

Memory LiveTest::ReadAll(const Program& program) const {
  Memory memory;
  for (uint32_t i = 0; i < program.buffers; ++i) {
    memory.push_back(ReadBack(At(i), kCount));
  }
  return memory;
}

void LiveTest::Fill(const Step& step, Arguments* to) {
  to->out = At(step.writes);
  for (size_t k = 0; k < 3; ++k) {
    to->in[k] = k < step.reads.size() ? At(step.reads[k]) : 0;
  }
  to->count = kCount;
  to->salt = step.salt;
  void* pointers[] = {&to->out,   &to->in[0], &to->in[1],
                      &to->in[2], &to->count, &to->salt};
  std::copy(std::begin(pointers), std::end(pointers), to->pointers);
  to->params = {};
  to->params.func = Kernel("fold");
  to->params.gridDimX = step.blocks;
  to->params.gridDimY = to->params.gridDimZ = 1;
  to->params.blockDimX = 32;
  to->params.blockDimY = to->params.blockDimZ = 1;
  to->params.kernelParams = to->pointers;
}

CUDA_MEMSET_NODE_PARAMS LiveTest::MemsetOf(const Step& step) const {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = At(step.writes);
  params.value = step.salt;
  params.elementSize = sizeof(unsigned);
  params.width = kCount;
  params.height = 1;
  return params;
}

CUgraph LiveTest::Build(const Program& program,
                        std::vector<CUgraphNode>* nodes) {
  std::vector<CUgraphNode> own;
  if (nodes == nullptr) nodes = &own;
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  for (const Step& step : program.steps) {
    std::vector<CUgraphNode> after;
    for (const uint32_t i : step.after) after.push_back((*nodes)[i]);
    CUgraphNode node = nullptr;
    if (step.kernel) {
      Arguments arguments;
      Fill(step, &arguments);
      EXPECT_OK(LIVE(cuGraphAddKernelNode)(&node, graph, after.data(),
                                           after.size(), &arguments.params));
    } else {
      const CUDA_MEMSET_NODE_PARAMS params = MemsetOf(step);
      EXPECT_OK(LIVE(cuGraphAddMemsetNode)(&node, graph, after.data(),
                                           after.size(), &params, context_));
    }
    nodes->push_back(node);
  }
  return graph;
}

CUgraph LiveTest::Capture(const Program& program, CUstreamCaptureMode mode) {
  CUgraph graph = nullptr;
  const auto event = [] {
    CUevent made = nullptr;
    EXPECT_OK(LIVE(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING));
    return made;
  };
  std::vector<CUevent> events = {event()};
  std::vector<CUstream> streams;
  EXPECT_OK(LIVE(cuStreamBeginCapture)(stream_, mode));
  EXPECT_OK(LIVE(cuEventRecord)(events[0], stream_));
  for (const Step& step : program.steps) {
    CUstream stream = nullptr;
    EXPECT_OK(LIVE(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(LIVE(cuStreamWaitEvent)(stream, events[0], 0));
    for (const uint32_t i : step.after) {
      EXPECT_OK(LIVE(cuStreamWaitEvent)(stream, events[i + 1], 0));
    }
    if (step.kernel) {
      Arguments to;
      Fill(step, &to);
      EXPECT_OK(LIVE(cuLaunchKernel)(to.params.func, to.params.gridDimX, 1, 1,
                                     to.params.blockDimX, 1, 1, 0, stream,
                                     to.pointers, nullptr));
    } else {
      EXPECT_OK(
          LIVE(cuMemsetD32Async)(At(step.writes), step.salt, kCount, stream));
    }
    events.push_back(event());
    EXPECT_OK(LIVE(cuEventRecord)(events.back(), stream));
    streams.push_back(stream);
  }
  for (const CUevent made : events) {
    EXPECT_OK(LIVE(cuStreamWaitEvent)(stream_, made, 0));
  }
  EXPECT_OK(LIVE(cuStreamEndCapture)(stream_, &graph));
  for (const CUstream stream : streams) {
    EXPECT_OK(LIVE(cuStreamDestroy)(stream));
  }
  for (const CUevent made : events) EXPECT_OK(LIVE(cuEventDestroy)(made));
  return graph;
}

CUgraphExec LiveTest::Instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  EXPECT_OK(LIVE(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  return exec;
}

void LiveTest::Launch(CUgraphExec exec, CUstream stream) {
  ASSERT_CUDA(LIVE(cuGraphLaunch)(exec, stream));
  ASSERT_CUDA(LIVE(cuStreamSynchronize)(stream));
}

std::vector<nlohmann::json> LiveTest::Reports() {
  std::ifstream file(std::getenv("HEDDLE_REPORT_FOR_TEST"));
  std::vector<nlohmann::json> reports;
  for (std::string line; std::getline(file, line);) {
    reports.push_back(nlohmann::json::parse(line));
  }
  return reports;
}

void LiveTest::ExpectRewritten() {
  const std::vector<nlohmann::json> reports = Reports();
  ASSERT_FALSE(reports.empty());
  const nlohmann::json& report = reports.back();
  EXPECT_EQ(report["outcome"], "rewritten") << report;
  EXPECT_GT(report["patched"], 0) << report;
  EXPECT_GT(report["converted"], 0) << report;
  EXPECT_EQ(report["verified_launches"], 3) << report;
  EXPECT_NE(report["style"], "") << report;
}

void LiveTest::ExpectOutcome(const std::string& part) {
  const std::vector<nlohmann::json> reports = Reports();
  ASSERT_FALSE(reports.empty()) << "instead of " << part;
  const std::string outcome = reports.back()["outcome"];
  EXPECT_NE(outcome.find(part), std::string::npos) << outcome;
  EXPECT_EQ(reports.back()["style"], "") << reports.back();
}

}  // namespace heddle::live
