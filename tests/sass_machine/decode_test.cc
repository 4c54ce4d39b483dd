// SPDX-License-Identifier: Apache-2.0
// The sample decoder, its device code run by the machine, step by step against
// the reference in plain C++.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/apps/common/gpu.h"
#include "benchmarks/apps/decode/decoder.h"
#include "benchmarks/apps/decode/launcher.h"
#include "benchmarks/apps/decode/options.h"
#include "benchmarks/apps/decode/reference.h"
#include "benchmarks/apps/decode/session.h"
#include "benchmarks/apps/decode/weights.h"
#include "tests/sass_machine/machine.h"

namespace heddle::sass_machine {
namespace {

template <typename... P>
std::vector<size_t> ParameterSizes(void (*)(P...)) {
  return {sizeof(P)...};  // NOLINT(bugprone-sizeof-expression): pointers count
}

struct KernelName {
  const char* name;
  std::vector<size_t> parameters;
};

const KernelName& NameOf(decode::Kernel kernel) {
  static const auto* const kernels = new std::vector<KernelName>{
#define MACHINE_KERNEL(name, symbol) \
  {#symbol, ParameterSizes(static_cast<decode::name##Fn*>(nullptr))},
      DECODE_KERNELS(MACHINE_KERNEL)
#undef MACHINE_KERNEL
  };
  return (*kernels)[static_cast<size_t>(kernel)];
}

// A device whose kernels run in the machine. No graphs.
class MachineGpu : public apps::Gpu, public decode::Launcher {
 public:
  MachineGpu() {
    std::ifstream file(HEDDLE_DECODE_CUBIN, std::ios::binary);
    const std::vector<uint8_t> image(std::istreambuf_iterator<char>(file), {});
    auto program = LoadProgram(image, 0x7e0000000000, &memory_);
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }

  std::string Describe() const override { return "the machine"; }
  absl::StatusOr<void*> Allocate(size_t bytes, const char*) override {
    const uint64_t address = next_;
    next_ += (bytes + 511) / 256 * 256;
    memory_.Add(address, std::vector<uint8_t>(bytes));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the machine.
    return reinterpret_cast<void*>(address);
  }
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes) override {
    uint8_t* at = memory_.At(reinterpret_cast<uint64_t>(to), bytes);
    if (at == nullptr) return absl::OutOfRangeError("copy to nowhere");
    std::memcpy(at, from, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* to, const void* from, size_t bytes) override {
    const uint8_t* at = memory_.At(reinterpret_cast<uint64_t>(from), bytes);
    if (at == nullptr) return absl::OutOfRangeError("copy from nowhere");
    std::memcpy(to, at, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyRows(void* to, size_t to_pitch, const void* from,
                        size_t from_pitch, size_t width, size_t rows) override {
    std::vector<uint8_t> row(width);
    for (size_t i = 0; i < rows; ++i) {
      absl::Status status = CopyToHost(
          row.data(), static_cast<const char*>(from) + i * from_pitch, width);
      if (status.ok()) {
        status = CopyToDevice(static_cast<char*>(to) + i * to_pitch, row.data(),
                              width);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status LaunchRaw(decode::Kernel kernel,
                         const decode::LaunchShape& shape,
                         void** params) override {
    const KernelName& name = NameOf(kernel);
    const KernelCode* code = program_.Find(name.name);
    if (code == nullptr ||
        code->kernel.params.size() != name.parameters.size()) {
      return absl::NotFoundError(name.name);
    }
    sass_machine::Launch launch;
    launch.kernel = name.name;
    launch.grid = {shape.grid_x, shape.grid_y, 1};
    launch.block = {shape.block_x, shape.block_y, 1};
    launch.dynamic_shared = shape.shared_bytes;
    launch.params.resize(code->kernel.param_size);
    for (size_t i = 0; i < name.parameters.size(); ++i) {
      std::memcpy(&launch.params[code->kernel.params[i].offset], params[i],
                  name.parameters[i]);
    }
    seen_.insert(name.name);
    return Run(program_, launch, &memory_, nullptr,
               {.block_order_seed = ++launches_});
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::Status BeginCapture() override {
    return absl::UnimplementedError("no graphs");
  }
  absl::Status EndCapture() override { return BeginCapture(); }
  size_t graph_nodes() const override { return 0; }
  absl::Status LaunchGraph() override { return BeginCapture(); }
  absl::Status StartTimer(int) override { return absl::OkStatus(); }
  absl::Status StopTimer(int) override { return absl::OkStatus(); }
  absl::StatusOr<float> Milliseconds(int) override { return 1.0f; }
  void* native_stream() override { return nullptr; }

  const std::set<std::string>& seen() const { return seen_; }

 private:
  Memory memory_;
  Program program_;
  uint64_t next_ = 0x7f0000000000;
  uint64_t launches_ = 0;
  std::set<std::string> seen_;
};

std::set<std::string> Generate(const std::vector<std::string>& args,
                               int steps) {
  const absl::StatusOr<decode::Options> options = decode::ParseOptions(args);
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return {};
  decode::ModelWeights weights =
      decode::SeededWeights(options->model, options->seed);
  decode::RoundWeights(options->dtype, &weights);
  MachineGpu gpu;
  auto decoder = decode::Decoder::Create(options->model, weights,
                                         options->dtype, &gpu, &gpu, nullptr);
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  if (!decoder.ok()) return {};
  decode::Session session(*options, &gpu, decoder->get());
  EXPECT_TRUE(session.Prepare().ok());
  decode::Reference reference(options->model, weights, /*round_inputs=*/false);
  decode::CheckResult check;
  check.tolerance = 2e-4;
  const auto tokens = session.Generate(&reference, &check);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_TRUE(check.ok()) << check.max_error;
  EXPECT_EQ(check.steps, steps);
  EXPECT_GT(check.max_error, 0);  // something was compared
  return gpu.seen();
}

TEST(SassMachineDecodeTest, EveryStepMatchesTheReference) {
  std::set<std::string> seen = Generate(
      {"--layers=1", "--hidden=64", "--heads=4", "--kv-heads=2",
       "--intermediate=72", "--vocab=200", "--max-seq=48", "--tokens=12"},
      12);
  seen.merge(Generate({"--layers=2", "--hidden=32", "--heads=2", "--kv-heads=1",
                       "--head-dim=20", "--vocab=1100", "--max-seq=24",
                       "--tokens=4", "--dtype=bf16"},
                      4));
  // All but the rounding of inputs, which only products by cuBLAS want.
  EXPECT_EQ(seen.size(), 15u);
}

}  // namespace
}  // namespace heddle::sass_machine
