// SPDX-License-Identifier: Apache-2.0
// What a launch changes beyond its parameters is changed once a launch.

#include "tests/unit/live/host_kernels.h"
#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

constexpr int kLaunches = 8;

class LiveStateTest : public LiveTest {};

TEST_F(LiveStateTest, CounterInDeviceMemory) {
  const CUdeviceptr counter = Values({7});
  const CUdeviceptr in = Values(Buffer(kCount, 5));
  const CUdeviceptr out = Values(Buffer(kCount, 6));
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("count_up"), counter);
  node = AddFold(graph, node, out, in, 1);
  Add(graph, node, Kernel("count_up"), counter);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    EXPECT_EQ(ReadBack(counter, 1), Buffer{7 + 2 * launch});
  }
  ExpectRewritten();
}

// Keeping it aside would be a fault: on the device that ends the context.
TEST_F(LiveStateTest, MappedMemoryThatNobodyMayAccess) {
  constexpr size_t kBytes = 32 << 20;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_OK(cuMemAddressReserve(&address, kBytes, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kBytes, &properties, 0));
  EXPECT_OK(LIVE(cuMemMap)(address, kBytes, 0, handle, 0));
  const CUdeviceptr counter = Values({0});
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("count_up"), counter);
  Add(graph, node, Kernel("count_up"), counter);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    EXPECT_EQ(ReadBack(counter, 1), Buffer{2 * launch});
  }
  ExpectRewritten();
  EXPECT_LT(Reports().back()["saved_bytes"], kBytes);
  EXPECT_OK(LIVE(cuMemUnmap)(address, kBytes));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(address, kBytes));
}

TEST_F(LiveStateTest, VariablesOfTheModule) {
  const CUmodule module = LoadImage("stateful.cubin");
  size_t size = 0;
  // Behind heddle's back: a program that asks is another test.
  CUdeviceptr calls = 0;
  CUdeviceptr history = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&calls, &size, module, "calls"));
  ASSERT_CUDA(cuModuleGetGlobal(&history, &size, module, "history"));
  ASSERT_EQ(size, 37 * sizeof(unsigned));
  g_stateful = {reinterpret_cast<unsigned*>(calls),
                reinterpret_cast<unsigned*>(history)};
  EXPECT_OK(cuMemsetD32(calls, 0, 1));
  EXPECT_OK(cuMemsetD32(history, 0, 37));
  EXPECT_OK(cuCtxSynchronize());
  const CUdeviceptr in = Values(Buffer(kCount, 5));
  const CUdeviceptr out = Values(Buffer(kCount, 6));
  const CUdeviceptr copy = Values(Buffer(kCount, 0));
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node =
      Add(graph, nullptr, Kernel(module, "bump"), out, in, kCount);
  node = Add(graph, node, Kernel(module, "pass_on"), copy, out, unsigned{2});
  node = Add(graph, node, Kernel(module, "bump"), out, in, kCount);
  Add(graph, node, Kernel("fold"), in, copy, out, CUdeviceptr{0}, kCount, 9u);
  const CUgraphExec exec = Instantiate(graph);

  unsigned expected_calls = 0;
  Buffer expected_history(37);
  Buffer expected_in(kCount, 5);
  Buffer expected_copy(kCount, 0);
  Buffer expected_out(kCount, 6);
  const auto bump = [&] {
    unsigned hash = ++expected_calls;
    for (const unsigned value : expected_in) hash = hash * 16777619u ^ value;
    expected_history[expected_calls % 37] += hash;
    expected_out[0] = expected_calls;
    expected_out[1] = expected_history[expected_calls % 37];
  };
  for (int launch = 0; launch < 3 * kLaunches; ++launch) {
    heddleHostDeviceSetSeed(static_cast<uint64_t>(launch) + 1);
    Launch(exec);
    bump();
    for (size_t i = 0; i < 2; ++i) expected_copy[i] = expected_out[i] + 1;
    bump();
    const unsigned* const inputs[3] = {expected_copy.data(),
                                       expected_out.data(), nullptr};
    for (unsigned block = 0; block < 2; ++block) {
      expected_in[block] = Fold(expected_in[block], inputs, kCount, 9, block);
    }
    ASSERT_EQ(ReadBack(calls, 1), Buffer{expected_calls}) << launch;
    ASSERT_EQ(ReadBack(history, 37), expected_history) << launch;
    ASSERT_EQ(ReadBack(copy, kCount), expected_copy) << launch;
    ASSERT_EQ(ReadBack(in, kCount), expected_in) << launch;
  }
  ExpectRewritten();
  // The first kernel has nothing to wait for.
  EXPECT_GE(Reports().back()["patched"], 3);
  EXPECT_EQ(Reports().back()["converted"], 3);
  EXPECT_EQ(Optimizer::Get()->code().cost().replaced, 1u);
}

