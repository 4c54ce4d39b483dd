// SPDX-License-Identifier: Apache-2.0
// Changes of an executable graph: whatever was changed whenever, it does what
// an executable does that heddle does not know.

#include <memory>

#include "tests/unit/live/live_test.h"

namespace heddle::live {
namespace {

using SetParamsV1 = CUresult (*)(CUgraphExec, CUgraphNode,
                                 const CUDA_KERNEL_NODE_PARAMS_v1*);
using UpdateV1 = CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*,
                              CUgraphExecUpdateResult*);

enum Change {
  kKernel,
  kKernelV1,
  kOtherKernel,
  kMemcpy,
  kMemset,
  kUpdate,
  kUpdateV1,
  kFailedUpdate,
  kFailedKernel,
  kDisable,
  kGeneric,
  kChanges,
};

// memset(1), copy(0 -> 2), then folds into 3, 4 and 5; the rest is to spare.
class LiveUpdateTest : public LiveTest {
 protected:
  static constexpr uint32_t kBuffers = 10;

  void Make() {
    Program empty;
    empty.buffers = kBuffers;
    Place(empty);
    graph_ = Graph(0, /*extra=*/false, &nodes_);
    ASSERT_CUDA(cuGraphInstantiateWithFlags(&own_, graph_, 0));
    exec_ = Instantiate(graph_);
    enabled_ = true;
  }
  void Unmake() {
    EXPECT_OK(cuGraphExecDestroy(own_));
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec_));
    EXPECT_OK(LIVE(cuGraphDestroy)(graph_));
    EXPECT_OK(LIVE(cuMemFree)(memory_));
  }

  CUDA_MEMCPY3D CopyOf(uint32_t from, uint32_t to) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = At(from);
    copy.dstDevice = At(to);
    copy.WidthInBytes = kCount * sizeof(unsigned);
    copy.Height = copy.Depth = 1;
    return copy;
  }
  Step FoldStep(uint32_t index, unsigned salt) {
    Step step;
    step.writes = 3 + index;
    step.reads = {index == 0 ? 1u : 2 + index, index == 1 ? 0u : 2u};
    step.salt = salt + index;
    step.blocks = 2;
    return step;
  }
  CUgraph Graph(unsigned salt, bool extra, std::vector<CUgraphNode>* nodes) {
    CUgraph graph = nullptr;
    EXPECT_OK(LIVE(cuGraphCreate)(&graph, 0));
    nodes->assign(5, nullptr);
    Step set;
    set.salt = salt;
    const CUDA_MEMSET_NODE_PARAMS memset = MemsetOf(set);
    EXPECT_OK(LIVE(cuGraphAddMemsetNode)(&(*nodes)[0], graph, nullptr, 0,
                                         &memset, context_));
    const CUDA_MEMCPY3D copy = CopyOf(0, 2);
    EXPECT_OK(LIVE(cuGraphAddMemcpyNode)(&(*nodes)[1], graph, nullptr, 0, &copy,
                                         context_));
    for (uint32_t i = 0; i < 3; ++i) {
      Arguments arguments;
      Fill(FoldStep(i, salt), &arguments);
      const bool first = i == 0;
      EXPECT_OK(LIVE(cuGraphAddKernelNode)(
          &(*nodes)[2 + i], graph, first ? nodes->data() : &(*nodes)[1 + i],
          first ? 2 : 1, &arguments.params));
    }
    if (extra) {
      Add(graph, (*nodes)[4], Kernel("count_up"), At(5));
    }
    return graph;
  }

  // The same change of both executables; `call(exec, live)`.
  template <typename Call>
  void Both(Call call) {
    const std::string own = ErrorName(call(own_, false));
    EXPECT_EQ(ErrorName(call(exec_, true)), own);
  }

  void SetKernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) {
    Both([&](CUgraphExec exec, bool live) {
      const CUresult result =
          live ? LIVE(cuGraphExecKernelNodeSetParams)(exec, node, &params)
               : cuGraphExecKernelNodeSetParams(exec, node, &params);
      EXPECT_EQ(result == CUDA_SUCCESS, params.gridDimX != 0);
      return result;
    });
  }
  void Apply(Change change, Random& random) {
    const uint32_t index = Below(random, 3);
    const auto salt = static_cast<unsigned>(random());
    Step step = FoldStep(index, salt);
    // Few blocks, or as many as the device holds.
    step.blocks = Below(random, 2) == 0 ? 1 + Below(random, 2) : kCount;
    if (Below(random, 2) == 0) step.reads.push_back(6 + Below(random, 2));
    Arguments to;
    Fill(step, &to);
    const CUgraphNode kernel = nodes_[2 + index];
    switch (change) {
      case kOtherKernel:
        to.params.func = Kernel("count_up");
        return SetKernel(kernel, to.params);
      case kFailedKernel:
        to.params.gridDimX = 0;
        return SetKernel(kernel, to.params);
      case kKernel:
        return SetKernel(kernel, to.params);
      case kKernelV1: {
        CUDA_KERNEL_NODE_PARAMS_v1 older{};
        older.func = to.params.func;
        older.gridDimX = to.params.gridDimX;
        older.gridDimY = older.gridDimZ = 1;
        older.blockDimX = to.params.blockDimX;
        older.blockDimY = older.blockDimZ = 1;
        older.kernelParams = to.params.kernelParams;
        constexpr const char* kSymbol = "cuGraphExecKernelNodeSetParams";
        return Both([&](CUgraphExec exec, bool live) {
          return reinterpret_cast<SetParamsV1>(live ? Route(kSymbol)
                                                    : RealSymbol(kSymbol))(
              exec, kernel, &older);
        });
      }
      case kMemcpy: {
        const CUDA_MEMCPY3D copy =
            CopyOf(Below(random, 2) * 7, 2 + Below(random, 2) * 6);
        return Both([&](CUgraphExec exec, bool live) {
          return live ? LIVE(cuGraphExecMemcpyNodeSetParams)(exec, nodes_[1],
                                                             &copy, context_)
                      : cuGraphExecMemcpyNodeSetParams(exec, nodes_[1], &copy,
                                                       context_);
        });
      }
      case kMemset: {
        Step set;
        set.writes = Below(random, 2) == 0 ? 1 : 9;
        set.salt = salt;
        const CUDA_MEMSET_NODE_PARAMS memset = MemsetOf(set);
        return Both([&](CUgraphExec exec, bool live) {
          return live ? LIVE(cuGraphExecMemsetNodeSetParams)(exec, nodes_[0],
                                                             &memset, context_)
                      : cuGraphExecMemsetNodeSetParams(exec, nodes_[0], &memset,
                                                       context_);
        });
      }
      case kUpdate:
      case kUpdateV1:
      case kFailedUpdate: {
        std::vector<CUgraphNode> nodes;
        const CUgraph graph = Graph(salt, change == kFailedUpdate, &nodes);
        Both([&](CUgraphExec exec, bool live) {
          CUgraphExecUpdateResultInfo info{};
          CUgraphNode node = nullptr;
          CUgraphExecUpdateResult update{};
          CUresult result = CUDA_SUCCESS;
          if (change == kUpdateV1) {
            constexpr const char* kSymbol = "cuGraphExecUpdate";
            result = reinterpret_cast<UpdateV1>(live ? Route(kSymbol)
                                                     : RealSymbol(kSymbol))(
                exec, graph, &node, &update);
          } else {
            result = live ? LIVE(cuGraphExecUpdate)(exec, graph, &info)
                          : cuGraphExecUpdate(exec, graph, &info);
          }
          EXPECT_EQ(result == CUDA_SUCCESS, change != kFailedUpdate);
          return result;
        });
        EXPECT_OK(LIVE(cuGraphDestroy)(graph));
        return;
      }
      case kDisable: {
        enabled_ = !enabled_;
        const unsigned enabled = enabled_ ? 1 : 0;
        return Both([&](CUgraphExec exec, bool live) {
          return live ? LIVE(cuGraphNodeSetEnabled)(exec, nodes_[3], enabled)
                      : cuGraphNodeSetEnabled(exec, nodes_[3], enabled);
        });
      }
      case kGeneric: {
        CUgraphNodeParams params{};
        params.type = CU_GRAPH_NODE_TYPE_KERNEL;
        params.kernel.func = to.params.func;
        params.kernel.gridDimX = to.params.gridDimX;
        params.kernel.gridDimY = params.kernel.gridDimZ = 1;
        params.kernel.blockDimX = to.params.blockDimX;
        params.kernel.blockDimY = params.kernel.blockDimZ = 1;
        params.kernel.kernelParams = to.params.kernelParams;
        return Both([&](CUgraphExec exec, bool live) {
          return live ? LIVE(cuGraphExecNodeSetParams)(exec, kernel, &params)
                      : cuGraphExecNodeSetParams(exec, kernel, &params);
        });
      }
      case kChanges:
        break;
    }
  }

  // Launches both on the same memory.
  void LaunchBoth() {
    const size_t count = kBuffers * kCount;
    Buffer before(count);
    for (unsigned& value : before) value = value_ = value_ * 69069 + 1;
    const auto put = [&] {
      ASSERT_CUDA(cuMemcpyHtoD(memory_, before.data(), count * 4));
      ASSERT_CUDA(cuCtxSynchronize());
    };
    const auto get = [&] {
      Buffer after(count);
      EXPECT_OK(cuMemcpyDtoH(after.data(), memory_, count * 4));
      return after;
    };
    put();
    heddleHostDeviceSetSeed(++seed_);
    Launch(exec_);
    const Buffer live = get();
    put();
    EXPECT_OK(cuGraphLaunch(own_, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(live, get());
    EXPECT_NE(live, before);
  }

  CUgraph graph_ = nullptr;
  std::vector<CUgraphNode> nodes_;
  CUgraphExec own_ = nullptr;
  CUgraphExec exec_ = nullptr;
  bool enabled_ = true;
  unsigned value_ = 1;
  uint64_t seed_ = 0;
};

TEST_F(LiveUpdateTest, EachChangeAtEachTime) {
  Random random(5);
  for (int change = 0; change < kChanges; ++change) {
    for (const int before : {0, 1, 2, 3, 5}) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        Make();
        for (int launch = 0; launch < before; ++launch) LaunchBoth();
        Apply(static_cast<Change>(change), random);
        for (int launch = 0; launch < 5; ++launch) LaunchBoth();
        ASSERT_FALSE(HasFailure())
            << "change " << change << " after " << before << " launches";
        const int rewritten = Optimizer::Get()->UseOwnGraphs(false);
        switch (change) {
          case kKernelV1:
          case kKernel:
          case kOtherKernel:
            // More blocks may end a proof that a form rests on.
            break;
          case kMemcpy:
          case kMemset:
          case kFailedUpdate:
          case kFailedKernel:
            EXPECT_EQ(rewritten, 1) << "change " << change << " after "
                                    << before << ": " << Reports().back();
            break;
          case kUpdate:
          case kUpdateV1:
            EXPECT_EQ(rewritten, before == 0 ? 0 : 1)
                << "change " << change << " after " << before << ": "
                << Reports().back();
            break;
          default:
            EXPECT_EQ(rewritten, 0) << "change " << change;
        }
        Unmake();
      }
    }
  }
}

