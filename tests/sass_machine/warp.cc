// SPDX-License-Identifier: Apache-2.0
#include "tests/sass_machine/warp.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace heddle::sass_machine {

using cubin::SassOperand;
using cubin::SassOperandKind;

Warp::Warp(Block* block, uint32_t first, uint32_t count)
    : block_(block), first_(first) {
  for (uint32_t lane = 0; lane < count; ++lane) {
    lanes_[lane].state = LaneState::kReady;
    lanes_[lane].place = block->kernel->entry;
    lanes_[lane].local.resize(LocalSize(block->kernel->kernel));
  }
}

bool Warp::done() const { return Live() == 0; }

uint32_t Warp::Ready() const {
  uint32_t mask = 0;
  for (size_t lane = 0; lane < 32; ++lane) {
    if (lanes_[lane].state == LaneState::kReady) mask |= 1u << lane;
  }
  return mask;
}

uint32_t Warp::Live() const {
  uint32_t mask = 0;
  for (size_t lane = 0; lane < 32; ++lane) {
    if (lanes_[lane].state != LaneState::kEnded) mask |= 1u << lane;
  }
  return mask;
}

void Warp::Advance(uint32_t lanes, uint32_t place) {
  for (size_t lane = 0; lane < 32; ++lane) {
    if (lanes >> lane & 1) lanes_[lane].place = place;
  }
}

absl::StatusOr<bool> Warp::Step() {
  ReleaseWaiting();
  const uint32_t ready = Ready();
  if (ready == 0) return false;
  // Now and then the other way round, lest lanes spin on what others bring.
  const bool lowest = (instructions_ >> 12 & 3) != 3;
  bool chosen = false;
  for (size_t lane = 0; lane < 32; ++lane) {
    if ((ready >> lane & 1) == 0) continue;
    const uint32_t place = lanes_[lane].place;
    if (!chosen || (lowest ? place < now_ : place > now_)) now_ = place;
    chosen = true;
  }
  active_ = 0;
  for (size_t lane = 0; lane < 32; ++lane) {
    if ((ready >> lane & 1) != 0 && lanes_[lane].place == now_) {
      active_ |= 1u << lane;
    }
  }
  const std::vector<Code>& all = block_->kernel->code;
  if (now_ % 16 != 0 || now_ / 16 >= all.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("control left the code at 0x", absl::Hex(now_)));
  }
  const Code& code = all[now_ / 16];
  ++instructions_;
  uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((active_ >> lane & 1) != 0 &&
        Predicate(lane, code.decoded.guard_uniform, code.decoded.guard,
                  code.decoded.guard_negated)) {
      lanes |= 1u << lane;
    }
  }
  Advance(active_, now_ + 16);
  if (lanes == 0 && code.handler != nullptr) return true;
  const absl::Status status = code.handler == nullptr
                                  ? Unknown(code)
                                  : (this->*code.handler)(code, lanes);
  if (!status.ok()) {
    return absl::Status(
        status.code(), absl::StrCat("instruction at 0x", absl::Hex(now_), " (",
                                    code.decoded.mnemonic, "), thread ", first_,
                                    "+: ", status.message()));
  }
  return true;
}

uint64_t Warp::Pair(int lane, int index) const {
  if (index == cubin::kSassRegisterZero) return 0;
  return Register(lane, index) |
         static_cast<uint64_t>(Register(lane, index + 1)) << 32;
}

void Warp::SetRegister(int lane, int index, uint32_t value) {
  if (index == cubin::kSassRegisterZero) return;
  lanes_[static_cast<size_t>(lane)].registers[static_cast<size_t>(index)] =
      value;
}

void Warp::SetWords(int lane, bool uniform, int index, int words,
                    uint64_t value) {
  if (!uniform && index == cubin::kSassRegisterZero) return;
  for (int i = index; i < index + words; ++i, value >>= 32) {
    if (!uniform) {
      SetRegister(lane, i, static_cast<uint32_t>(value));
    } else if (i < cubin::kSassUniformRegisterZero) {
      uniform_[static_cast<size_t>(i)] = static_cast<uint32_t>(value);
    }
  }
}

bool Warp::Predicate(int lane, bool uniform, int index, bool negated) const {
  const uint8_t all = uniform ? uniform_predicates_
                              : lanes_[static_cast<size_t>(lane)].predicates;
  return ((all >> index & 1) != 0) != negated;
}

bool Warp::Predicate(int lane, const SassOperand& operand) const {
  return Predicate(lane, operand.kind == SassOperandKind::kUniformPredicate,
                   operand.index, operand.negated);
}

void Warp::SetPredicate(int lane, bool uniform, int index, bool value) {
  if (index == cubin::kSassPredicateTrue) return;
  uint8_t& all = uniform ? uniform_predicates_
                         : lanes_[static_cast<size_t>(lane)].predicates;
  all =
      static_cast<uint8_t>((all & ~(1u << index)) | (value ? 1u : 0u) << index);
}

void Warp::SetPredicate(int lane, const SassOperand& operand, bool value) {
  SetPredicate(lane, operand.kind == SassOperandKind::kUniformPredicate,
               operand.index, value);
}

absl::StatusOr<uint64_t> Warp::Constant(int bank, int64_t offset,
                                        int bytes) const {
  const std::vector<uint8_t>* content = nullptr;
  if (bank == 0) {
    content = block_->bank0;
  } else {
    const auto found = block_->kernel->banks.find(bank);
    if (found != block_->kernel->banks.end()) content = &found->second;
  }
  if (content == nullptr || offset < 0 ||
      static_cast<uint64_t>(offset) + static_cast<uint64_t>(bytes) >
          content->size()) {
    return absl::OutOfRangeError(absl::StrCat(
        "no constant c[", bank, "][", offset, "] of ", bytes, " bytes"));
  }
  uint64_t value = 0;
  std::memcpy(&value, content->data() + offset, static_cast<size_t>(bytes));
  return value;
}

