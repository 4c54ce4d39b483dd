// SPDX-License-Identifier: Apache-2.0
// What the host device makes of kernels that heddle has patched.

#include "tests/hostdevice/prologue.h"

#include <cstring>
#include <random>

#include "absl/types/span.h"
#include "runtime/cubin/elf.h"
#include "runtime/cubin/patch.h"
#include "tests/unit/cubin/test_images.h"
#include "tests/unit/hostdevice/device_test.h"

namespace heddle::hostdevice {
namespace {

using cubin::Prologue;
using Steps = std::vector<PrologueStep>;

constexpr uint64_t kWait = 0x782e;
constexpr uint64_t kTrigger = 0x782d;
constexpr uint64_t kOther = 0x7918;
constexpr uint64_t kOwnFirst = 0x7b82;

// Code of whole instructions, by their low words; branches are put in after.
class Code {
 public:
  explicit Code(const std::vector<uint64_t>& low) {
    for (const uint64_t word : low) {
      Append(word);
      Append(uint64_t{0x000fe200} << 32);
    }
  }
  Code& Branch(size_t at, int64_t target, uint64_t operation = 0x7947) {
    const int64_t next = static_cast<int64_t>(16 * (at + 1));
    const auto displacement = static_cast<uint64_t>((target - next) / 4);
    const uint64_t rest = displacement >> 8 & ((uint64_t{1} << 48) - 1);
    const uint64_t words[2] = {
        operation | (displacement & 0xff) << 16 | rest << 34, rest >> 30};
    std::memcpy(bytes_.data() + 16 * at, words, sizeof(words));
    return *this;
  }
  Steps Read() const { return ReadPrologue(bytes_); }

 private:
  void Append(uint64_t word) {
    const auto* from = reinterpret_cast<const uint8_t*>(&word);
    bytes_.insert(bytes_.end(), from, from + sizeof(word));
  }
  std::vector<uint8_t> bytes_;
};

// Instruction 0, two of the body, and a stub from 48 on.
Code Patched(std::vector<uint64_t> stub) {
  std::vector<uint64_t> code = {0, kOther, kOther};
  code.insert(code.end(), stub.begin(), stub.end());
  code.push_back(0);
  return Code(code).Branch(0, 48).Branch(code.size() - 1, 16);
}

TEST(ReadPrologueTest, ReadsTheStubInItsOrder) {
  EXPECT_EQ(Patched({kWait, kOwnFirst}).Read(), (Steps{PrologueStep::kWait}));
  EXPECT_EQ(Patched({kTrigger, kWait, kOwnFirst}).Read(),
            (Steps{PrologueStep::kTrigger, PrologueStep::kWait}));
  EXPECT_EQ(Patched({kWait, kOther, kTrigger, kOwnFirst}).Read(),
            (Steps{PrologueStep::kWait, PrologueStep::kTrigger}));
  EXPECT_EQ(Patched({kOwnFirst}).Read(), Steps{});
}

TEST(ReadPrologueTest, TheDisplacedInstructionIsTheKernelsOwn) {
  EXPECT_EQ(Patched({kTrigger, kWait}).Read(), (Steps{PrologueStep::kTrigger}));
}

TEST(ReadPrologueTest, APredicatedInstructionIsNoStep) {
  EXPECT_EQ(Patched({0x082e, kOwnFirst}).Read(), Steps{});
}

TEST(ReadPrologueTest, OtherCodeHasNoPrologue) {
  EXPECT_EQ(ReadPrologue({}), Steps{});
  EXPECT_EQ(Code({kWait, kTrigger, kOther}).Read(), Steps{});
  const std::vector<uint64_t> stub = {0, kOther, kOther, kWait, kOther, 0};
  const auto code = [&] { return Code(stub).Branch(0, 48).Branch(5, 16); };
  ASSERT_EQ(code().Read(), (Steps{PrologueStep::kWait}));
  EXPECT_EQ(code().Branch(0, 48, 0x0947).Read(), Steps{});  // predicated
  EXPECT_EQ(code().Branch(5, 32).Read(), Steps{});          // leads elsewhere
  EXPECT_EQ(code().Branch(0, 52).Read(), Steps{});  // inside an instruction
  for (const int64_t target :
       {int64_t{-16}, int64_t{0}, int64_t{16}, int64_t{96}, int64_t{1} << 50,
        -(int64_t{1} << 50)}) {
    EXPECT_EQ(code().Branch(0, target).Read(), Steps{}) << target;
  }
  // No end in sight.
  EXPECT_EQ(Code({0, kOther, kOther, kWait, kOther}).Branch(0, 48).Read(),
            Steps{});
  std::vector<uint64_t> endless(200, kWait);
  EXPECT_EQ(Code(endless).Branch(0, 48).Branch(199, 16).Read(), Steps{});
}

TEST(ReadPrologueTest, SurvivesAnyBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes(random() % 200);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    // Begins with a branch that leads nearly anywhere near.
    if (bytes.size() > 16) {
      const uint64_t branch = 0x7947 | (random() & 0xfc) << 16;
      std::memcpy(bytes.data(), &branch, sizeof(branch));
      if (random() % 2 == 0) std::memset(bytes.data() + 8, 0, 8);
    }
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), exact.get());
    EXPECT_LE(
        ReadPrologue(absl::MakeConstSpan(exact.get(), bytes.size())).size(),
        64u);
  }
}