TEST_F(LiveUpdateTest, KernelChangesAreMirroredIntoProgrammaticForms) {
  LiveOptions options = Options();
  options.styles = {plan::Style::kProgrammatic,
                    plan::Style::kProgrammaticEarly};
  StartOptimizer(options);
  Random random(6);
  for (int round = 0; round < 10; ++round) {
    Make();
    for (int launch = 0; launch < 20; ++launch) {
      Apply(static_cast<Change>(Below(random, kMemset + 1)), random);
      LaunchBoth();
    }
    EXPECT_EQ(Optimizer::Get()->UseOwnGraphs(false), 1) << Reports().back();
    Unmake();
  }
}

TEST_F(LiveUpdateTest, ChangesInAnyOrder) {
  Random random(7);
  int rewritten = 0;
  for (int round = 0; round < 80; ++round) {
    Make();
    for (int launch = 0; launch < 12; ++launch) {
      for (uint32_t i = Below(random, 3); i > 0; --i) {
        const uint32_t rare = Below(random, 40);
        Apply(static_cast<Change>(
                  rare < kChanges ? rare : Below(random, kFailedKernel + 1)),
              random);
      }
      LaunchBoth();
      ASSERT_FALSE(HasFailure()) << "round " << round << " launch " << launch;
    }
    rewritten += Optimizer::Get()->UseOwnGraphs(false);
    Unmake();
  }
  EXPECT_GT(rewritten, 5);
}

