// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/access/random_code.h"

#include <algorithm>
#include <utility>

#include "runtime/cubin/sass.h"
#include "runtime/cubin/sass_semantics.h"
#include "tests/sass_machine/warp.h"

namespace heddle::access {
namespace {

using cubin::SassFlow;
using cubin::SassOp;
using cubin::SassSource;
using sass_machine::Code;

// Registers of a program: 0 to 15 take part; pairs 8, 9 and 10, 11 begin as
// the pointers. Addresses are made in 22, 23 of the pointer in 20, 21.
constexpr int kTaking = 16;
constexpr int kFirstPointer = 8;
constexpr int kBase = 20;
constexpr int kAddress = 22;
constexpr int kParams = 8;  // 64 bits each

int Draw(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}
bool OneIn(std::mt19937_64& random, int of) { return Draw(random, 1, of) == 1; }

uint64_t Get(const Word128& word, int bit, int size) {
  const uint64_t mask = (uint64_t{1} << size) - 1;
  return (bit < 64 ? word.low >> bit : word.high >> (bit - 64)) & mask;
}
void Put(Word128* word, int bit, int size, uint64_t value) {
  const uint64_t mask = ((uint64_t{1} << size) - 1) << (bit % 64);
  uint64_t& half = bit < 64 ? word->low : word->high;
  half = (half & ~mask) | (value << (bit % 64) & mask);
}

uint64_t Field(int value, int bit) {
  return static_cast<uint64_t>(value) << bit;
}

// A predicate, or its opposite, as guards have it.
uint64_t Guard(int predicate, std::mt19937_64& random) {
  return Field(predicate, 0) | Field(OneIn(random, 2) ? 1 : 0, 3);
}

bool Takes(const Code& code) {
  const SassOp op = code.operation.op;
  if (code.handler == nullptr || !code.decoded.known()) return false;
  if (code.decoded.flow != SassFlow::kNext) return false;
  return op != SassOp::kOpaque || code.decoded.mnemonic == "SHFL";
}

uint32_t Number(std::mt19937_64& random) {
  switch (Draw(random, 0, 5)) {
    case 0:
      return static_cast<uint32_t>(Draw(random, 0, 40));
    case 1:
      return static_cast<uint32_t>(-Draw(random, 1, 40));
    case 2:
      return uint32_t{1} << Draw(random, 0, 31);
    case 3:
      return (uint32_t{1} << Draw(random, 0, 31)) - 1;
    case 4:
      return 0x7fffffffu + static_cast<uint32_t>(Draw(random, -1, 2));
    default:
      return static_cast<uint32_t>(random());
  }
}

}  // namespace

Code DecodeCode(const Word128& word, uint64_t offset, uint32_t arch) {
  Code code;
  code.low = word.low;
  code.high = word.high;
  code.decoded = cubin::DecodeSass(word.low, word.high, offset, arch);
  code.operation = cubin::InterpretSass(word.low, word.high, code.decoded);
  code.handler = sass_machine::Warp::FindHandler(code);
  return code;
}

void RandomCode::AddPool(const sass_machine::Program& program) {
  arch_ = program.arch;
  for (const auto& [name, kernel] : program.kernels) {
    std::vector<Word128> run;
    for (const Code& code : kernel.code) {
      if (Takes(code)) {
        run.push_back({code.low, code.high});
      } else if (!run.empty()) {
        pool_.push_back(std::move(run));
        run.clear();
      }
    }
    if (!run.empty()) pool_.push_back(std::move(run));
  }
}

// `pairs`: what pairs of registers become. False: not to be used.
bool RandomCode::Rename(Word128* word, const std::array<int, 16>& pairs,
                        std::mt19937_64& random) const {
  const Code before = DecodeCode(*word, 0, arch_);
  const auto register_in = [&](int bit) {
    const auto index = static_cast<int>(Get(*word, bit, 8));
    for (const cubin::SassOperand& operand : before.decoded.operands()) {
      const bool uniform =
          operand.kind == cubin::SassOperandKind::kUniformRegister;
      if (!uniform && operand.kind != cubin::SassOperandKind::kRegister) {
        continue;
      }
      if (operand.index != index) continue;
      return uniform ? 2 : 1;
    }
    return 0;
  };
  for (const int bit : {16, 24, 32, 64}) {
    const int kind = register_in(bit);
    const auto index = static_cast<int>(Get(*word, bit, 8));
    if (kind == 1 && index != 255) {
      const int pair = pairs[static_cast<size_t>(index / 2 % 16)];
      Put(word, bit, 8, Field(pair, 1) | Field(index % 2, 0));
    } else if (kind == 2 && (index & 63) != 63) {
      Put(word, bit, 6, static_cast<uint64_t>(index % 8));
    }
  }
  for (const SassSource& source : before.operation.source) {
    if (source.kind == SassSource::Kind::kImmediate && OneIn(random, 2) &&
        before.operation.op != SassOp::kLogic3Predicate) {
      Put(word, 32, 32, Number(random));
    }
    if (source.kind == SassSource::Kind::kConstant && OneIn(random, 4)) {
      Put(word, 40, 14, static_cast<uint64_t>(Draw(random, 0x58, 0x58 + 15)));
    }
  }
  if (OneIn(random, 12)) {
    const int bit = Draw(random, 0, 104);
    Put(word, bit, 1, Get(*word, bit, 1) ^ 1);
  }
  if (OneIn(random, 12)) {
    Put(word, 12, 4, Guard(Draw(random, 0, 3), random));
  }
  const Code code = DecodeCode(*word, 0, arch_);
  if (!Takes(code)) return false;
  if (code.operation.op == SassOp::kOpaque &&
      (code.decoded.guard != cubin::kSassPredicateTrue ||
       code.decoded.guard_negated)) {
    return false;
  }
  for (const cubin::SassOperand& operand : code.decoded.operands()) {
    if (operand.kind != cubin::SassOperandKind::kRegister) continue;
    if (operand.index != 255 && operand.index + operand.count > kTaking) {
      return false;
    }
  }
  for (const SassSource& source : code.operation.source) {
    if (source.kind == SassSource::Kind::kConstant && source.bank != 0) {
      return false;
    }
  }
  return code.operation.op != SassOp::kReadConstant ||
         code.operation.constant_bank == 0;
}

void RandomCode::Mutate(std::vector<Word128>* code,
                        std::mt19937_64& random) const {
  const auto takes = [this](const Word128& word) {
    const Code decoded = DecodeCode(word, 0, arch_);
    return Takes(decoded) && decoded.operation.op != SassOp::kOpaque;
  };
  const auto any = [&] { return static_cast<size_t>(random() % code->size()); };
  for (int i = 0; i < 40; ++i) {
    const size_t at = any();
    Word128 word = (*code)[at];
    if (!takes(word)) continue;
    const Code before = DecodeCode(word, 0, arch_);
    switch (Draw(random, 0, 6)) {
      case 0:
        word = (*code)[any()];
        break;
      case 1:
        if (at + 1 == code->size() || !takes((*code)[at + 1])) continue;
        std::swap((*code)[at], (*code)[at + 1]);
        return;
      case 2: {  // a register, from another instruction
        constexpr std::array<int, 4> kFields = {16, 24, 32, 64};
        const int bit = kFields[static_cast<size_t>(Draw(random, 0, 3))];
        const int from = kFields[static_cast<size_t>(Draw(random, 0, 3))];
        Put(&word, bit, 8, Get((*code)[any()], from, 8));
        break;
      }
      case 3:
        if (before.operation.source[1].kind != SassSource::Kind::kImmediate) {
          continue;
        }
        Put(&word, 32, 32, Number(random));
        break;
      case 4:
        Put(&word, 12, 4, Guard(Draw(random, 0, 3), random));
        break;
      default: {
        const int bit = Draw(random, 12, 104);
        Put(&word, bit, 1, Get(word, bit, 1) ^ 1);
        break;
      }
    }
    if (!takes(word)) continue;
    (*code)[at] = word;
    return;
  }
}

std::vector<Word128> RandomCode::Make(uint32_t param_base,
                                      std::mt19937_64& random) const {
  std::vector<Word128> code;
  code.push_back(Special(0, 0x21));
  code.push_back(Special(1, 0x25));
  for (int to = 2; to < kTaking; ++to) {
    const int from = to >= kFirstPointer && to < kFirstPointer + 4
                         ? to - kFirstPointer
                         : Draw(random, 4, 2 * kParams - 1);
    code.push_back(
        MoveConstant(to, param_base + 4 * static_cast<uint32_t>(from)));
  }
  code.push_back(MoveConstant(kBase, param_base));
  code.push_back(MoveConstant(kBase + 1, param_base + 4));
  const size_t body = code.size();
  const int pieces = Draw(random, 2, 9);
  std::vector<size_t> starts;
  bool loops = false;
  for (int piece = 0; piece < pieces; ++piece) {
    starts.push_back(code.size());
    const std::vector<Word128>& run =
        pool_[static_cast<size_t>(random() % pool_.size())];
    const size_t length =
        std::min<size_t>(run.size(), static_cast<size_t>(Draw(random, 1, 9)));
    const size_t from = random() % (run.size() - length + 1);
    std::array<int, 16> pairs{};
    for (int& pair : pairs) pair = Draw(random, 0, kTaking / 2 - 1);
    for (size_t i = 0; i < length; ++i) {
      Word128 word = run[from + i];
      if (Rename(&word, pairs, random)) code.push_back(word);
    }
    // Round to where some piece began, while a counter is below something.
    if (OneIn(random, 3)) {
      const int counter = Draw(random, 0, kTaking - 1);
      const int predicate = Draw(random, 0, 3);
      Word128 add{0x0000000000007810 | Field(counter, 16) | Field(counter, 24),
                  0x000fca0007ffe0ff};
      Put(&add, 32, 32,
          static_cast<uint64_t>(OneIn(random, 3) ? -Draw(random, 1, 5)
                                                 : Draw(random, 1, 5)));
      Word128 compare{0x000000000000780c | Field(counter, 24),
                      0x000fda0003f06070};
      Put(&compare, 32, 32, static_cast<uint64_t>(Draw(random, -10, 60)));
      Put(&compare, 81, 3, static_cast<uint64_t>(predicate));
      Put(&compare, 76, 3, static_cast<uint64_t>(Draw(random, 1, 6)));
      Put(&compare, 73, 1, static_cast<uint64_t>(Draw(random, 0, 1)));
      code.push_back(add);
      code.push_back(compare);
      const size_t to = starts[random() % starts.size()];
      Word128 word = Branch(
          static_cast<int64_t>(to) - static_cast<int64_t>(code.size()), arch_);
      Put(&word, 12, 4, Guard(predicate, random));
      code.push_back(word);
      loops = true;
    }
    if (OneIn(random, 3)) {
      const int number = Draw(random, 0, kTaking - 1);
      code.push_back(WideSum(kAddress, number, kBase, OneIn(random, 2)));
      code.push_back(LoadByte(OneIn(random, 2) ? number : 255, kAddress));
    }
  }
  // Branches between the pieces that are there.
  const int branches = Draw(random, 0, 3);
  const size_t end = code.size();
  // Values of lanes that are elsewhere are nobody's.
  for (Word128& word : code) {
    if ((branches > 0 || loops) &&
        DecodeCode(word, 0, arch_).decoded.mnemonic == "SHFL") {
      word = NoOperation();
    }
  }
  for (int i = 0; i < branches && end > body; ++i) {
    const size_t at = body + random() % (end - body);
    const size_t to = body + random() % (end - body + 1);
    Word128 word =
        Branch(static_cast<int64_t>(to) - static_cast<int64_t>(at), arch_);
    Put(&word, 12, 4, Guard(Draw(random, 0, 3), random));
    code[at] = word;
  }
  for (int to = 0; to < kTaking; ++to) {
    code.push_back(WideSum(kAddress, to, kBase, OneIn(random, 2)));
    code.push_back(LoadByte(255, kAddress));
  }
  for (int i = 0; i < 3; ++i) {
    code.push_back(LoadByte(255, 2 * Draw(random, 0, kTaking / 2 - 1)));
  }
  code.push_back(Exit());
  return code;
}

}  // namespace heddle::access
