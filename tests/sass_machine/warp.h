// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_SASS_MACHINE_WARP_H_
#define HEDDLE_TESTS_SASS_MACHINE_WARP_H_

// 32 threads that run together where they are at the same place. Internal to
// the machine.
//
// Every lane has a place of its own. A step runs the lanes that are ready at
// the lowest place. Lanes that wait (convergence barriers, WARPSYNC, BAR) are
// ready again when those they wait for have arrived or ended.

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/sass_machine/block.h"

namespace heddle::sass_machine {

enum class LaneState : uint8_t {
  kReady,
  kAtConvergence,  // BSYNC of barrier `waits_for`
  kAtWarpSync,     // WARPSYNC with `waits_mask`
  kAtBarrier,      // BAR number `waits_for`
  kEnded,
};

struct Lane {
  std::array<uint32_t, 256> registers{};  // the last one stays 0
  uint8_t predicates = 0x80;              // bit 7: PT
  uint32_t place = 0;                     // offset in the section, bytes
  LaneState state = LaneState::kEnded;
  uint32_t waits_for = 0;
  uint32_t waits_mask = 0;
  uint32_t collective_end = 0;  // where ENDCOLLECTIVE leads
  // Of a barrier with a vote (BAR.RED): this lane's, and what B2R reads.
  bool vote = false;
  uint64_t vote_kind = 0;
  uint32_t vote_result = 0;
  std::vector<uint8_t> local;
};

class Warp {
 public:
  // Threads [first, first + count) of the block, count at most 32.
  Warp(Block* block, uint32_t first, uint32_t count);

  // One instruction for some lanes; false if all wait.
  absl::StatusOr<bool> Step();
  bool done() const;
  uint64_t instructions() const { return instructions_; }
  std::array<Lane, 32>& lanes() { return lanes_; }

  // What executes this instruction; null if nothing does.
  static Handler FindHandler(const Code& code);

 private:
  // Reading and writing operands.
  uint32_t Register(int lane, int index) const {
    return lanes_[static_cast<size_t>(lane)]
        .registers[static_cast<size_t>(index)];
  }
  uint64_t Pair(int lane, int index) const;
  void SetRegister(int lane, int index, uint32_t value);
  void SetWords(int lane, bool uniform, int index, int words, uint64_t value);
  uint32_t Uniform(int index) const {
    return uniform_[static_cast<size_t>(index)];
  }
  bool Predicate(int lane, bool uniform, int index, bool negated) const;
  bool Predicate(int lane, const cubin::SassPredicateUse& use) const {
    return Predicate(lane, use.uniform, use.index, use.negated);
  }
  bool Predicate(int lane, const cubin::SassOperand& operand) const;
  void SetPredicate(int lane, bool uniform, int index, bool value);
  void SetPredicate(int lane, const cubin::SassOperand& operand, bool value);
  absl::StatusOr<uint64_t> Constant(int bank, int64_t offset, int bytes) const;
  // An operand's raw value, `words` of 32 bits.
  absl::StatusOr<uint64_t> Operand(int lane, const cubin::SassOperand& operand,
                                   int words) const;
  absl::StatusOr<uint64_t> Source(int lane, const cubin::SassSource& source,
                                  bool extended) const;
  std::array<uint32_t, 3> Thread(int lane) const;

  // Handlers.
  absl::Status Integer(const Code& code, uint32_t lanes);
  absl::Status IntegerLane(const Code& code, int lane);
  absl::Status Special(const Code& code, uint32_t lanes);
  absl::Status Nothing(const Code& code, uint32_t lanes);
  absl::Status CodeAddress(const Code& code, uint32_t lanes);

  absl::Status Branch(const Code& code, uint32_t lanes);
  absl::Status IndirectBranch(const Code& code, uint32_t lanes);
  absl::Status Exit(const Code& code, uint32_t lanes);
  absl::Status Meeting(const Code& code, uint32_t lanes);
  absl::Status Meet(const Code& code, uint32_t lanes);
  absl::Status Break(const Code& code, uint32_t lanes);
  absl::Status WarpSync(const Code& code, uint32_t lanes);
  absl::Status EndCollective(const Code& code, uint32_t lanes);
  absl::Status BlockBarrier(const Code& code, uint32_t lanes);
  absl::Status VoteResult(const Code& code, uint32_t lanes);

  absl::Status Access(const Code& code, uint32_t lanes);
  absl::Status Atomic(const Code& code, uint32_t lanes);
  absl::Status CopyToShared(const Code& code, uint32_t lanes);
  absl::StatusOr<uint8_t*> Locate(const Code& code, int lane, size_t access,
                                  AccessMode mode);

  absl::Status Shuffle(const Code& code, uint32_t lanes);
  absl::Status Vote(const Code& code, uint32_t lanes);
  absl::Status Match(const Code& code, uint32_t lanes);
  absl::Status Reduce(const Code& code, uint32_t lanes);

  absl::Status Float(const Code& code, uint32_t lanes);
  absl::Status FloatLane(const Code& code, int lane);
  absl::Status Double(const Code& code, uint32_t lanes);
  absl::Status DoubleLane(const Code& code, int lane);
  absl::Status Half(const Code& code, uint32_t lanes);
  absl::Status HalfLane(const Code& code, int lane);
  absl::Status Convert(const Code& code, uint32_t lanes);
  absl::Status ConvertLane(const Code& code, int lane);
  absl::StatusOr<float> FloatSource(const Code& code, int lane, int operand,
                                    char place) const;
  absl::StatusOr<double> DoubleSource(const Code& code, int lane, int operand,
                                      char place) const;

  template <typename Function>
  static absl::Status ForEach(uint32_t lanes, Function function) {
    for (int lane = 0; lane < 32; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      absl::Status status = function(lane);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  uint32_t Ready() const;
  uint32_t Live() const;
  void ReleaseWaiting();
  void Advance(uint32_t lanes, uint32_t place);

  Block* const block_;
  const uint32_t first_;
  std::array<Lane, 32> lanes_;
  std::array<uint32_t, 64> uniform_{};  // the last one stays 0
  uint8_t uniform_predicates_ = 0x80;
  // Convergence barriers: who is to meet, and where they go on.
  std::array<uint32_t, 32> meeting_{};
  std::array<uint32_t, 32> meeting_place_{};
  uint32_t now_ = 0;     // place of the instruction at hand
  uint32_t active_ = 0;  // lanes at it, also those whose guard says no
  uint64_t instructions_ = 0;
};

// An instruction or modifier that the machine does not know.
absl::Status Unknown(const Code& code);

}  // namespace heddle::sass_machine

#endif  // HEDDLE_TESTS_SASS_MACHINE_WARP_H_
