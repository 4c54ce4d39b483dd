// SPDX-License-Identifier: Apache-2.0
// Runs original and patched images on a GPU: every kernel of patch_kernels.cu,
// each with every prologue, with and without a hidden parameter, as stream
// launches and as a chain of graph nodes that are ordered by programmatic edges
// alone. What the unpatched image computes in a stream is what must come out.

#include <cuda.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/cubin/patch.h"
#include "runtime/cubin/select_cubin.h"
#include "runtime/device/driver.h"

// patch_images.S
extern "C" {
extern const uint8_t image_sm_90[], image_sm_90_end[];
extern const uint8_t image_sm_90a[], image_sm_90a_end[];
extern const uint8_t image_debug[], image_debug_end[];
extern const uint8_t image_linked[], image_linked_end[];
extern const uint8_t image_select[], image_select_end[];
}

namespace heddle::cubin {
namespace {

constexpr unsigned kBlock = 128;
constexpr unsigned kWaves = 4;  // of one block on each multiprocessor
constexpr unsigned kState = 1024;
constexpr int kRounds = 6;    // of all kernels, in a chain
constexpr int kReplays = 40;  // of a graph

struct KernelCase {
  const char* name;
  unsigned dynamic_shared = 0;
  // Bytes of a third parameter.
  unsigned table_bytes = 0;
};
constexpr KernelCase kKernels[] = {
    {"plain"},
    {"static_shared"},
    {"dynamic_shared", kBlock * 4},
    {"clustered"},
    {"bounded"},
    {"no_params"},
    {"large_params", 0, 5000},
    {"full_first_form", 0, 4336},
    {"calling"},
    {"branching"},
    {"spilling"},
    {"already_dependent"},
};

// What a run leaves behind.
struct Outcome {
  std::vector<unsigned> elements;
  std::vector<unsigned> state;
};

#define ASSERT_CUDA(call) ASSERT_EQ((call), CUDA_SUCCESS)

class GpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<device::Driver> driver = device::Driver::Load();
    if (!driver.ok()) {
      skip_ = driver.status().ToString();
      return;
    }
    driver_ = new device::Driver(*driver);
    if (driver_->Init(0) != CUDA_SUCCESS) {
      skip_ = "no GPU: cuInit fails";
      return;
    }
    absl::StatusOr<std::unique_ptr<device::ScopedContext>> context =
        device::ScopedContext::Create(*driver_, 0);
    if (!context.ok()) {
      skip_ = context.status().ToString();
      return;
    }
    context_ = context->release();
    std::array<char, 128> name{};
    driver_->DeviceGetName(name.data(), name.size(), context_->device());
    simulated_ =
        std::string(name.data()).find("host device") != std::string::npos;
    int multiprocessors = 0;
    driver_->DeviceGetAttribute(&multiprocessors,
                                CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                context_->device());
    // The kernels want a multiple of 8 blocks.
    blocks_ = (kWaves * static_cast<unsigned>(multiprocessors) + 7) / 8 * 8;
    int major = 0;
    driver_->DeviceGetAttribute(&major,
                                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                context_->device());
    if (major != 9) {
      skip_ = "the images are for compute capability 9.0, this GPU has " +
              std::to_string(major);
    }
  }
  static void TearDownTestSuite() {
    delete context_;
    delete driver_;
    context_ = nullptr;
    driver_ = nullptr;
    skip_.clear();
  }
  void SetUp() override {
    if (!skip_.empty()) GTEST_SKIP() << skip_;
  }

  static device::Driver* driver_;
  static device::ScopedContext* context_;
  static std::string skip_;
  static bool simulated_;   // the host device, which runs no device code
  static unsigned blocks_;  // of a grid
};
device::Driver* GpuTest::driver_ = nullptr;
device::ScopedContext* GpuTest::context_ = nullptr;
std::string GpuTest::skip_;
bool GpuTest::simulated_ = false;
unsigned GpuTest::blocks_ = 0;