// The proof that allows launch-order edges counts blocks; a change that makes
// more of them must not leave kernels waiting for room that their consumers
// hold.
TEST_F(LiveUpdateTest, MoreBlocksThanTheProofCounted) {
  LiveOptions options = Options();
  options.styles = {plan::Style::kLaunchOrder};
  StartOptimizer(options);
  Program program = Program::Chain(4, 2);
  Place(program);
  std::vector<CUgraphNode> nodes;
  const CUgraphExec exec = Instantiate(Build(program, &nodes));
  Memory expected = program.Start();
  for (int launch = 0; launch < 4; ++launch) {
    Launch(exec);
    program.RunSerially(&expected);
  }
  ExpectRewritten();
  ASSERT_GT(Reports().back()["launch_order"], 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    program.steps[i].blocks = kCount;
    Arguments arguments;
    Fill(program.steps[i], &arguments);
    EXPECT_OK(LIVE(cuGraphExecKernelNodeSetParams)(exec, nodes[i],
                                                   &arguments.params));
  }
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    heddleHostDeviceSetSeed(seed);
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, stream_));
    const CUresult result = LIVE(cuStreamSynchronize)(stream_);
    EXPECT_CUDA(CUDA_SUCCESS, result);
    if (result != CUDA_SUCCESS) return Restart();
    program.RunSerially(&expected);
  }
  EXPECT_EQ(ReadAll(program), expected);
}

