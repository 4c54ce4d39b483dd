// SPDX-License-Identifier: Apache-2.0
// Branches, calls, and the places where threads wait for one another.

#include <algorithm>

#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {

using cubin::SassOperand;
using cubin::SassOperandKind;

namespace {

// The first operand of every control instruction: a second guard.
const SassOperand& Second(const Code& code) { return code.decoded.operand[0]; }

}  // namespace

absl::Status Warp::Nothing(const Code& /*code*/, uint32_t /*lanes*/) {
  return absl::OkStatus();
}

absl::Status Warp::CodeAddress(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) {
    SetWords(lane, false, code.decoded.operand[0].index, 2,
             static_cast<uint64_t>(code.decoded.target));
    return absl::OkStatus();
  });
}

// BRA, CALL.REL. Return addresses are made by instructions before a call.
absl::Status Warp::Branch(const Code& code, uint32_t lanes) {
  if (code.decoded.flow != cubin::SassFlow::kBranch &&
      code.decoded.flow != cubin::SassFlow::kCall) {
    return Unknown(code);
  }
  // BRA.CONV (bit 32) is taken if all lanes of a mask are here, BRA.DIV if not;
  // bit 30 inverts the mask.
  if (code.decoded.flow == cubin::SassFlow::kBranch && code.Bit(33)) {
    uint32_t mask = Uniform(code.decoded.operand[1].index);
    if (code.Bit(30)) mask = ~mask;
    const bool together = (mask & Live() & ~active_) == 0;
    if (together != code.Bit(32)) return absl::OkStatus();
  }
  return ForEach(lanes, [&](int lane) {
    // Beside the second guard there may be a uniform predicate; all must hold.
    bool taken = true;
    for (const SassOperand& operand : code.decoded.operands()) {
      if (operand.kind == SassOperandKind::kPredicate ||
          operand.kind == SassOperandKind::kUniformPredicate) {
        taken &= Predicate(lane, operand);
      }
    }
    if (taken) {
      lanes_[static_cast<size_t>(lane)].place =
          static_cast<uint32_t>(code.decoded.target);
    }
    return absl::OkStatus();
  });
}

// BRX to register + immediate + the next instruction's place; RET.REL to
// register + the place named.
absl::Status Warp::IndirectBranch(const Code& code, uint32_t lanes) {
  const bool returns = code.decoded.flow == cubin::SassFlow::kReturn;
  if (returns && !code.decoded.has_target) return Unknown(code);
  return ForEach(lanes, [&](int lane) -> absl::Status {
    if (!Predicate(lane, Second(code))) return absl::OkStatus();
    const absl::StatusOr<uint64_t> base =
        Operand(lane, code.decoded.operand[1], 2);
    if (!base.ok()) return base.status();
    const uint64_t offset =
        returns
            ? static_cast<uint64_t>(code.decoded.target)
            : static_cast<uint64_t>(code.decoded.operand[2].value) + now_ + 16;
    lanes_[static_cast<size_t>(lane)].place =
        static_cast<uint32_t>(*base + offset);
    return absl::OkStatus();
  });
}

absl::Status Warp::Exit(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) {
    if (Predicate(lane, Second(code))) {
      lanes_[static_cast<size_t>(lane)].state = LaneState::kEnded;
      --block_->live_threads;
    }
    return absl::OkStatus();
  });
}

absl::Status Warp::Meeting(const Code& code, uint32_t lanes) {
  const size_t number = code.decoded.operand[1].index;
  if (number >= meeting_.size()) return Unknown(code);
  uint32_t mask = 0;
  absl::Status status = ForEach(lanes, [&](int lane) {
    if (Predicate(lane, Second(code))) mask |= 1u << lane;
    return absl::OkStatus();
  });
  meeting_[number] = mask;
  meeting_place_[number] = static_cast<uint32_t>(code.decoded.target);
  return status;
}

absl::Status Warp::Meet(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) {
    if (Predicate(lane, Second(code))) {
      Lane& at = lanes_[static_cast<size_t>(lane)];
      at.state = LaneState::kAtConvergence;
      at.waits_for = code.decoded.operand[1].index;
    }
    return absl::OkStatus();
  });
}

absl::Status Warp::Break(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) {
    if (Predicate(lane, Second(code))) {
      meeting_[code.decoded.operand[1].index] &= ~(1u << lane);
    }
    return absl::OkStatus();
  });
}