// A loaded image with its kernels, and the buffers they work on.
class Program {
 public:
  Program(const device::Driver& driver, const PatchedImage& image,
          unsigned blocks)
      : driver_(driver), image_(image), blocks_(blocks) {
    for (unsigned i = 0; i < table_.size(); ++i) table_[i] = i * 2654435761u;
  }
  ~Program() {
    if (exec_ != nullptr) driver_.GraphExecDestroy(exec_);
    if (graph_ != nullptr) driver_.GraphDestroy(graph_);
    for (const CUdeviceptr buffer : buffers_) driver_.MemFree(buffer);
    if (stream_ != nullptr) driver_.StreamDestroy(stream_);
    if (module_ != nullptr) driver_.ModuleUnload(module_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Load() {
    ASSERT_CUDA(driver_.ModuleLoadData(&module_, image_.image.data()));
    ASSERT_CUDA(driver_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    for (CUdeviceptr& buffer : buffers_) {
      ASSERT_CUDA(driver_.MemAlloc(&buffer, Elements() * sizeof(unsigned)));
    }
    size_t size = 0;
    ASSERT_CUDA(driver_.ModuleGetGlobal(&state_, &size, module_, "state"));
    ASSERT_EQ(size, kState * sizeof(unsigned));
    for (const KernelCase& kernel : kKernels) {
      ASSERT_CUDA(driver_.ModuleGetFunction(&functions_[kernel.name], module_,
                                            kernel.name));
    }
  }

  // The driver must see the hidden parameter where the patcher put it.
  void CheckHidden(uint32_t bytes) {
    if (driver_.FuncGetParamInfo == nullptr) return;
    for (const KernelPatch& patch : image_.kernels) {
      const auto function = functions_.find(patch.name);
      if (function == functions_.end()) continue;
      size_t offset = 0;
      size_t size = 0;
      ASSERT_CUDA(driver_.FuncGetParamInfo(
          function->second, patch.hidden_ordinal, &offset, &size));
      EXPECT_EQ(offset, patch.hidden_offset) << patch.name;
      EXPECT_EQ(size, bytes) << patch.name;
      EXPECT_NE(driver_.FuncGetParamInfo(
                    function->second, patch.hidden_ordinal + 1, &offset, &size),
                CUDA_SUCCESS)
          << patch.name;
    }
  }

  int Registers(const std::string& kernel) {
    int registers = 0;
    driver_.FuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                             functions_[kernel]);
    return registers;
  }

  void Fill(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<unsigned> values(Elements());
    for (unsigned& value : values) value = static_cast<unsigned>(random());
    for (const CUdeviceptr buffer : buffers_) {
      ASSERT_CUDA(driver_.MemcpyHtoD(buffer, values.data(),
                                     values.size() * sizeof(unsigned)));
      for (unsigned& value : values) value = ~value;
    }
    ASSERT_CUDA(
        driver_.MemcpyHtoD(state_, values.data(), kState * sizeof(unsigned)));
    ASSERT_CUDA(driver_.CtxSynchronize());
  }

  void RunStream() {
    for (int i = 0; i < Nodes(); ++i) {
      const Launch launch(*this, i);
      ASSERT_CUDA(driver_.LaunchKernel(
          launch.params.func, launch.params.gridDimX, 1, 1,
          launch.params.blockDimX, 1, 1, launch.params.sharedMemBytes, stream_,
          launch.params.kernelParams, nullptr))
          << kKernels[i % std::size(kKernels)].name;
    }
    ASSERT_CUDA(driver_.StreamSynchronize(stream_));
  }

  // A chain whose edges all leave by `port`; 0: full edges.
  void BuildGraph(unsigned char port) {
    ASSERT_CUDA(driver_.GraphCreate(&graph_, 0));
    CUgraphNode previous = nullptr;
    for (int i = 0; i < Nodes(); ++i) {
      const Launch launch(*this, i);
      CUgraphNode node = nullptr;
      ASSERT_CUDA(driver_.GraphAddKernelNode(&node, graph_, nullptr, 0,
                                             &launch.params));
      if (previous != nullptr) {
        CUgraphEdgeData edge{};
        edge.from_port = port;
        edge.type = port == 0 ? CU_GRAPH_DEPENDENCY_TYPE_DEFAULT
                              : CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        ASSERT_CUDA(
            driver_.GraphAddDependencies(graph_, &previous, &node, &edge, 1));
      }
      previous = node;
    }
    ASSERT_CUDA(driver_.GraphInstantiateWithFlags(&exec_, graph_, 0));
  }
  void RunGraph() {
    ASSERT_CUDA(driver_.GraphLaunch(exec_, stream_));
    ASSERT_CUDA(driver_.StreamSynchronize(stream_));
  }

  void Read(Outcome* outcome) {
    outcome->elements.resize(2 * Elements());
    outcome->state.resize(kState);
    for (int i = 0; i < 2; ++i) {
      ASSERT_CUDA(driver_.MemcpyDtoH(outcome->elements.data() + i * Elements(),
                                     buffers_[i],
                                     Elements() * sizeof(unsigned)));
    }
    ASSERT_CUDA(driver_.MemcpyDtoH(outcome->state.data(), state_,
                                   kState * sizeof(unsigned)));
  }

 private:
  size_t Elements() const { return size_t{blocks_} * kBlock; }
  static int Nodes() { return kRounds * static_cast<int>(std::size(kKernels)); }

  // The launch of node `index`: its kernel reads what the last one wrote.
  struct Launch {
    Launch(Program& program, int index) {
      const KernelCase& kernel = kKernels[index % std::size(kKernels)];
      const bool bare = std::string(kernel.name) == "no_params";
      in = program.buffers_[program.turn_ % 2];
      out = program.buffers_[(program.turn_ + 1) % 2];
      if (!bare) {
        ++program.turn_;
        pointers = {&in, &out};
      }
      if (kernel.table_bytes != 0) pointers.push_back(program.table_.data());
      for (const KernelPatch& patch : program.image_.kernels) {
        if (patch.name != kernel.name) continue;
        EXPECT_TRUE(patch.hidden_ordinal == 0 ||
                    patch.hidden_ordinal == pointers.size());
      }
      pointers.push_back(program.hidden_.data());  // unused if there is none
      params.func = program.functions_[kernel.name];
      params.gridDimX = bare ? 1 : program.blocks_;
      params.blockDimX = bare ? kState : kBlock;
      params.gridDimY = params.gridDimZ = 1;
      params.blockDimY = params.blockDimZ = 1;
      params.sharedMemBytes = kernel.dynamic_shared;
      params.kernelParams = pointers.data();
    }
    CUdeviceptr in = 0;
    CUdeviceptr out = 0;
    std::vector<void*> pointers;
    CUDA_KERNEL_NODE_PARAMS params{};
  };

  const device::Driver& driver_;
  const PatchedImage& image_;
  const unsigned blocks_;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::array<CUdeviceptr, 2> buffers_{};
  CUdeviceptr state_ = 0;
  std::map<std::string, CUfunction> functions_;
  std::array<unsigned, 1250> table_{};
  std::array<uint64_t, 64> hidden_{};
  int turn_ = 0;
};

struct ImageCase {
  const char* name;
  const uint8_t* begin;
  const uint8_t* end;
};

class PatchGpuTest : public GpuTest,
                     public testing::WithParamInterface<ImageCase> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    const absl::Span<const uint8_t> image(GetParam().begin,
                                          GetParam().end - GetParam().begin);
    original_.image.assign(image.begin(), image.end());
    Program program(*driver_, original_, blocks_);
    program.Load();
    if (HasFatalFailure()) return;
    for (unsigned seed = 0; seed < expected_.size(); ++seed) {
      program.Fill(seed);
      program.RunStream();
      program.Read(&expected_[seed]);
      if (HasFatalFailure()) return;
    }
    for (const KernelCase& kernel : kKernels) {
      registers_[kernel.name] = program.Registers(kernel.name);
    }
    ASSERT_NE(expected_[0].elements, expected_[1].elements);
  }

