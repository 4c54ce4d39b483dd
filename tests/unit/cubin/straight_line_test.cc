// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/straight_line.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "runtime/cubin/instruction.h"

namespace heddle::cubin {
namespace {

constexpr uint32_t kArch = 90;
constexpr Instruction kNop = {0x0000000000007918, 0x000fc00000000000};
constexpr Instruction kExit = {0x000000000000794d, 0x000fea0003800000};
// MOV R2, 0x38, as nvdisasm prints it.
constexpr Instruction kMove = {0x0000003800027802, 0x000fe20000000f00};

std::optional<uint64_t> WriterOfR2(const std::vector<Instruction>& code,
                                   uint64_t at) {
  std::vector<uint8_t> bytes(code.size() * sizeof(Instruction));
  std::memcpy(bytes.data(), code.data(), bytes.size());
  return StraightLine(bytes, kArch)
      .WriterBefore(SassOperandKind::kRegister, 2, at);
}

TEST(StraightLineTest, TheLastWriterIsFoundAcrossWhatDoesNotWrite) {
  EXPECT_EQ(WriterOfR2({kMove, kMove, kNop, kNop, kExit}, 0x40), 0x10u);
  EXPECT_EQ(WriterOfR2({kNop, kNop, kExit}, 0x20), std::nullopt);
}

TEST(StraightLineTest, ABranchInBetweenLeavesTheWriterOpen) {
  // Somebody jumps behind the move with another value.
  EXPECT_EQ(
      WriterOfR2({kMove, kNop, kNop, kExit, EncodeBranch(0x40, 0x20)}, 0x30),
      std::nullopt);
  // Or in front of it, which makes no difference.
  EXPECT_EQ(WriterOfR2({kMove, kNop, kNop, kExit, EncodeBranch(0x40, 0)}, 0x30),
            0u);
  // Control leaves in between, so what is there does not follow.
  EXPECT_EQ(WriterOfR2({kMove, kExit, kNop}, 0x20), std::nullopt);
}

}  // namespace
}  // namespace heddle::cubin
