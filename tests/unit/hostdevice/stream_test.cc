// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/unit/hostdevice/device_test.h"

namespace {

constexpr unsigned kBlocks = 6;

// The right answer of fill followed by sum: each block adds up what all blocks
// of the fill wrote.
constexpr int kFilled = 100 * kBlocks + 15;

class StreamTest : public DeviceTest {
 protected:
  // fill on one stream, then sum on another (or the same); what sum saw.
  template <typename Between>
  std::set<int> FillThenSum(CUstream producer, CUstream consumer,
                            Between between) {
    const CUdeviceptr data = Ints(kBlocks);
    const CUdeviceptr out = Ints(1);
    return OverSeeds(60, [&] {
      EXPECT_OK(cuMemsetD32(data, 0, kBlocks));
      EXPECT_OK(cuCtxSynchronize());
      EXPECT_OK(Launch("fill", kBlocks, producer, data, 100));
      between();
      EXPECT_OK(
          Launch("sum", 1, consumer, out, data, static_cast<int>(kBlocks)));
      EXPECT_OK(cuCtxSynchronize());
      return Read(out, 1)[0];
    });
  }
};

TEST_F(StreamTest, WorkInOneStreamRunsInOrder) {
  const CUstream stream = NewStream();
  EXPECT_EQ(FillThenSum(stream, stream, [] {}), std::set<int>{kFilled});
}

TEST_F(StreamTest, UnsynchronizedStreamsRaceBlockByBlock) {
  const std::set<int> seen = FillThenSum(NewStream(), NewStream(), [] {});
  EXPECT_TRUE(seen.count(kFilled)) << "the right order is legal, too";
  EXPECT_TRUE(seen.count(0)) << "so is the wrong one";
  EXPECT_GT(seen.size(), 2u) << "and a consumer in the middle of the producer";
}

TEST_F(StreamTest, AnEventOrdersTwoStreams) {
  const CUstream producer = NewStream();
  const CUstream consumer = NewStream();
  const CUevent event = NewEvent();
  EXPECT_EQ(FillThenSum(producer, consumer,
                        [&] {
                          EXPECT_OK(cuEventRecord(event, producer));
                          EXPECT_OK(cuStreamWaitEvent(consumer, event, 0));
                        }),
            std::set<int>{kFilled});
}

TEST_F(StreamTest, AnEventStandsForItsLastRecordOnly) {
  const CUstream producer = NewStream();
  const CUstream consumer = NewStream();
  const CUevent event = NewEvent();
  EXPECT_OK(cuEventRecord(event, consumer));
  // The wait comes before the record that would help.
  const std::set<int> seen = FillThenSum(producer, consumer, [&] {
    EXPECT_OK(cuStreamWaitEvent(consumer, event, 0));
    EXPECT_OK(cuEventRecord(event, producer));
  });
  EXPECT_GT(seen.size(), 1u);
}

TEST_F(StreamTest, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  CUstream blocking = nullptr;
  ASSERT_CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  const std::set<int> right{kFilled};
  EXPECT_EQ(FillThenSum(blocking, nullptr, [] {}), right);
  EXPECT_EQ(FillThenSum(nullptr, blocking, [] {}), right);
  EXPECT_EQ(FillThenSum(CU_STREAM_PER_THREAD, CU_STREAM_LEGACY, [] {}), right);
  EXPECT_EQ(FillThenSum(CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, [] {}), right);
  const CUstream free = NewStream();
  EXPECT_GT(FillThenSum(free, nullptr, [] {}).size(), 1u);
  EXPECT_GT(FillThenSum(nullptr, free, [] {}).size(), 1u);
}

TEST_F(StreamTest, SynchronizingOneStreamLeavesAnotherFree) {
  const CUdeviceptr data = Ints(kBlocks);
  const CUstream other = NewStream();
  const CUstream stream = NewStream();
  const std::set<bool> finished = OverSeeds(60, [&] {
    EXPECT_OK(Launch("increment", kBlocks, stream, data));
    EXPECT_OK(Launch("increment", kBlocks, other, data));
    EXPECT_OK(cuStreamSynchronize(stream));
    const bool done = cuStreamQuery(other) == CUDA_SUCCESS;
    EXPECT_OK(cuCtxSynchronize());
    return done;
  });
  EXPECT_EQ(finished, (std::set<bool>{false, true}));
}

TEST_F(StreamTest, PollingGetsThere) {
  const CUstream stream = NewStream();
  const CUevent event = NewEvent();
  const CUdeviceptr data = Ints(kBlocks);
  for (int i = 0; i < 20; ++i) {
    ASSERT_CUDA(Launch("increment", kBlocks, stream, data));
  }
  ASSERT_CUDA(cuEventRecord(event, stream));
  int polls = 0;
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) ++polls;
  EXPECT_GT(polls, 0);
  EXPECT_EQ(Read(data, kBlocks), std::vector<int>(kBlocks, 20));
  EXPECT_OK(cuStreamQuery(stream));
}

