// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_LIVE_LIVE_TEST_H_
#define HEDDLE_TESTS_UNIT_LIVE_LIVE_TEST_H_

// A program on the host device with the optimizer between it and the driver,
// as the preload library puts it there.
//
// LIVE(cuGraphLaunch)(...) is a call of the program; cuGraphLaunch(...) goes
// past heddle, which then knows nothing of it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/device/driver.h"
#include "runtime/live/optimizer.h"
#include "tests/unit/hostdevice/device_test.h"
#include "tests/unit/live/program.h"

namespace heddle::live {

// The hook on this ELF symbol, or the driver's own function.
void* Route(const char* symbol);
// The driver's own function.
void* RealSymbol(const char* symbol);

#define LIVE_TEXT_OF(symbol) #symbol
#define LIVE_TEXT(symbol) LIVE_TEXT_OF(symbol)
#define LIVE(symbol) \
  reinterpret_cast<decltype(&symbol)>(::heddle::live::Route(LIVE_TEXT(symbol)))

// A driver table of the host device.
device::Driver HostDriver();

class LiveTest : public DeviceTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A new optimizer; the one before it forgets nothing, but sees no more calls.
  // `change` may put the test's own functions into its driver table.
  void StartOptimizer(
      LiveOptions options = Options(),
      const std::function<void(device::Driver*)>& change = nullptr);
  // Uses every form that is verified, of all styles.
  static LiveOptions Options();
  // An image of HEDDLE_TEST_IMAGES, loaded by the program.
  CUmodule LoadImage(const std::string& name);
  CUfunction Kernel(const char* name) { return Kernel(program_, name); }
  static CUfunction Kernel(CUmodule module, const char* name);

  // Memory of the program.
  CUdeviceptr Reserve(size_t bytes);
  CUdeviceptr Values(const Buffer& values);
  static Buffer ReadBack(CUdeviceptr address, size_t count);

  // ---- graphs of a Program over `memory_` ----------------------------------

  void Place(const Program& program);  // makes memory_, filled with Start()
  // The same with an allocation a buffer: what a kernel reads in a loop counts
  // as the whole allocation.
  void PlaceApart(const Program& program);
  void FreeApart();
  CUdeviceptr At(uint32_t buffer) const {
    return apart_.empty() ? memory_ + buffer * kCount * sizeof(unsigned)
                          : apart_[buffer];
  }
  void Write(uint32_t buffer, const Buffer& values) const;
  Memory ReadAll(const Program& program) const;

  // The same launch as a node (with arguments that live as long as it).
  struct Arguments {
    CUdeviceptr out, in[3];
    unsigned count, salt;
    void* pointers[6];
    CUDA_KERNEL_NODE_PARAMS params;
  };
  void Fill(const Step& step, Arguments* arguments);
  CUDA_MEMSET_NODE_PARAMS MemsetOf(const Step& step) const;

  // Node by node, or by capture with a stream a node. `nodes` may be nullptr
  // and is filled in the order of the steps when built node by node.
  CUgraph Build(const Program& program, std::vector<CUgraphNode>* nodes);
  CUgraph Capture(
      const Program& program,
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUgraphExec Instantiate(CUgraph graph);

  // A kernel node behind `after` (nullptr: none).
  template <typename... Params>
  CUgraphNode Add(CUgraph graph, CUgraphNode after, CUfunction function,
                  Params... params) {
    void* pointers[] = {&params..., nullptr};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = function;
    node.gridDimX = 2;
    node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 32;
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = pointers;
    CUgraphNode made = nullptr;
    EXPECT_OK(LIVE(cuGraphAddKernelNode)(&made, graph, &after,
                                         after == nullptr ? 0 : 1, &node));
    return made;
  }
  // `fold` from one buffer to another, both of kCount values.
  CUgraphNode AddFold(CUgraph graph, CUgraphNode after, CUdeviceptr out,
                      CUdeviceptr in, unsigned salt) {
    return Add(graph, after, Kernel("fold"), out, in, CUdeviceptr{0},
               CUdeviceptr{0}, kCount, salt);
  }

  void Launch(CUgraphExec exec) { Launch(exec, stream_); }
  void Launch(CUgraphExec exec, CUstream stream);

  // The lines of the report so far, oldest first.
  static std::vector<nlohmann::json> Reports();
  // The newest line, which must say that a rewritten form is in use.
  static void ExpectRewritten();
  static void ExpectOutcome(const std::string& part);

  CUmodule program_ = nullptr;  // kernels.cubin
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
  std::vector<CUdeviceptr> apart_;  // by buffer
  std::vector<std::vector<char>> images_;
};

}  // namespace heddle::live

#endif  // HEDDLE_TESTS_UNIT_LIVE_LIVE_TEST_H_