absl::StatusOr<uint64_t> Warp::Operand(int lane, const SassOperand& operand,
                                       int words) const {
  switch (operand.kind) {
    case SassOperandKind::kRegister:
      return words == 2 ? Pair(lane, operand.index)
                        : Register(lane, operand.index);
    case SassOperandKind::kUniformRegister:
      if (operand.index == cubin::kSassUniformRegisterZero) return 0;
      return words == 2
                 ? Uniform(operand.index) |
                       static_cast<uint64_t>(Uniform(operand.index + 1)) << 32
                 : Uniform(operand.index);
    case SassOperandKind::kImmediate:
      return static_cast<uint64_t>(operand.value);
    case SassOperandKind::kConstant:
      if (operand.bindless) break;
      return Constant(operand.bank, operand.value, 4 * words);
    default:
      break;
  }
  return absl::UnimplementedError("an operand of a kind that is not known");
}

std::array<uint32_t, 3> Warp::Thread(int lane) const {
  const uint32_t index = first_ + static_cast<uint32_t>(lane);
  const std::array<uint32_t, 3>& extent = block_->launch->block;
  return {index % extent[0], index / extent[0] % extent[1],
          index / extent[0] / extent[1]};
}

Handler Warp::FindHandler(const Code& code) {
  using cubin::SassOp;
  if (code.operation.op == SassOp::kReadSpecial) return &Warp::Special;
  if (code.operation.op != SassOp::kOpaque) return &Warp::Integer;
  static const std::map<std::string, Handler>* const by_mnemonic = new std::map<
      std::string, Handler>{
      {"NOP", &Warp::Nothing},         {"YIELD", &Warp::Nothing},
      {"NANOSLEEP", &Warp::Nothing},   {"MEMBAR", &Warp::Nothing},
      {"ERRBAR", &Warp::Nothing},      {"CGAERRBAR", &Warp::Nothing},
      {"CCTL", &Warp::Nothing},        {"DEPBAR", &Warp::Nothing},
      {"LDGDEPBAR", &Warp::Nothing},   {"FENCE", &Warp::Nothing},
      {"PREEXIT", &Warp::Nothing},     {"ACQBULK", &Warp::Nothing},
      {"LEPC", &Warp::CodeAddress},    {"BRA", &Warp::Branch},
      {"CALL", &Warp::Branch},         {"BRX", &Warp::IndirectBranch},
      {"BRXU", &Warp::IndirectBranch}, {"RET", &Warp::IndirectBranch},
      {"EXIT", &Warp::Exit},           {"BSSY", &Warp::Meeting},
      {"BSYNC", &Warp::Meet},          {"BREAK", &Warp::Break},
      {"WARPSYNC", &Warp::WarpSync},   {"ENDCOLLECTIVE", &Warp::EndCollective},
      {"BAR", &Warp::BlockBarrier},    {"B2R", &Warp::VoteResult},
      {"LDG", &Warp::Access},          {"LD", &Warp::Access},
      {"LDS", &Warp::Access},          {"LDL", &Warp::Access},
      {"STG", &Warp::Access},          {"ST", &Warp::Access},
      {"STS", &Warp::Access},          {"STL", &Warp::Access},
      {"ATOM", &Warp::Atomic},         {"ATOMG", &Warp::Atomic},
      {"ATOMS", &Warp::Atomic},        {"RED", &Warp::Atomic},
      {"REDG", &Warp::Atomic},         {"LDGSTS", &Warp::CopyToShared},
      {"SHFL", &Warp::Shuffle},        {"VOTE", &Warp::Vote},
      {"VOTEU", &Warp::Vote},          {"MATCH", &Warp::Match},
      {"REDUX", &Warp::Reduce},        {"FADD", &Warp::Float},
      {"FMUL", &Warp::Float},          {"FFMA", &Warp::Float},
      {"FSEL", &Warp::Float},          {"FMNMX", &Warp::Float},
      {"FSET", &Warp::Float},          {"FSETP", &Warp::Float},
      {"MUFU", &Warp::Float},          {"FCHK", &Warp::Float},
      {"DADD", &Warp::Double},         {"DMUL", &Warp::Double},
      {"DFMA", &Warp::Double},         {"DSETP", &Warp::Double},
      {"HADD2", &Warp::Half},          {"HMUL2", &Warp::Half},
      {"HFMA2", &Warp::Half},          {"HSETP2", &Warp::Half},
      {"F2FP", &Warp::Convert},        {"I2F", &Warp::Convert},
      {"I2FP", &Warp::Convert},        {"F2I", &Warp::Convert},
      {"F2F", &Warp::Convert},         {"FRND", &Warp::Convert}};
  const absl::string_view mnemonic = code.decoded.mnemonic;
  const auto found =
      by_mnemonic->find(std::string(mnemonic.data(), mnemonic.size()));
  return found == by_mnemonic->end() ? nullptr : found->second;
}

absl::Status Unknown(const Code& code) {
  return absl::UnimplementedError(absl::StrCat(
      "the machine does not know ", code.decoded.mnemonic,
      " with these modifiers: 0x", absl::Hex(code.high, absl::kZeroPad16), "_",
      absl::Hex(code.low, absl::kZeroPad16)));
}

}  // namespace heddle::sass_machine
