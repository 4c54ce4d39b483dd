// SPDX-License-Identifier: Apache-2.0
// Integer instructions, constants and special registers.

#include "tests/sass_machine/integer.h"
#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {

using cubin::SassOp;
using cubin::SassOperation;
using cubin::SassSource;

absl::StatusOr<uint64_t> Warp::Source(int lane, const SassSource& source,
                                      bool /*extended*/) const {
  switch (source.kind) {
    case SassSource::Kind::kZero:
      return 0;
    case SassSource::Kind::kRegister:
      return source.words == 2 ? Pair(lane, source.index)
                               : Register(lane, source.index);
    case SassSource::Kind::kUniform: {
      const uint64_t low = Uniform(source.index);
      return source.words == 2
                 ? low | static_cast<uint64_t>(Uniform(source.index + 1)) << 32
                 : low;
    }
    case SassSource::Kind::kImmediate:
      return static_cast<uint64_t>(source.value);
    case SassSource::Kind::kConstant:
      return Constant(source.bank, source.value, 4 * source.words);
  }
  return 0;
}

absl::Status Warp::Integer(const Code& code, uint32_t lanes) {
  // The uniform datapath acts once for a warp.
  if (code.decoded.guard_uniform || code.operation.uniform) {
    lanes &= 0 - lanes;
  }
  return ForEach(lanes, [&](int lane) { return IntegerLane(code, lane); });
}

absl::Status Warp::IntegerLane(const Code& code, int lane) {
  const SassOperation& o = code.operation;
  std::array<uint64_t, 3> source{};
  std::array<bool, 3> predicate{};
  for (size_t i = 0; i < 3; ++i) {
    const absl::StatusOr<uint64_t> value =
        Source(lane, o.source[i], o.extended);
    if (!value.ok()) return value.status();
    source[i] = *value;
    predicate[i] = Predicate(lane, o.source_predicate[i]);
  }
  uint8_t& all = o.uniform ? uniform_predicates_
                           : lanes_[static_cast<size_t>(lane)].predicates;
  if (o.op == SassOp::kPredicatesToRegister) {
    const uint64_t mask = source[1] << o.shift;
    SetWords(lane, o.uniform, o.destination, 1,
             (source[0] & ~mask) | (uint64_t{all} << o.shift & mask));
    return absl::OkStatus();
  }
  if (o.op == SassOp::kRegisterToPredicates) {
    const uint64_t mask = source[1] & 0x7f;
    all = static_cast<uint8_t>((all & ~mask) | (source[0] >> o.shift & mask));
    return absl::OkStatus();
  }
  if (o.op == SassOp::kReadConstant) {
    const auto base = static_cast<int32_t>(source[0]);
    for (int at = 0; at < o.constant_bytes; at += 8) {
      const int bytes = o.constant_bytes - at < 8 ? o.constant_bytes - at : 8;
      absl::StatusOr<uint64_t> value = Constant(
          o.constant_bank, int64_t{base} + o.constant_offset + at, bytes);
      if (!value.ok()) return value.status();
      if (o.is_signed && bytes < 4) {
        const int unused = 64 - 8 * bytes;
        *value = static_cast<uint64_t>(static_cast<int64_t>(*value << unused) >>
                                       unused);
      }
      SetWords(lane, o.uniform, o.destination + at / 4, bytes <= 4 ? 1 : 2,
               *value);
    }
    return absl::OkStatus();
  }
  const IntegerResult result = Evaluate(o, source, predicate);
  if (!result.known) return Unknown(code);
  SetWords(lane, o.uniform, o.destination, o.destination_words, result.value);
  SetPredicate(lane, o.destination_predicate[0].uniform,
               o.destination_predicate[0].index, result.first);
  SetPredicate(lane, o.destination_predicate[1].uniform,
               o.destination_predicate[1].index, result.second);
  return absl::OkStatus();
}

// By the numbers that nvdisasm names.
absl::Status Warp::Special(const Code& code, uint32_t lanes) {
  const int64_t number = code.decoded.operand[1].value;
  if (code.operation.uniform) lanes &= 0 - lanes;
  return ForEach(lanes, [&](int lane) -> absl::Status {
    const std::array<uint32_t, 3> thread = Thread(lane);
    const uint32_t bit = 1u << lane;
    uint64_t value = 0;
    switch (number) {
      case 0:
        value = static_cast<uint64_t>(lane);
        break;
      case 32:
        value = thread[0] | thread[1] << 16 | thread[2] << 26;
        break;
      case 33:
      case 34:
      case 35:
        value = thread[static_cast<size_t>(number - 33)];
        break;
      case 37:
      case 38:
      case 39:
        value = block_->index[static_cast<size_t>(number - 37)];
        break;
      case 46:
        value = kLocalWindow;
        break;
      case 47:
        value = kSharedWindow;
        break;
      case 56:
        value = bit;
        break;
      case 57:
        value = bit - 1;
        break;
      case 58:
        value = bit | (bit - 1);
        break;
      case 59:
        value = ~(bit | (bit - 1));
        break;
      case 60:
        value = ~(bit - 1);
        break;
      case 80:  // a clock
        value = instructions_;
        break;
      case 136:  // the block's number in its cluster
        break;
      default:
        return Unknown(code);
    }
    SetWords(lane, code.operation.uniform, code.operation.destination,
             code.operation.destination_words, value);
    return absl::OkStatus();
  });
}

}  // namespace heddle::sass_machine