// Once the program knows where a variable is, it may change it behind the back
// of a copy of the image.
TEST_F(LiveStateTest, TheProgramAsksForAVariable) {
  for (const int launches_before : {0, 1, 2, 3, 6}) {
    StartOptimizer();
    const CUmodule module = LoadImage("stateful.cubin");
    const CUdeviceptr in = Values(Buffer(kCount, 5));
    const CUdeviceptr out = Values(Buffer(kCount, 6));
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    CUgraphNode node =
        Add(graph, nullptr, Kernel(module, "pass_on"), out, in, kCount);
    Add(graph, node, Kernel(module, "pass_on"), in, out, kCount);
    const CUgraphExec exec = Instantiate(graph);
    unsigned done = 0;
    for (int launch = 0; launch < launches_before; ++launch) {
      Launch(exec);
      ++done;
    }
    CUdeviceptr history = 0;
    size_t size = 0;
    EXPECT_OK(LIVE(cuModuleGetGlobal)(&history, &size, module, "history"));
    for (int launch = 0; launch < kLaunches; ++launch) {
      Launch(exec);
      ++done;
    }
    EXPECT_EQ(ReadBack(in, 2), Buffer(2, 5 + 2 * done));
    EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 0)
        << "asked after " << launches_before << " launches";
  }
}

TEST_F(LiveStateTest, MemoryBehindATableOfPointers) {
  const CUdeviceptr first = Values({3});
  const CUdeviceptr second = Values({4});
  const CUdeviceptr table = Reserve(2 * sizeof(CUdeviceptr));
  const CUdeviceptr entries[] = {first, second};
  EXPECT_OK(LIVE(cuMemcpyHtoD)(table, entries, sizeof(entries)));
  EXPECT_OK(LIVE(cuCtxSynchronize)());
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("follow"), table, 0u);
  node = Add(graph, node, Kernel("follow"), table, 1u);
  Add(graph, node, Kernel("follow"), table, 1u);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    EXPECT_EQ(ReadBack(first, 1), Buffer{3 + launch});
    EXPECT_EQ(ReadBack(second, 1), Buffer{4 + 2 * launch});
  }
  ExpectRewritten();
}

TEST_F(LiveStateTest, PinnedHostMemory) {
  void* pinned = nullptr;
  ASSERT_CUDA(LIVE(cuMemAllocHost)(&pinned, 1001));
  void* registered = std::aligned_alloc(4096, 4096);
  ASSERT_CUDA(LIVE(cuMemHostRegister)(registered, 4096, 0));
  auto* counters = static_cast<unsigned*>(pinned);
  auto* more = static_cast<unsigned*>(registered);
  counters[100] = 11;
  more[1] = 12;
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("count_up"), &counters[100]);
  node = Add(graph, node, Kernel("count_up"), &more[1]);
  Add(graph, node, Kernel("count_up"), &counters[100]);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    EXPECT_EQ(counters[100], 11 + 2 * launch);
    EXPECT_EQ(more[1], 12 + launch);
  }
  ExpectRewritten();
  EXPECT_OK(LIVE(cuMemHostUnregister)(registered));
  EXPECT_OK(LIVE(cuMemFreeHost)(pinned));
  std::free(registered);
}

// Pinned memory of which only device memory knows the address: not kept, so a
// trial shows. Disabled until that is known to a trial.
TEST_F(LiveStateTest, DISABLED_PinnedHostMemoryBehindATable) {
  void* pinned = nullptr;
  ASSERT_CUDA(LIVE(cuMemAllocHost)(&pinned, 64));
  auto* counter = static_cast<unsigned*>(pinned);
  *counter = 20;
  const CUdeviceptr table = Reserve(sizeof(CUdeviceptr));
  EXPECT_OK(LIVE(cuMemcpyHtoD)(table, &pinned, sizeof(pinned)));
  EXPECT_OK(LIVE(cuCtxSynchronize)());
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node = Add(graph, nullptr, Kernel("follow"), table, 0u);
  Add(graph, node, Kernel("follow"), table, 0u);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    ASSERT_EQ(*counter, 20 + 2 * launch) << "launch " << launch;
  }
}

// Where a launch writes may be another place each time; it still is once.
TEST_F(LiveStateTest, AProgramThatIsNeverRepeatable) {
  constexpr unsigned kPlaces = 500;
  constexpr unsigned kStride = StateKeeper::kChunkBytes / sizeof(unsigned);
  const CUdeviceptr memory = Values(Buffer(kPlaces * kStride, 0));
  const CUdeviceptr in = Values(Buffer(kCount, 5));
  const CUdeviceptr out = Values(Buffer(kCount, 6));
  CUgraph graph = nullptr;
  EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
  CUgraphNode node =
      Add(graph, nullptr, Kernel("wander"), memory, kPlaces, kStride);
  node = AddFold(graph, node, out, in, 1);
  AddFold(graph, node, in, out, 2);
  const CUgraphExec exec = Instantiate(graph);
  for (unsigned launch = 1; launch <= kLaunches; ++launch) {
    Launch(exec);
    const Buffer values = ReadBack(memory, kPlaces * kStride);
    unsigned sum = 0;
    for (const unsigned value : values) sum += value;
    ASSERT_EQ(sum, launch);
  }
  ASSERT_FALSE(Reports().empty());
  EXPECT_TRUE(Reports().back()["unrepeatable_chunks"] > 0 ||
              Reports().back()["unrepeatable_runs"] > 0)
      << Reports().back();
}

}  // namespace
}  // namespace heddle::live
