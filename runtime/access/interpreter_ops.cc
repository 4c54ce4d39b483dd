// SPDX-License-Identifier: Apache-2.0
// Which operation is computed where, and those that move, read and extend; see
// Interpreter.

#include "runtime/access/interpreter_ops.h"

#include <algorithm>
#include <utility>

#include "runtime/access/interpreter.h"

namespace heddle::access {

using cubin::SassCombine;
using cubin::SassOp;
using cubin::SassOperation;
using cubin::SassSpecial;

bool ConstantOf(const Universe& universe, FormId form, int64_t* value) {
  const Form& f = universe.form(form);
  if (!f.is_constant()) return false;
  *value = f.constant;
  return true;
}

Truth Known(bool value) {
  Truth truth;
  truth.known = value ? 1 : 0;
  return truth;
}

Truth And(const Truth& a, const Truth& b) {
  if (a.known == 0 || b.known == 0) return Known(false);
  if (a.known == 1) return b;
  if (b.known == 1) return a;
  Truth both;
  both.when_true = a.when_true;
  both.when_true.insert(both.when_true.end(), b.when_true.begin(),
                        b.when_true.end());
  return both;
}

Truth Not(Truth a) {
  if (a.known >= 0) a.known = static_cast<int8_t>(1 - a.known);
  std::swap(a.when_true, a.when_false);
  a.low = nullptr;
  return a;
}

Truth Or(const Truth& a, const Truth& b) { return Not(And(Not(a), Not(b))); }

Truth Combine(SassCombine combine, const Truth& a, const Truth& b) {
  switch (combine) {
    case SassCombine::kAnd:
      return And(a, b);
    case SassCombine::kOr:
      return Or(a, b);
    case SassCombine::kXor:
      if (b.known == 0) return a;
      if (b.known == 1) return Not(a);
      if (a.known == 0) return b;
      if (a.known == 1) return Not(b);
      return Truth();
  }
  return Truth();
}

Interpreter::Results Interpreter::Compute(const SassOperation& op,
                                          Where* where) {
  switch (op.op) {
    case SassOp::kMove: {
      Results results;
      results.values = op.destination_words;
      for (int word = 0; word < std::min<int>(2, results.values); ++word) {
        Value value = op.source[0].negate || op.source[0].invert
                          ? Read(op.source[0], word, where)
                          : Raw(op.source[0], word, where);
        // From one of the threads into the register of all.
        if (op.uniform && op.source[0].kind == Source::Kind::kRegister &&
            value.kind != Value::Kind::kTop &&
            universe_.VariesInWarp(universe_.form(value.form))) {
          value = Unknown(
              domain_.RangeOf(Integer(value, true, where), *where->state),
              domain_.OriginsOf(value), false, where);
        }
        results.value[word] = value;
      }
      return results;
    }
    case SassOp::kAdd:
      return op.extended ? ComputeExtendedAdd(op, where)
                         : ComputeAdd(op, where);
    case SassOp::kMultiplyAdd:
    case SassOp::kMultiplyWide:
    case SassOp::kMultiplyHigh:
      return ComputeMultiply(op, where);
    case SassOp::kShiftAdd:
    case SassOp::kShiftAddHigh:
      return ComputeShiftAdd(op, where);
    case SassOp::kLogic3:
      return ComputeLogic(op, where);
    case SassOp::kFunnelShift:
      return ComputeShift(op, where);
    case SassOp::kCompare:
      return ComputeCompare(op, where);
    case SassOp::kLogic3Predicate:
      return ComputeLogicPredicate(op, where);
    case SassOp::kPredicatesToRegister:
    case SassOp::kRegisterToPredicates:
      return ComputePredicateSet(op, where);
    case SassOp::kSelect:
    case SassOp::kMinMax:
      return ComputeSelect(op, where);
    case SassOp::kReadSpecial:
      return ComputeSpecial(op, where);
    case SassOp::kReadConstant:
      return ComputeConstant(op, where);
    default:
      return ComputeSmall(op, where);
  }
}

Interpreter::Results Interpreter::ComputeSmall(const SassOperation& op,
                                               Where* where) {
  Results results;
  results.values = 1;
  const auto value = [&](int i) { return Read(op.source[i], 0, where); };
  const Origins origins = OriginsOf(op, where);
  const auto bounded = [&](Wide lo, Wide hi) {
    results.value[0] = Unknown(Range{lo, hi}, origins, true, where);
    return results;
  };
  int64_t number;
  switch (op.op) {
    case SassOp::kAbsolute: {
      const FormId form = Integer(value(0), true, where);
      const Range range = domain_.RangeOf(form, *where->state);
      if (range.lo >= 0) {
        results.value[0] = domain_.Word(form);
        return results;
      }
      if (range.hi <= 0) {
        results.value[0] =
            domain_.Word(universe_.Intern(Times(universe_.form(form), -1)));
        return results;
      }
      return bounded(0, std::max(range.hi, -range.lo));
    }
    case SassOp::kSignExtend: {
      const Value width = value(1);
      if (width.kind != Value::Kind::kWord ||
          !ConstantOf(universe_, width.form, &number) || number <= 0 ||
          number > 32) {
        break;
      }
      const auto bits = static_cast<int>(number);
      if (bits == 32) {
        results.value[0] = value(0);
        return results;
      }
      FormId form = Low(value(0), where);
      if (!op.is_signed) {
        results.value[0] = domain_.Word(LowBits(form, bits, where));
        return results;
      }
      // Moved so that the sign bit becomes a carry, and back.
      const int64_t half = int64_t{1} << (bits - 1);
      Form shifted = universe_.form(form);
      shifted.constant += half;
      Form low =
          universe_.form(LowBits(universe_.Intern(shifted), bits, where));
      low.constant -= half;
      results.value[0] = domain_.Word(universe_.Intern(std::move(low)));
      return results;
    }
    case SassOp::kPermute: {
      const Value selector = value(1);
      if (op.permute_mode != 0 || selector.kind != Value::Kind::kWord ||
          !ConstantOf(universe_, selector.form, &number)) {
        break;
      }
      const auto picks = static_cast<uint32_t>(number) & 0xffff;
      if ((picks & 0x8888) != 0) break;
      const Value a = Raw(op.source[0], 0, where);
      const Value c = Raw(op.source[2], 0, where);
      if (picks == 0x3210) {
        results.value[0] = a;
        return results;
      }
      if (picks == 0x7654) {
        results.value[0] = c;
        return results;
      }
      Form sum;
      for (int i = 0; i < 4;) {
        const int from = static_cast<int>(picks >> (4 * i) & 7);
        int run = 1;
        while (i + run < 4 && (from & 3) + run < 4 &&
               static_cast<int>(picks >> (4 * (i + run)) & 7) == from + run) {
          ++run;
        }
        FormId form = Low(from < 4 ? a : c, where);
        const int skipped = 8 * (from & 3);
        if (!universe_.form(form).is_constant() ||
            universe_.form(form).constant != 0) {
          if (skipped > 0) {
            form = FloorShift(IntegerOf(form, false, where), skipped, where);
          }
          sum = Add(sum, universe_.form(LowBits(form, 8 * run, where)),
                    int64_t{1} << (8 * i));
        }
        i += run;
      }
      results.value[0] = domain_.Word(sum);
      return results;
    }
    case SassOp::kPopulation:
      return bounded(0, 32);
    case SassOp::kFindLeadingOne:
      return bounded(-1, 31);
    default:
      break;
  }
  results.value[0] = Unknown(origins, where);
  return results;
}

Interpreter::Results Interpreter::ComputeSpecial(const SassOperation& op,
                                                 Where* where) {
  Results results;
  results.values = 1;
  const auto of = [&](SymbolId symbol) {
    // A block of one thread, or a grid of one block, has no index to speak of.
    const Symbol& known = universe_.symbol(symbol);
    return domain_.Word(
        known.range.single()
            ? universe_.Constant(static_cast<int64_t>(known.range.lo))
            : universe_.Of(symbol));
  };
  switch (op.special) {
    case SassSpecial::kTidX:
    case SassSpecial::kTidY:
    case SassSpecial::kTidZ:
      results.value[0] = of(thread_[static_cast<int>(op.special) -
                                    static_cast<int>(SassSpecial::kTidX)]);
      break;
    case SassSpecial::kCtaidX:
    case SassSpecial::kCtaidY:
    case SassSpecial::kCtaidZ:
      results.value[0] = of(block_[static_cast<int>(op.special) -
                                   static_cast<int>(SassSpecial::kCtaidX)]);
      break;
    case SassSpecial::kLane:
      if (warp_is_row_) {
        results.value[0] = domain_.Word(LowBits(of(thread_[0]).form, 5, where));
      } else {
        results.value[0] = Unknown(Range{0, 31}, 0, true, where);
      }
      break;
    case SassSpecial::kPackedTid: {
      Form packed = universe_.form(of(thread_[0]).form);
      packed = Add(packed, universe_.form(of(thread_[1]).form), 1 << 16);
      packed = Add(packed, universe_.form(of(thread_[2]).form), 1 << 26);
      results.value[0] = domain_.Word(packed);
      break;
    }
    case SassSpecial::kZero:
      results.value[0] = results.value[1] = domain_.ConstantWord(0);
      results.values = op.destination_words;
      break;
    case SassSpecial::kOther:
      results.values = std::min<int>(2, op.destination_words);
      for (int word = 0; word < results.values; ++word) {
        results.value[word] = Unknown(kFromDriver, where);
      }
      break;
  }
  return results;
}

Interpreter::Results Interpreter::ComputeConstant(const SassOperation& op,
                                                  Where* where) {
  Results results;
  const Value index = Read(op.source[0], 0, where);
  int64_t number = 0;
  if (index.kind == Value::Kind::kWord &&
      ConstantOf(universe_, index.form, &number)) {
    const int64_t offset = number + op.constant_offset;
    if (op.constant_bytes >= 4) {
      results.values = std::min<int>(2, op.constant_bytes / 4);
      for (int word = 0; word < results.values; ++word) {
        results.value[word] =
            ReadConstant(op.constant_bank, offset + 4 * word, where);
      }
      return results;
    }
    const Value word =
        ReadConstant(op.constant_bank, offset & ~int64_t{3}, where);
    results.values = 1;
    if (word.kind == Value::Kind::kWord &&
        ConstantOf(universe_, word.form, &number)) {
      const int bits = 8 * op.constant_bytes;
      uint32_t value =
          static_cast<uint32_t>(number) >> (8 * static_cast<int>(offset & 3));
      value &= (uint32_t{1} << bits) - 1;
      if (op.is_signed && (value >> (bits - 1)) != 0) {
        value |= ~uint32_t{0} << bits;
      }
      results.value[0] = domain_.ConstantWord(value);
      return results;
    }
    results.value[0] =
        Unknown(Range{-32768, 65535}, domain_.OriginsOf(word), true, where);
    return results;
  }
  // Any word that the index can reach.
  Origins origins = kFromMemory | domain_.OriginsOf(index);
  if (op.constant_bank == 4) origins |= kFromVariable;
  if (op.constant_bank == 0) origins = kFromDriver;
  if (op.constant_bank == 0) {
    for (size_t i = 0; i < launch_.pointers.size(); ++i) {
      origins |= uint64_t{1} << i;
    }
  }
  results.values = std::min<int>(2, std::max<int>(1, op.constant_bytes / 4));
  for (int word = 0; word < results.values; ++word) {
    results.value[word] = Unknown(origins, where);
  }
  return results;
}

}  // namespace heddle::access