  // How many elements are not as the original left them.
  size_t Wrong(const Outcome& outcome, unsigned seed) const {
    size_t wrong = 0;
    for (size_t i = 0; i < outcome.elements.size(); ++i) {
      wrong += outcome.elements[i] != expected_[seed].elements[i];
    }
    return wrong;
  }

  void Check(Program& program, unsigned seed) {
    Outcome outcome;
    ASSERT_NO_FATAL_FAILURE(program.Read(&outcome));
    ASSERT_EQ(Wrong(outcome, seed), 0u)
        << "of " << outcome.elements.size() << " elements";
    ASSERT_EQ(outcome.state, expected_[seed].state);
  }

  PatchedImage original_;
  std::array<Outcome, 3> expected_;
  std::map<std::string, int> registers_;
};

TEST_P(PatchGpuTest, PatchedKernelsComputeTheSame) {
  for (const Prologue prologue :
       {Prologue::kNone, Prologue::kWait, Prologue::kTriggerWait,
        Prologue::kWaitTrigger}) {
    for (const uint32_t hidden : {0, 8, 24, 512}) {
      SCOPED_TRACE(testing::Message()
                   << "prologue " << static_cast<int>(prologue) << ", hidden "
                   << hidden);
      absl::StatusOr<PatchedImage> patched =
          PatchCubin(original_.image, {prologue, hidden});
      ASSERT_TRUE(patched.ok()) << patched.status();
      for (const KernelPatch& kernel : patched->kernels) {
        ASSERT_TRUE(kernel.patched) << kernel.name << ": " << kernel.reason;
      }
      Program program(*driver_, *patched, blocks_);
      ASSERT_NO_FATAL_FAILURE(program.Load());
      for (const KernelCase& kernel : kKernels) {
        EXPECT_EQ(program.Registers(kernel.name), registers_[kernel.name])
            << kernel.name;
      }
      if (hidden != 0) {
        ASSERT_NO_FATAL_FAILURE(program.CheckHidden(hidden));
      }
      for (unsigned seed = 0; seed < expected_.size(); ++seed) {
        ASSERT_NO_FATAL_FAILURE(program.Fill(seed));
        ASSERT_NO_FATAL_FAILURE(program.RunStream());
        ASSERT_NO_FATAL_FAILURE(Check(program, seed));
      }
    }
  }
}

