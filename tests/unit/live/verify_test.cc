// SPDX-License-Identifier: Apache-2.0
// A rewritten form with another result is found and not used, and one is not
// blamed for what the program does itself.

#include <set>

#include "tests/unit/live/host_kernels.h"
#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

// Stands for forms that are wrong: changes memory after launches of graphs
// that are not the program's own.
struct Tamper {
  std::set<CUgraphExec> own;
  int launches = 0;  // of other graphs
  std::function<void(int)> damage;
};
Tamper* g_tamper = nullptr;

CUresult TamperedLaunch(CUgraphExec exec, CUstream stream) {
  const CUresult result = cuGraphLaunch(exec, stream);
  if (result != CUDA_SUCCESS || g_tamper->own.contains(exec)) return result;
  cuStreamSynchronize(stream);
  if (g_tamper->damage != nullptr) g_tamper->damage(g_tamper->launches);
  ++g_tamper->launches;
  return result;
}

class LiveVerifyTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    g_tamper = &tamper_;
    Watch(Options());
  }
  void Watch(LiveOptions options) {
    tamper_ = {};
    StartOptimizer(std::move(options), [](device::Driver* driver) {
      driver->GraphLaunch = TamperedLaunch;
    });
  }
  // A chain with room beside what it writes.
  CUgraphExec MakeChain() {
    program_of_test_ = Program::Chain(4, kCount);
    Place(program_of_test_);
    expected_ = program_of_test_.Start();
    const CUgraphExec exec = Instantiate(Build(program_of_test_, nullptr));
    tamper_.own.insert(exec);
    return exec;
  }
  void LaunchAndCheck(CUgraphExec exec) {
    Launch(exec);
    program_of_test_.RunSerially(&expected_);
    ASSERT_EQ(ReadAll(program_of_test_), expected_);
  }
  void ExpectUnused(CUgraphExec exec) {
    for (int launch = 0; launch < 4; ++launch) LaunchAndCheck(exec);
    ExpectOutcome("no form gave the same result");
    EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 0);
    const int before = tamper_.launches;
    LaunchAndCheck(exec);
    EXPECT_EQ(tamper_.launches, before);
  }
  static void Flip(CUdeviceptr address) {
    *reinterpret_cast<uint8_t*>(address) ^= 0x10;
  }

  Tamper tamper_;
  Program program_of_test_;
  Memory expected_;
};

TEST_F(LiveVerifyTest, EveryWrongByteIsFound) {
  for (uint32_t byte = 0; byte < 5 * kCount * 4; byte += 3) {
    Watch(Options());
    const CUgraphExec exec = MakeChain();
    // Also in the input, which no kernel writes.
    tamper_.damage = [&](int) { Flip(memory_ + byte); };
    ExpectUnused(exec);
    ASSERT_FALSE(HasFailure()) << "byte " << byte;
    EXPECT_OK(LIVE(cuMemFree)(memory_));
  }
}

TEST_F(LiveVerifyTest, AWriteIntoAnotherAllocation) {
  const CUdeviceptr other = Values(Buffer(100000, 1));
  const CUgraphExec exec = MakeChain();
  tamper_.damage = [&](int) { Flip(other + 399999); };
  ExpectUnused(exec);
  EXPECT_EQ(ReadBack(other, 100000), Buffer(100000, 1));
}

TEST_F(LiveVerifyTest, AWriteIntoPinnedMemory) {
  void* pinned = nullptr;
  ASSERT_CUDA(LIVE(cuMemAllocHost)(&pinned, 100000));
  auto* counter = static_cast<unsigned*>(pinned);
  *counter = 0;
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("count_up"), counter);
  Add(graph, node, Kernel("count_up"), counter);
  const CUgraphExec exec = Instantiate(graph);
  tamper_.own.insert(exec);
  auto* far = reinterpret_cast<uint8_t*>(pinned) + 99999;
  *far = 1;
  tamper_.damage = [&](int) { Flip(reinterpret_cast<CUdeviceptr>(far)); };
  for (unsigned launch = 1; launch <= 5; ++launch) {
    Launch(exec);
    EXPECT_EQ(*counter, 2 * launch);
    EXPECT_EQ(*far, 1);
  }
  ExpectOutcome("no form gave the same result");
}

// Wrong in a later trial only.
TEST_F(LiveVerifyTest, EachTrialCounts) {
  for (const int first_wrong : {1, 2}) {
    Watch(Options());
    const CUgraphExec exec = MakeChain();
    for (int launch = 0; launch < first_wrong; ++launch) LaunchAndCheck(exec);
    tamper_.damage = [&](int) { Flip(At(3)); };
    ExpectUnused(exec);
    EXPECT_EQ(Reports().back()["verified_launches"], first_wrong + 1);
  }
}