// WARPSYNC of a mask; with a target (.COLLECTIVE) all of the mask run up to
// ENDCOLLECTIVE together and go on there.
absl::Status Warp::WarpSync(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  return ForEach(lanes, [&](int lane) -> absl::Status {
    if (!Predicate(lane, Second(code))) return absl::OkStatus();
    Lane& at = lanes_[static_cast<size_t>(lane)];
    at.waits_mask = ~0u;
    if (operands.size() >= 2 && operands[1].kind != SassOperandKind::kTarget) {
      const absl::StatusOr<uint64_t> mask = Operand(lane, operands[1], 1);
      if (!mask.ok()) return mask.status();
      at.waits_mask = static_cast<uint32_t>(*mask);
    }
    at.state = LaneState::kAtWarpSync;
    if (code.decoded.has_target) {
      at.collective_end = static_cast<uint32_t>(code.decoded.target);
    }
    return absl::OkStatus();
  });
}

absl::Status Warp::EndCollective(const Code& code, uint32_t lanes) {
  return ForEach(lanes, [&](int lane) {
    if (Predicate(lane, Second(code))) {
      Lane& at = lanes_[static_cast<size_t>(lane)];
      at.place = at.collective_end;
    }
    return absl::OkStatus();
  });
}

// BAR.SYNC and BAR.RED of all threads, by an immediate number. Kinds of votes
// (bits 74 and 75): how many, all, any.
absl::Status Warp::BlockBarrier(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  const bool votes = code.Bit(78);
  if (code.decoded.opcode != 0xb1d || code.Bit(77) || code.Bit(79) ||
      operands[0].value >= 16 || operands[1].value != 0 ||
      (votes && code.Bits(74, 2) == 3)) {
    return Unknown(code);
  }
  return ForEach(lanes, [&](int lane) {
    Lane& at = lanes_[static_cast<size_t>(lane)];
    at.state = LaneState::kAtBarrier;
    at.waits_for = static_cast<uint32_t>(operands[0].value);
    if (votes) {
      at.vote = Predicate(lane, operands[2]);
      at.vote_kind = code.Bits(74, 2);
    }
    return absl::OkStatus();
  });
}

// B2R.RESULT: Rd gets a count, Pu what all or any said.
absl::Status Warp::VoteResult(const Code& code, uint32_t lanes) {
  const auto operands = code.decoded.operands();
  return ForEach(lanes, [&](int lane) {
    const Lane& at = lanes_[static_cast<size_t>(lane)];
    const bool counts = at.vote_kind == 0;
    if (counts ? operands[1].index != cubin::kSassPredicateTrue
               : operands[0].index != cubin::kSassRegisterZero) {
      return Unknown(code);
    }
    SetRegister(lane, operands[0].index, at.vote_result);
    SetPredicate(lane, operands[1], at.vote_result != 0);
    return absl::OkStatus();
  });
}

// Lanes that wait for lanes of the same warp.
void Warp::ReleaseWaiting() {
  const uint32_t live = Live();
  for (size_t lane = 0; lane < 32; ++lane) {
    const Lane& at = lanes_[lane];
    if (at.state != LaneState::kAtConvergence &&
        at.state != LaneState::kAtWarpSync) {
      continue;
    }
    const bool converges = at.state == LaneState::kAtConvergence;
    const uint32_t wanted =
        live & (converges ? meeting_[at.waits_for] : at.waits_mask);
    uint32_t here = 0;
    for (size_t other = 0; other < 32; ++other) {
      const Lane& there = lanes_[other];
      if (there.state == at.state &&
          (!converges || there.waits_for == at.waits_for)) {
        here |= 1u << other;
      }
    }
    if ((wanted & ~here) != 0) continue;
    for (size_t other = 0; other < 32; ++other) {
      if (((wanted | 1u << lane) >> other & 1) == 0) continue;
      lanes_[other].state = LaneState::kReady;
      if (converges) lanes_[other].place = meeting_place_[at.waits_for];
    }
  }
}

bool Block::ReleaseBarriers(const std::vector<std::unique_ptr<Warp>>& warps) {
  bool released = false;
  for (uint32_t number = 0; number < 16; ++number) {
    std::vector<Lane*> waiting;
    for (const std::unique_ptr<Warp>& warp : warps) {
      for (Lane& lane : warp->lanes()) {
        if (lane.state == LaneState::kAtBarrier && lane.waits_for == number) {
          waiting.push_back(&lane);
        }
      }
    }
    if (waiting.empty() || waiting.size() != live_threads) continue;
    uint32_t yes = 0;
    for (const Lane* lane : waiting) yes += lane->vote ? 1 : 0;
    for (Lane* lane : waiting) {
      lane->state = LaneState::kReady;
      lane->vote = false;
      lane->vote_result = lane->vote_kind == 0   ? yes
                          : lane->vote_kind == 1 ? yes == waiting.size()
                                                 : yes != 0;
    }
    released = true;
  }
  return released;
}

}  // namespace heddle::sass_machine