TEST_P(PatchGpuTest, AProgrammaticChainOfPatchedKernelsComputesTheSame) {
  if (driver_->GraphAddDependencies == nullptr) {
    GTEST_SKIP() << "the driver has no edges with data";
  }
  for (const Prologue prologue :
       {Prologue::kWait, Prologue::kTriggerWait, Prologue::kWaitTrigger}) {
    for (const uint32_t hidden : {0, 24}) {
      SCOPED_TRACE(testing::Message()
                   << "prologue " << static_cast<int>(prologue) << ", hidden "
                   << hidden);
      absl::StatusOr<PatchedImage> patched =
          PatchCubin(original_.image, {prologue, hidden});
      ASSERT_TRUE(patched.ok()) << patched.status();
      Program program(*driver_, *patched, blocks_);
      ASSERT_NO_FATAL_FAILURE(program.Load());
      ASSERT_NO_FATAL_FAILURE(
          program.BuildGraph(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC));
      for (int replay = 0; replay < kReplays; ++replay) {
        const unsigned seed = replay % expected_.size();
        ASSERT_NO_FATAL_FAILURE(program.Fill(seed));
        ASSERT_NO_FATAL_FAILURE(program.RunGraph());
        ASSERT_NO_FATAL_FAILURE(Check(program, seed)) << "replay " << replay;
      }
    }
  }
}

// What the prologue is for: without it the same chain reads what is not there
// yet. On a GPU that is a matter of luck.
TEST_P(PatchGpuTest, TheChainGoesWrongWithoutAPrologue) {
  if (!simulated_) GTEST_SKIP() << "the GPU may be lucky";
  Program program(*driver_, original_, blocks_);
  ASSERT_NO_FATAL_FAILURE(program.Load());
  ASSERT_NO_FATAL_FAILURE(
      program.BuildGraph(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC));
  size_t wrong = 0;
  for (int replay = 0; replay < kReplays && wrong == 0; ++replay) {
    const unsigned seed = replay % expected_.size();
    ASSERT_NO_FATAL_FAILURE(program.Fill(seed));
    ASSERT_NO_FATAL_FAILURE(program.RunGraph());
    Outcome outcome;
    ASSERT_NO_FATAL_FAILURE(program.Read(&outcome));
    wrong = Wrong(outcome, seed);
  }
  EXPECT_GT(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Images, PatchGpuTest,
    testing::Values(ImageCase{"sm_90", image_sm_90, image_sm_90_end},
                    ImageCase{"sm_90a", image_sm_90a, image_sm_90a_end},
                    ImageCase{"debug", image_debug, image_debug_end},
                    ImageCase{"linked", image_linked, image_linked_end}),
    [](const auto& info) { return std::string(info.param.name); });

using SelectGpuTest = GpuTest;

// Runs which_image out of `image`.
unsigned WhichImage(const device::Driver& driver, const void* image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr out = 0;
  unsigned value = 0;
  void* params[] = {&out};
  EXPECT_EQ(driver.ModuleLoadData(&module, image), CUDA_SUCCESS);
  EXPECT_EQ(driver.ModuleGetFunction(&function, module, "which_image"),
            CUDA_SUCCESS);
  EXPECT_EQ(driver.MemAlloc(&out, sizeof(value)), CUDA_SUCCESS);
  EXPECT_EQ(driver.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params,
                                nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(driver.MemcpyDtoH(&value, out, sizeof(value)), CUDA_SUCCESS);
  driver.MemFree(out);
  driver.ModuleUnload(module);
  return value;
}

TEST_F(SelectGpuTest, TheCodeThatIsSelectedIsTheCodeThatTheDriverRuns) {
  absl::StatusOr<std::vector<uint8_t>> selected = SelectCubin(
      absl::MakeConstSpan(image_select, image_select_end - image_select), 9, 0);
  ASSERT_TRUE(selected.ok()) << selected.status();
  if (simulated_) GTEST_SKIP() << "no device code runs";
  const unsigned driver_choice = WhichImage(*driver_, image_select);
  EXPECT_NE(driver_choice, 0u);
  EXPECT_EQ(WhichImage(*driver_, selected->data()), driver_choice);
  RecordProperty("image", static_cast<int>(driver_choice));
  std::printf("the driver runs %u\n", driver_choice);
}

}  // namespace
}  // namespace heddle::cubin
