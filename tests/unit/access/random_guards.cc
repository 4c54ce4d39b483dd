// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/access/random_guards.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::access {
namespace {

// Registers: 0 the thread, 1 the block, 2 to 5 numbers, 8 and 9 predicates
// in registers, 12 and 13 the loops' counters, 20 and 21 the pointer, 22 and 23
// addresses. Predicates: 0 to 3 at random, 4 and 5 of the loops.
constexpr int kThread = 0;
constexpr int kFirstNumber = 2;
constexpr int kNumbers = 4;
constexpr int kFirstStore = 8;
constexpr int kStores = 2;
constexpr int kFirstCounter = 12;
constexpr int kBase = 20;
constexpr int kAddress = 22;
constexpr int kPredicates = 4;
constexpr int kMostDepth = 2;

class Maker {
 public:
  Maker(uint32_t param_base, uint32_t arch, std::mt19937_64& random)
      : param_base_(param_base), arch_(arch), random_(random) {}

  std::vector<Word128> Make() {
    constexpr std::array<int, 7> kSubjects = {
        kThread, kThread, kThread, 2, 3, kFirstCounter, kFirstCounter + 1};
    for (int& subject : subjects_) {
      subject = kSubjects[static_cast<size_t>(Draw(0, kSubjects.size() - 1))];
    }
    for (uint32_t& limit : limits_) limit = Constant();
    Begin();
    Some(0, Draw(4, 20));
    for (int i = 0; i < 4; ++i) Probe();
    for (int i = 0; i < kNumbers; ++i) Access(kFirstNumber + i);
    for (int i = 0; i < kStores; ++i) Access(kFirstStore + i);
    code_.push_back(Exit());
    return std::move(code_);
  }

 private:
  int Draw(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }
  bool OneIn(int of) { return Draw(1, of) == 1; }
  void Emit(Word128 word) { code_.push_back(word); }

  int Number() { return kFirstNumber + Draw(0, kNumbers - 1); }
  int Store() { return kFirstStore + Draw(0, kStores - 1); }
  int AnyPredicate() { return Draw(0, kPredicates - 1); }
  uint32_t Constant() {
    constexpr std::array<uint32_t, 10> kConstants = {
        0, 1, 2, 3, 8, 16, 17, 100, 1000, 0xffffffff};
    return kConstants[static_cast<size_t>(Draw(0, kConstants.size() - 1))];
  }
  // What conditions are about: little, so that they meet each other again.
  int Subject() { return subjects_[static_cast<size_t>(Draw(0, 1))]; }
  uint32_t Limit() {
    return OneIn(6) ? Constant() : limits_[static_cast<size_t>(Draw(0, 1))];
  }
  uint32_t Mask() {
    return static_cast<uint32_t>(OneIn(2) ? 0x7f : Draw(0, 127));
  }
  int Byte() { return OneIn(3) ? Draw(1, 3) : 0; }
  Condition Guard() {
    if (OneIn(3)) return {};
    return {AnyPredicate(), OneIn(2)};
  }

  void Begin() {
    Emit(Special(kThread, 0x21));
    Emit(Special(1, 0x25));
    for (int to = kFirstNumber; to < kFirstCounter + kMostDepth; ++to) {
      if (OneIn(2)) {
        Emit(MoveNumber(to, Constant()));
      } else {
        Emit(MoveConstant(
            to, param_base_ + 4 * static_cast<uint32_t>(Draw(4, 15))));
      }
    }
    if (OneIn(2)) Emit(AddNumber(2, kThread, Constant()));
    if (OneIn(2)) Emit(TimesNumber(3, kThread, 3));
    Emit(MoveConstant(kBase, param_base_));
    Emit(MoveConstant(kBase + 1, param_base_ + 4));
    for (int i = 0; i < kPredicates; ++i) {
      if (OneIn(2)) Compare();
    }
  }

  void Compare(int to) {
    const auto relation = static_cast<Relation>(Draw(1, 6));
    Word128 word;
    if (OneIn(8)) {
      word = CompareRegister(to, Subject(), relation, Subject());
    } else if (OneIn(5)) {
      word = CompareNumber(to, Subject(), relation, Limit(),
                           {AnyPredicate(), OneIn(2)}, Draw(0, 2), !OneIn(3));
    } else {
      word = CompareNumber(to, Subject(), relation, Limit(), {}, 0, !OneIn(8));
    }
    Emit(OneIn(8) ? On(Guard(), word) : word);
  }
  void Compare() { Compare(AnyPredicate()); }

  // A condition, new or as before, and what was written under such as it.
  void Probe() {
    const int predicate = AnyPredicate();
    Compare(predicate);
    guard_ = {predicate, OneIn(2)};
    for (int i = 0; i < 2; ++i) {
      const int number = OneIn(6) ? Store() : Number();
      Emit(On(guard_, WideSum(kAddress, number, kBase, true)));
      Emit(On(guard_, LoadByte(255, kAddress)));
    }
  }