// Wrong once is wrong: the others stay.
TEST_F(LiveVerifyTest, OneWrongResultIsEnough) {
  const CUgraphExec exec = MakeChain();
  tamper_.damage = [&](int launch) {
    if (launch == 0) Flip(At(4));
  };
  for (int launch = 0; launch < 5; ++launch) LaunchAndCheck(exec);
  ASSERT_FALSE(Reports().empty());
  EXPECT_EQ(Reports().back()["outcome"], "rewritten");
  EXPECT_NE(Reports().back()["style"], "programmatic");
  const std::string notes = Reports().back()["notes"].dump();
  EXPECT_NE(notes.find("programmatic gave another result"), std::string::npos)
      << notes;
}

// Two kernels that both write one buffer, in no order.
TEST_F(LiveVerifyTest, AProgramThatIsNotRepeatableIsExcused) {
  int rewritten = 0;
  constexpr int kRounds = 20;
  for (int round = 1; round <= kRounds; ++round) {
    Watch(Options());
    heddleHostDeviceSetSeed(static_cast<uint64_t>(round));
    Program& program = program_of_test_;
    program = Program::ForkJoin(2, kCount);
    program.steps[1].reads = program.steps[2].reads = {0, 1};
    program.steps[1].writes = program.steps[2].writes = 2;
    program.steps[3].reads = {2};
    Place(program);
    const CUgraphExec exec = Instantiate(Build(program, nullptr));
    tamper_.own.insert(exec);
    Memory before = program.Start();
    for (int launch = 0; launch < 6; ++launch) {
      Launch(exec);
      const Memory after = ReadAll(program);
      Memory one = before;
      program.RunSerially(&one);
      std::swap(program.steps[1], program.steps[2]);
      Memory two = before;
      program.RunSerially(&two);
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_TRUE(after[2][i] == one[2][i] || after[2][i] == two[2][i]);
        const unsigned* const in[3] = {after[2].data(), nullptr, nullptr};
        ASSERT_EQ(after[4][i],
                  Fold(before[4][i], in, kCount, program.steps[3].salt,
                       static_cast<unsigned>(i)));
      }
      before = after;
    }
    const nlohmann::json report = Reports().back();
    if (report["outcome"] == "rewritten") {
      ++rewritten;
      EXPECT_TRUE(report["unrepeatable_chunks"] > 0 ||
                  report["unrepeatable_runs"] > 0)
          << report;
    }
    EXPECT_OK(LIVE(cuMemFree)(memory_));
  }
  EXPECT_GT(rewritten, kRounds / 2);
}

// That the program differs from itself in one place is no excuse for a form
// that differs in another.
TEST_F(LiveVerifyTest, NoExcuseForAnotherPlace) {
  for (const unsigned period : {2u, 3u, 5u, 8u}) {
    for (unsigned phase = 0; phase < 20; ++phase) {
      LiveOptions options = Options();
      options.styles = {plan::Style::kProgrammatic};
      Watch(options);
      g_flicker_runs = phase;
      const CUdeviceptr now_and_then = Values({0});
      const CUdeviceptr in = Values(Buffer(kCount, 5));
      const CUdeviceptr out = Values(Buffer(kCount, 6));
      CUgraph graph = nullptr;
      EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
      CUgraphNode node =
          Add(graph, nullptr, Kernel("flicker"), now_and_then, period);
      node = AddFold(graph, node, out, in, 1);
      AddFold(graph, node, in, out, 2);
      const CUgraphExec exec = Instantiate(graph);
      tamper_.own.insert(exec);
      tamper_.damage = [&](int) { Flip(out); };
      for (int launch = 0; launch < 4; ++launch) Launch(exec);
      EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 0)
          << "period " << period << ", phase " << phase << ": "
          << Reports().back();
    }
  }
}

// Nothing is lost when memory runs out in the middle of a trial.
TEST_F(LiveVerifyTest, OutOfMemoryInATrial) {
  static int allocations = 0;
  for (int fails = 0; fails < 12; ++fails) {
    tamper_ = {};
    StartOptimizer(Options(), [](device::Driver* driver) {
      driver->GraphLaunch = TamperedLaunch;
      driver->MemAlloc = [](CUdeviceptr* address, size_t bytes) {
        return allocations-- == 0 ? CUDA_ERROR_OUT_OF_MEMORY
                                  : cuMemAlloc(address, bytes);
      };
    });
    const CUdeviceptr more = Values({0});
    program_of_test_ = Program::Chain(4, kCount);
    Place(program_of_test_);
    expected_ = program_of_test_.Start();
    CUgraph graph = Build(program_of_test_, nullptr);
    Add(graph, nullptr, Kernel("count_up"), more);
    const CUgraphExec exec = Instantiate(graph);
    tamper_.own.insert(exec);
    allocations = fails;
    for (unsigned launch = 1; launch <= 5; ++launch) {
      LaunchAndCheck(exec);
      ASSERT_EQ(ReadBack(more, 1), Buffer{launch})
          << "allocation " << fails << " failed";
    }
    ASSERT_FALSE(HasFailure()) << "allocation " << fails << " failed";
    EXPECT_OK(LIVE(cuMemFree)(memory_));
    EXPECT_OK(LIVE(cuMemFree)(more));
  }
}

}  // namespace
}  // namespace heddle::live
