// SPDX-License-Identifier: Apache-2.0
// Loads and stores of all spaces, copies to shared memory.

#include "absl/strings/str_cat.h"
#include "tests/sass_machine/warp.h"

namespace heddle::sass_machine {

using cubin::SassMemory;
using cubin::SassOperand;
using cubin::SassOperandKind;
using cubin::SassSpace;

// The bytes that access number `access` of the instruction means for this
// lane; logs it if they are in global memory.
absl::StatusOr<uint8_t*> Warp::Locate(const Code& code, int lane, size_t access,
                                      AccessMode mode) {
  const SassMemory& memory = code.decoded.memory[access];
  uint64_t address = 0;
  if (memory.base_operand != cubin::kSassNoOperand) {
    const SassOperand& base = code.decoded.operand[memory.base_operand];
    const bool wide = memory.space == SassSpace::kGlobal ||
                      memory.space == SassSpace::kGeneric;
    const bool zero = base.index == cubin::kSassRegisterZero;
    if (base.kind != SassOperandKind::kRegister ||
        (wide && !memory.wide && !zero)) {
      return Unknown(code);
    }
    address = memory.wide ? Pair(lane, base.index)
                          : uint64_t{Register(lane, base.index)};
  }
  address *= memory.base_scale;
  if (memory.uniform_operand != cubin::kSassNoOperand) {
    const SassOperand& uniform = code.decoded.operand[memory.uniform_operand];
    const absl::StatusOr<uint64_t> value =
        Operand(lane, uniform, uniform.count == 2 ? 2 : 1);
    if (!value.ok()) return value.status();
    address += *value;
  }
  address += static_cast<uint64_t>(memory.offset);
  const uint64_t size = memory.bytes;
  const auto outside = [&](const char* where) {
    const std::array<uint32_t, 3> thread = Thread(lane);
    return absl::OutOfRangeError(
        absl::StrCat(where, " address 0x", absl::Hex(address), " of ", size,
                     " bytes is outside, thread ", thread[0], ",", thread[1],
                     ",", thread[2]));
  };
  SassSpace space = memory.space;
  if (space == SassSpace::kGeneric) {
    space = SassSpace::kGlobal;
    if (address >> 32 == kSharedWindow) space = SassSpace::kShared;
    if (address >> 32 == kLocalWindow) space = SassSpace::kLocal;
  }
  if (size == 0) return Unknown(code);
  if (space == SassSpace::kGlobal) {
    uint8_t* const found = block_->memory->At(address, size);
    if (found == nullptr) return outside("global");
    if (address % size != 0) {
      return absl::OutOfRangeError(absl::StrCat("global address 0x",
                                                absl::Hex(address), " of ",
                                                size, " bytes is not aligned"));
    }
    if (block_->log != nullptr) {
      block_->log->push_back({now_, block_->index, Thread(lane), address,
                              static_cast<uint32_t>(size), mode});
    }
    return found;
  }
  if (space != SassSpace::kShared && space != SassSpace::kLocal) {
    return Unknown(code);
  }
  std::vector<uint8_t>& bytes = space == SassSpace::kShared
                                    ? block_->shared
                                    : lanes_[static_cast<size_t>(lane)].local;
  address &= 0xffffffff;
  if (address > bytes.size() || size > bytes.size() - address) {
    return outside(space == SassSpace::kShared ? "shared" : "local");
  }
  return bytes.data() + address;
}

absl::Status Warp::Access(const Code& code, uint32_t lanes) {
  const SassMemory& memory = code.decoded.memory[0];
  if (code.decoded.memory_count != 1 ||
      memory.data_operand == cubin::kSassNoOperand) {
    return Unknown(code);
  }
  // Predicates: whether the address was good, and a second guard.
  for (const SassOperand& operand : code.decoded.operands()) {
    if (operand.kind == SassOperandKind::kPredicate &&
        (operand.index != cubin::kSassPredicateTrue || operand.negated)) {
      return Unknown(code);
    }
  }
  const SassOperand& data = code.decoded.operand[memory.data_operand];
  const bool load = memory.kind == cubin::SassMemoryKind::kLoad;
  const size_t size = memory.bytes;
  const uint64_t type = code.Bits(73, 3);
  const bool sign = type == 1 || type == 3;
  return ForEach(lanes, [&](int lane) -> absl::Status {
    const absl::StatusOr<uint8_t*> at =
        Locate(code, lane, 0, load ? AccessMode::kRead : AccessMode::kWrite);
    if (!at.ok()) return at.status();
    std::array<uint32_t, 4> words{};
    if (load) {
      std::memcpy(words.data(), *at, size);
      if (sign) {
        const int unused = 32 - 8 * static_cast<int>(size);
        words[0] = static_cast<uint32_t>(
            static_cast<int32_t>(words[0] << unused) >> unused);
      }
      for (size_t i = 0; i < (size + 3) / 4; ++i) {
        SetWords(lane, false,
                 data.index == cubin::kSassRegisterZero
                     ? data.index
                     : data.index + static_cast<int>(i),
                 1, words[i]);
      }
      return absl::OkStatus();
    }
    for (size_t i = 0; i < (size + 3) / 4; ++i) {
      words[i] = data.index == cubin::kSassRegisterZero
                     ? 0
                     : Register(lane, data.index + static_cast<int>(i));
    }
    std::memcpy(*at, words.data(), size);
    return absl::OkStatus();
  });
}

// LDGSTS: done at once, so that nothing is left to wait for.
absl::Status Warp::CopyToShared(const Code& code, uint32_t lanes) {
  if (code.decoded.memory_count != 2 || code.Bit(82)) return Unknown(code);
  for (const SassOperand& operand : code.decoded.operands()) {
    if (operand.kind == SassOperandKind::kPredicate &&
        (operand.index != cubin::kSassPredicateTrue || operand.negated)) {
      return Unknown(code);
    }
  }
  return ForEach(lanes, [&](int lane) -> absl::Status {
    const absl::StatusOr<uint8_t*> to =
        Locate(code, lane, 0, AccessMode::kWrite);
    if (!to.ok()) return to.status();
    const absl::StatusOr<uint8_t*> from =
        Locate(code, lane, 1, AccessMode::kRead);
    if (!from.ok()) return from.status();
    std::memcpy(*to, *from, code.decoded.memory[0].bytes);
    return absl::OkStatus();
  });
}

}  // namespace heddle::sass_machine