  // Often as it was last time.
  void Access(int number) {
    if (!OneIn(3)) guard_ = Guard();
    Emit(On(OneIn(3) ? Condition() : guard_,
            WideSum(kAddress, number, kBase, !OneIn(4))));
    Emit(On(guard_, LoadByte(OneIn(8) ? number : 255, kAddress)));
  }

  void Change(int to) {
    const auto tables = std::array<uint64_t, 3>{kAnd, kOr, kXor};
    const uint64_t table = tables[static_cast<size_t>(Draw(0, 2))];
    const int from = OneIn(2) ? to : (OneIn(2) ? Number() : Store());
    Word128 word;
    switch (Draw(0, 7)) {
      case 0:
        word = MoveNumber(to, Constant());
        break;
      case 1:
        word = AddNumber(to, from, Constant());
        break;
      case 2:
        word = AddRegister(to, from, OneIn(2) ? Number() : Store());
        break;
      case 3:
        word = TimesNumber(to, from, uint32_t{1} << Draw(0, 8));
        break;
      case 4:
        word =
            LogicNumber(to, from, static_cast<uint32_t>(Draw(0, 255)), table);
        break;
      case 5:
        word = LogicNumber(to, from, static_cast<uint32_t>(random_()), table);
        break;
      case 6:
        word = LogicRegister(to, from, OneIn(2) ? Number() : Store(), table);
        break;
      default:
        word = Select(to, from, OneIn(2) ? Number() : Store(),
                      {AnyPredicate(), OneIn(2)});
        break;
    }
    Emit(On(Guard(), word));
  }

  void Piece(int depth) {
    switch (Draw(0, 15)) {
      case 0:
      case 1:
        return Compare();
      case 2:
        return Emit(
            On({AnyPredicate(), OneIn(2)}, MoveNumber(Number(), Constant())));
      case 3:
        return Change(Number());
      case 4:
        return Emit(On(OneIn(4) ? Guard() : Condition(),
                       PredicatesToRegister(Store(), OneIn(3) ? Store() : 255,
                                            Mask(), Byte())));
      case 5:
        return Emit(On(OneIn(4) ? Guard() : Condition(),
                       RegisterToPredicates(OneIn(6) ? Number() : Store(),
                                            Mask(), Byte())));
      case 6:
        if (!OneIn(3)) return Emit(NoOperation());
        return Change(Store());
      case 7:  // a bit of what was kept
        if (OneIn(2)) {
          Emit(PredicatesToRegister(Store(), 255, 1u << Draw(0, 4), Byte()));
        }
        return Emit(CompareNumber(
            AnyPredicate(), Store(),
            OneIn(2) ? Relation::kEqual : Relation::kNotEqual, 0));
      case 8:
      case 9:
        return Access(OneIn(6) ? Store() : Number());
      case 10:
        return Skip(depth);
      case 11:
      case 12:
        return Probe();
      case 13:
      case 14:  // a condition, and something under it
        Compare();
        return Emit(On({AnyPredicate(), OneIn(2)},
                       OneIn(2) ? MoveNumber(Number(), Constant())
                                : AddNumber(Number(), Number(), Constant())));
      default:
        return Loop(depth);
    }
  }
  void Some(int depth, int pieces) {
    for (int i = 0; i < pieces; ++i) Piece(depth);
  }

  // A branch over a few pieces.
  void Skip(int depth) {
    if (depth > kMostDepth) return;
    const Condition guard = {AnyPredicate(), OneIn(2)};
    const size_t at = code_.size();
    Emit(NoOperation());
    Some(depth + 1, Draw(1, 4));
    code_[at] =
        On(guard, Branch(static_cast<int64_t>(code_.size() - at), arch_));
  }

  void Loop(int depth) {
    if (loops_ >= kMostDepth) return;
    const int counter = kFirstCounter + loops_;
    const int predicate = kPredicates + loops_;
    ++loops_;
    if (!OneIn(4)) Emit(MoveNumber(counter, 0));
    const size_t begin = code_.size();
    Some(depth + 1, Draw(1, 6));
    Emit(AddNumber(counter, counter, static_cast<uint32_t>(Draw(1, 2))));
    Emit(CompareNumber(predicate, counter, Relation::kLess,
                       static_cast<uint32_t>(Draw(1, 5))));
    const auto back =
        static_cast<int64_t>(begin) - static_cast<int64_t>(code_.size());
    Emit(On({predicate, false}, Branch(back, arch_)));
    --loops_;
  }

  const uint32_t param_base_;
  const uint32_t arch_;
  std::mt19937_64& random_;
  std::vector<Word128> code_;
  Condition guard_;
  std::array<int, 2> subjects_{};
  std::array<uint32_t, 2> limits_{};
  int loops_ = 0;
};

}  // namespace

std::vector<Word128> MakeGuardedCode(uint32_t param_base, uint32_t arch,
                                     std::mt19937_64& random) {
  return Maker(param_base, arch, random).Make();
}

}  // namespace heddle::access
