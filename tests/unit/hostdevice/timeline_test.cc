// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/timeline.h"

#include <cstring>

#include "tests/unit/hostdevice/device_test.h"

namespace {

class TimelineTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    stream_ = NewStream();
    data_ = Ints(64);
    heddleHostDeviceEnableTimeline(1);
    heddleHostDeviceClearTimeline();
  }
  void TearDown() override {
    heddleHostDeviceEnableTimeline(0);
    DeviceTest::TearDown();
  }
  std::vector<HeddleHostDeviceActivity> Timeline() {
    std::vector<HeddleHostDeviceActivity> activities(
        static_cast<size_t>(heddleHostDeviceGetTimeline(nullptr, 0)));
    EXPECT_EQ(heddleHostDeviceGetTimeline(activities.data(),
                                          static_cast<int>(activities.size())),
              static_cast<int>(activities.size()));
    return activities;
  }
  CUstream stream_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(TimelineTest, ShowsKernelsAndCopiesInTheOrderOfTheStream) {
  unsigned long long id = 0;
  ASSERT_CUDA(cuStreamGetId(stream_, &id));
  ASSERT_CUDA(Launch("fill", 16, stream_, data_, 1));
  ASSERT_CUDA(cuMemcpyDtoDAsync(data_, data_ + 128, 64, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  const auto timeline = Timeline();
  ASSERT_EQ(timeline.size(), 2u);
  EXPECT_EQ(timeline[0].kind, HEDDLE_HOST_DEVICE_KERNEL);
  EXPECT_STREQ(timeline[0].name, "fill");
  EXPECT_EQ(timeline[0].blocks, 16u);
  EXPECT_EQ(timeline[0].grid[0], 16u);
  EXPECT_EQ(timeline[0].stream_id, id);
  EXPECT_EQ(timeline[0].graph_node_id, 0u);
  EXPECT_EQ(timeline[1].kind, HEDDLE_HOST_DEVICE_MEMCPY);
  EXPECT_EQ(timeline[1].bytes, 64u);
  EXPECT_LT(timeline[0].start_ns, timeline[0].end_ns);
  EXPECT_LE(timeline[0].end_ns, timeline[1].start_ns);
  EXPECT_LT(timeline[0].correlation, timeline[1].correlation);
}

TEST_F(TimelineTest, SimulatedTimeDependsOnTheWorkAlone) {
  const CUevent start = NewEvent(CU_EVENT_DEFAULT);
  const CUevent end = NewEvent(CU_EVENT_DEFAULT);
  const std::set<float> times = OverSeeds(20, [&] {
    EXPECT_OK(cuEventRecord(start, stream_));
    for (int i = 0; i < 5; ++i) {
      EXPECT_OK(Launch("increment", 16, stream_, data_));
    }
    EXPECT_OK(cuEventRecord(end, stream_));
    EXPECT_OK(cuEventSynchronize(end));
    float ms = 0;
    EXPECT_OK(cuEventElapsedTime(&ms, start, end));
    return ms;
  });
  // 16 blocks in 8 slots are two rounds of 1.001 us, behind 1 us of launch.
  ASSERT_EQ(times.size(), 1u);
  EXPECT_NEAR(*times.begin(), 5 * 3.002e-3, 1e-5);
}

TEST_F(TimelineTest, AnOverlapSavesTime) {
  const CUevent start = NewEvent(CU_EVENT_DEFAULT);
  const CUevent end = NewEvent(CU_EVENT_DEFAULT);
  const auto run = [&](bool programmatic) {
    EXPECT_OK(cuEventRecord(start, stream_));
    for (int i = 0; i < 10; ++i) {
      EXPECT_OK(programmatic
                    ? LaunchProgrammatic("copy_trigger_wait", 4, stream_, data_,
                                         data_)
                    : Launch("copy_trigger_wait", 4, stream_, data_, data_));
    }
    EXPECT_OK(cuEventRecord(end, stream_));
    EXPECT_OK(cuEventSynchronize(end));
    float ms = 0;
    EXPECT_OK(cuEventElapsedTime(&ms, start, end));
    return ms;
  };
  EXPECT_LT(run(true), run(false));
}

TEST_F(TimelineTest, TellsTheNodeOfAGraph) {
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  const CUgraphNode a = AddKernel(graph, "fill", 1, data_, 1);
  const CUgraphNode b = AddKernel(graph, "increment", 1, data_);
  ASSERT_CUDA(cuGraphAddDependencies_v2(graph, &a, &b, nullptr, 1));
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CUDA(cuGraphLaunch(exec, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  const auto timeline = Timeline();
  ASSERT_EQ(timeline.size(), 2u);
  EXPECT_EQ(timeline[0].graph_node_id, 1u);
  EXPECT_EQ(timeline[1].graph_node_id, 2u);
  EXPECT_NE(timeline[0].graph_exec_id, 0u);
}

TEST_F(TimelineTest, EventsWithoutTimingHaveNoTime) {
  const CUevent plain = NewEvent();
  const CUevent timed = NewEvent(CU_EVENT_DEFAULT);
  float ms = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, timed, timed));
  ASSERT_CUDA(cuEventRecord(plain, stream_));
  ASSERT_CUDA(cuEventRecord(timed, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, plain, timed));
  EXPECT_OK(cuEventElapsedTime(&ms, timed, timed));
  EXPECT_EQ(ms, 0);
}

}  // namespace