TEST_F(StreamTest, AnEventThatWasNeverRecordedIsReady) {
  const CUevent event = NewEvent();
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamWaitEvent(NewStream(), event, 0));
}

TEST_F(StreamTest, HostFunctionsRunInOrderAndMayNotCallTheDriver) {
  struct State {
    CUdeviceptr data;
    int seen = -1;
    CUresult call = CUDA_SUCCESS;
  } state;
  const CUstream stream = NewStream();
  state.data = Ints(1);
  ASSERT_CUDA(Launch("fill", 1, stream, state.data, 42));
  ASSERT_CUDA(cuLaunchHostFunc(
      stream,
      [](void* user) {
        auto* s = static_cast<State*>(user);
        // Device memory is memory of the process.
        s->seen = *reinterpret_cast<const int*>(s->data);
        s->call = cuCtxSynchronize();
      },
      &state));
  ASSERT_CUDA(Launch("fill", 1, stream, state.data, 7));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(state.seen, 42);
  EXPECT_CUDA(CUDA_ERROR_NOT_PERMITTED, state.call);
}

TEST_F(StreamTest, AHostFunctionMayWaitForAThreadThatUsesTheDevice) {
  const CUstream stream = NewStream();
  static std::atomic<bool> released;
  released = false;
  ASSERT_CUDA(cuLaunchHostFunc(
      stream,
      [](void*) {
        while (!released) std::this_thread::yield();
      },
      nullptr));
  std::thread helper([&] {
    EXPECT_OK(cuCtxSetCurrent(context_));
    // On the legacy stream, which does not wait for the other one.
    const CUdeviceptr data = Allocate(sizeof(int));
    EXPECT_OK(cuMemsetD32(data, 3, 1));
    EXPECT_EQ(Read(data, 1)[0], 3);
    released = true;
  });
  // May run the host function in this thread, without the lock.
  EXPECT_OK(cuStreamSynchronize(stream));
  helper.join();
}

TEST_F(StreamTest, AMemoryWaitHoldsItsStreamUntilTheValueIsWritten) {
  const CUstream stream = NewStream();
  const CUstream writer = NewStream();
  const CUdeviceptr flag = Ints(1);
  const CUdeviceptr data = Ints(1);
  const std::set<int> seen = OverSeeds(20, [&] {
    EXPECT_OK(cuMemsetD32(flag, 0, 1));
    EXPECT_OK(cuMemsetD32(data, 0, 1));
    EXPECT_OK(cuCtxSynchronize());
    const CUdeviceptr out = Ints(1);
    EXPECT_OK(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
    EXPECT_OK(Launch("copy", 1, stream, out, data));
    EXPECT_OK(Launch("fill", 1, writer, data, 9));
    EXPECT_OK(cuStreamWriteValue32(writer, flag, 1, 0));
    EXPECT_OK(cuStreamSynchronize(stream));
    return Read(out, 1)[0];
  });
  EXPECT_EQ(seen, std::set<int>{9});
}

TEST_F(StreamTest, ThreadsUseTheDeviceAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      EXPECT_OK(cuCtxSetCurrent(context_));
      const CUstream stream = NewStream();
      const CUdeviceptr data = Ints(kBlocks, i);
      for (int j = 0; j < 20; ++j) {
        EXPECT_OK(Launch("increment", kBlocks, stream, data));
      }
      EXPECT_OK(cuStreamSynchronize(stream));
      EXPECT_EQ(Read(data, kBlocks), std::vector<int>(kBlocks, i + 20));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