// Launches of one executable follow each other, in whatever streams they are:
// so must its forms.
TEST_F(LiveUpdateTest, AFormThatIsLeftIsDoneBeforeTheNextLaunch) {
  const CUstream other = NewStream();
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Program program = Program::Chain(4, kCount);
    Place(program);
    std::vector<CUgraphNode> nodes;
    const CUgraphExec exec = Instantiate(Build(program, &nodes));
    Memory expected = program.Start();
    for (int launch = 0; launch < 3; ++launch) {
      Launch(exec);
      program.RunSerially(&expected);
    }
    heddleHostDeviceSetSeed(seed);
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, stream_));
    program.RunSerially(&expected);
    // Changes nothing, but heddle gives up the graph.
    EXPECT_OK(LIVE(cuGraphNodeSetEnabled)(exec, nodes[0], 1));
    EXPECT_OK(LIVE(cuGraphLaunch)(exec, other));
    program.RunSerially(&expected);
    EXPECT_OK(LIVE(cuCtxSynchronize)());
    ASSERT_EQ(ReadAll(program), expected) << "seed " << seed;
    EXPECT_OK(LIVE(cuGraphExecDestroy)(exec));
    EXPECT_OK(LIVE(cuMemFree)(memory_));
  }
}

}  // namespace
}  // namespace heddle::live