class PatchedKernelsTest : public DeviceTest {
 protected:
  std::vector<uint8_t> Patch(Prologue prologue) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(image_.data());
    auto patched = cubin::PatchCubin(absl::MakeConstSpan(bytes, image_.size()),
                                     {.prologue = prologue});
    EXPECT_TRUE(patched.ok()) << patched.status();
    return std::move(patched->image);
  }
  void Load(Prologue prologue) {
    const std::vector<uint8_t> image = Patch(prologue);
    ASSERT_CUDA(cuModuleLoadData(&module_, image.data()));
  }
};

TEST_F(PatchedKernelsTest, EveryKernelOfAPatchedImageIsRead) {
  const std::map<Prologue, Steps> expected = {
      {Prologue::kWait, {PrologueStep::kWait}},
      {Prologue::kTriggerWait, {PrologueStep::kTrigger, PrologueStep::kWait}},
      {Prologue::kWaitTrigger, {PrologueStep::kWait, PrologueStep::kTrigger}},
      {Prologue::kNone, {}}};
  for (const auto& [prologue, steps] : expected) {
    const std::vector<uint8_t> image =
        prologue == Prologue::kNone
            ? std::vector<uint8_t>(image_.begin(), image_.end())
            : Patch(prologue);
    const auto parsed = cubin::ParseCubin(image);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ReadPrologues(image, *parsed),
              std::vector<Steps>(parsed->kernels.size(), steps));
  }
}

TEST_F(PatchedKernelsTest, SurvivesDamagedImages) {
  int readable = 0;
  cubin::ForEachDamaged(
      Patch(Prologue::kTriggerWait), [&](absl::Span<const uint8_t> bytes) {
        const auto parsed = cubin::ParseCubin(bytes);
        if (!parsed.ok()) return;
        ++readable;
        EXPECT_EQ(ReadPrologues(bytes, *parsed).size(), parsed->kernels.size());
      });
  EXPECT_GT(readable, 100);
}

TEST_F(PatchedKernelsTest, WaitBeforeTheirBody) {
  constexpr int kBlocks = 6;
  const CUdeviceptr data = Ints(kBlocks);
  const CUdeviceptr out = Ints(1);
  const CUstream stream = NewStream();
  const auto run = [&] {
    return OverSeeds(120, [&] {
      EXPECT_OK(cuMemsetD32(data, 0, kBlocks));
      EXPECT_OK(cuCtxSynchronize());
      EXPECT_OK(Launch("fill_trigger_first", kBlocks, stream, data, 100));
      EXPECT_OK(LaunchProgrammatic("sum", 1, stream, out, data, kBlocks));
      EXPECT_OK(cuStreamSynchronize(stream));
      return Read(out, 1)[0];
    });
  };
  EXPECT_GT(run().size(), 2u);
  for (const Prologue prologue :
       {Prologue::kWait, Prologue::kTriggerWait, Prologue::kWaitTrigger}) {
    Load(prologue);
    EXPECT_EQ(run(), (std::set<int>{100 * kBlocks + 15}));
  }
}

TEST_F(PatchedKernelsTest, TriggerBeforeTheirBody) {
  // A third kernel that does not wait shows when the second has triggered: with
  // the trigger first, before the first kernel is complete.
  constexpr int kBlocks = 2;
  const CUdeviceptr data = Ints(kBlocks);
  const CUdeviceptr unused = Ints(kBlocks);
  const CUdeviceptr out = Ints(1);
  const CUstream stream = NewStream();
  const CUmodule plain = module_;
  const auto run = [&](Prologue prologue) {
    Load(prologue);
    CUmodule patched = module_;
    return OverSeeds(300, [&] {
      EXPECT_OK(cuMemsetD32(data, 0, kBlocks));
      EXPECT_OK(cuCtxSynchronize());
      module_ = patched;
      EXPECT_OK(Launch("fill", kBlocks, stream, data, 100));
      EXPECT_OK(LaunchProgrammatic("fill", kBlocks, stream, unused, 1));
      module_ = plain;
      EXPECT_OK(LaunchProgrammatic("sum", 1, stream, out, data, kBlocks));
      EXPECT_OK(cuStreamSynchronize(stream));
      return Read(out, 1)[0];
    });
  };
  const std::set<int> right{201};
  EXPECT_EQ(run(Prologue::kWaitTrigger), right);
  EXPECT_GT(run(Prologue::kTriggerWait).size(), 1u);
}

// What blocks take of a multiprocessor counts, not their number alone.
TEST_F(PatchedKernelsTest, LaunchesThatFitNoMultiprocessorAreRefused) {
  int blocks = 0;
  EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, Function("fill"), 32, 0));
  EXPECT_EQ(blocks, 2);
  const CUfunction function = Function("shared_bytes");
  EXPECT_OK(cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10));
  EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32,
                                                        200 << 10));
  EXPECT_EQ(blocks, 1);
}

}  // namespace
}  // namespace heddle::hostdevice
