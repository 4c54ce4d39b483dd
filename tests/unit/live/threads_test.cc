// SPDX-License-Identifier: Apache-2.0
// Threads that make, change, launch and end graphs all at once.

#include <atomic>
#include <memory>
#include <thread>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

// One graph of one thread, with memory and a stream of its own.
class Worker : public LiveTest {
 public:
  void Start(CUcontext context, CUmodule module, uint64_t seed) {
    context_ = context;
    program_ = module;
    random_.seed(static_cast<unsigned>(seed));
    EXPECT_OK(LIVE(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void Stop() {
    if (exec_ != nullptr) Destroy();
    EXPECT_OK(LIVE(cuStreamDestroy)(stream_));
  }

  // Something at random.
  void Act() {
    if (exec_ == nullptr) return Create();
    switch (Below(random_, 12)) {
      case 0:
        return Below(random_, 3) == 0 ? Destroy() : LaunchAndCheck();
      case 1:
        return ChangeKernel();
      case 2:
        return Below(random_, 3) == 0 ? Update() : LaunchAndCheck();
      default:
        return LaunchAndCheck();
    }
  }

 private:
  void TestBody() override {}
  void SetUp() override {}
  void TearDown() override {}

  void Create() {
    chain_ = Below(random_, 2) == 0
                 ? Program::Chain(2 + Below(random_, 4), 2)
                 : Program::ForkJoin(1 + Below(random_, 3), kCount);
    Place(chain_);
    expected_ = chain_.Start();
    built_ = Below(random_, 2) == 0;
    nodes_.clear();
    graph_ = built_ ? Build(chain_, &nodes_) : Capture(chain_);
    exec_ = Instantiate(graph_);
  }
  void Destroy() {
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec_));
    EXPECT_OK(LIVE(cuGraphDestroy)(graph_));
    EXPECT_OK(LIVE(cuMemFree)(memory_));
    exec_ = nullptr;
  }
  void LaunchAndCheck() {
    for (unsigned& value : expected_[0]) {
      value = static_cast<unsigned>(random_());
    }
    Write(0, expected_[0]);
    Launch(exec_);
    chain_.RunSerially(&expected_);
    EXPECT_EQ(ReadAll(chain_), expected_);
  }
  void ChangeKernel() {
    if (!built_) return;
    const auto index =
        Below(random_, static_cast<uint32_t>(chain_.steps.size()));
    chain_.steps[index].salt = static_cast<unsigned>(random_());
    Arguments arguments;
    Fill(chain_.steps[index], &arguments);
    EXPECT_OK(LIVE(cuGraphExecKernelNodeSetParams)(exec_, nodes_[index],
                                                   &arguments.params));
  }
  void Update() {
    if (!built_) return;
    for (Step& step : chain_.steps) {
      step.salt = static_cast<unsigned>(random_());
    }
    const CUgraph next = Build(chain_, nullptr);
    CUgraphExecUpdateResultInfo info{};
    EXPECT_OK(LIVE(cuGraphExecUpdate)(exec_, next, &info));
    EXPECT_OK(LIVE(cuGraphDestroy)(next));
  }

  Random random_;
  Program chain_;
  Memory expected_;
  bool built_ = false;
  std::vector<CUgraphNode> nodes_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

class LiveThreadsTest : public LiveTest {};

TEST_F(LiveThreadsTest, GraphsComeAndGo) {
  constexpr int kThreads = 8;
  constexpr int kEach = 3;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kThreads * kEach; ++i) {
    workers.push_back(std::make_unique<Worker>());
    workers.back()->Start(context_, program_, static_cast<uint64_t>(i) + 1);
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      EXPECT_OK(cuCtxSetCurrent(context_));
      Random random(static_cast<unsigned>(thread));
      for (int i = 0; i < 100; ++i) {
        workers[static_cast<size_t>(thread * kEach) + Below(random, kEach)]
            ->Act();
        if (HasFailure()) break;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto rewritten = [this] {
    int count = 0;
    for (const nlohmann::json& report : Reports()) {
      count += report["outcome"] == "rewritten" ? 1 : 0;
    }
    return count;
  };
  // A trial is put off while another thread holds the device, so how many there
  // were is a matter of timing; alone, they go on until there are enough.
  Random random(kThreads);
  for (int i = 0; i < 2000 && rewritten() <= 5 && !HasFailure(); ++i) {
    workers[Below(random, kThreads * kEach)]->Act();
  }
  for (const auto& worker : workers) worker->Stop();
  EXPECT_GT(rewritten(), 5);
}

// A global capture forbids every thread the calls that a trial makes. Threads
// that only launch do none, so the capture must live.
TEST_F(LiveThreadsTest, TrialsDoNotBreakACapture) {
  const Program program = Program::Chain(3, 2);
  Place(program);
  const CUgraph graph = Build(program, nullptr);
  std::atomic<bool> stop{false};
  std::atomic<int> launched{0};
  std::vector<std::thread> threads;
  std::vector<CUstream> streams = {NewStream(), NewStream()};
  for (const CUstream stream : streams) {
    threads.emplace_back([&, stream] {
      EXPECT_OK(cuCtxSetCurrent(context_));
      while (!stop && !HasFailure()) {
        const CUgraphExec exec = Instantiate(graph);
        for (int i = 0; i < 4; ++i) Launch(exec, stream);
        EXPECT_OK(LIVE(cuGraphExecDestroy)(exec));
        ++launched;
      }
    });
  }
  CUfunction function = Kernel("count_up");
  CUdeviceptr counter = Values({0});
  void* pointers[] = {&counter};
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    CUgraph captured = nullptr;
    EXPECT_OK(
        LIVE(cuStreamBeginCapture)(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(LIVE(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream_,
                                   pointers, nullptr));
    EXPECT_OK(LIVE(cuStreamEndCapture)(stream_, &captured));
    if (captured != nullptr) {
      EXPECT_OK(LIVE(cuGraphDestroy)(captured));
    }
    if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(launched, 2);
}

}  // namespace
}  // namespace heddle::live
