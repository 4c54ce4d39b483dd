// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_STATE_H_
#define HEDDLE_RUNTIME_ACCESS_STATE_H_

// What the static analysis knows at one place of a kernel: registers,
// predicates, and relations between what they hold. One state speaks for every
// thread of the launch that comes to the place.

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "runtime/access/linear.h"

namespace heddle::access {

// Content of a 32-bit register.
struct Value {
  enum class Kind : uint8_t {
    kTop,   // anything
    kWord,  // the low 32 bits of `form`
    kHigh,  // the high half of the 64-bit `form`
  };
  Kind kind = Kind::kTop;
  FormId form = 0;
  Origins origins = 0;  // kTop

  friend bool operator==(const Value&, const Value&) = default;
};

// `form` lies in `range`, or is not equal to range.lo.
struct Atom {
  FormId form = 0;
  Range range;
  bool unequal = false;
  friend bool operator==(const Atom&, const Atom&) = default;
};
using Atoms = absl::InlinedVector<Atom, 2>;

// What a 32-bit addition with carry out, or a comparison of low halves, was of,
// for the instruction that does the high halves.
struct LowHalf {
  // The comparison (cubin::SassCompare, unsigned); -1: a sum.
  int8_t compare = -1;
  std::array<Value, 3> operand;
  std::array<bool, 3> negated{};
  int operands = 0;
  int shift = 0;  // of operand[0] (LEA)
  friend bool operator==(const LowHalf&, const LowHalf&) = default;
};

struct Truth {
  int8_t known = -1;  // 0, 1, or -1: open
  Atoms when_true;
  Atoms when_false;
  std::shared_ptr<const LowHalf> low;
  uint8_t carry = 0;  // which of the carries of `low`

  friend bool operator==(const Truth& a, const Truth& b) {
    return a.known == b.known && a.when_true == b.when_true &&
           a.when_false == b.when_false && a.carry == b.carry &&
           (a.low == b.low ||
            (a.low != nullptr && b.low != nullptr && *a.low == *b.low));
  }
};

inline constexpr int kRegisters = 256;        // the last reads as zero
inline constexpr int kUniformRegisters = 64;  // the same
// Registers and uniform registers share one numbering.
inline constexpr int kSlots = kRegisters + kUniformRegisters;
inline constexpr int kPredicates = 8;

// What a register holds in some of the threads: it was written under a guard.
// `values` then says what it holds in any thread.
struct Guarded {
  static constexpr uint8_t kNoPredicate = 0xff;

  uint16_t slot = 0;
  // Those threads for which this predicate (index in State::truths) is true, or
  // false if `negated`; kNoPredicate if it has been written since.
  uint8_t predicate = kNoPredicate;
  bool negated = false;
  Value value;
  // The same threads, as those for which this is so.
  bool has_condition = false;
  Atom condition;
  friend bool operator==(const Guarded&, const Guarded&) = default;
};

// A number that is 1 where something is true and 0 elsewhere: a predicate that
// was put into a register.
struct Indicator {
  FormId number = 0;  // one symbol
  Truth truth;
  friend bool operator==(const Indicator&, const Indicator&) = default;
};

struct State {
  bool reachable = false;
  std::array<Value, kSlots> values;
  std::array<Truth, 2 * kPredicates> truths;  // then the uniform ones
  std::vector<Bound> bounds;
  std::vector<Guarded> guarded;
  std::vector<Indicator> indicators;
};

// The operations on states and on values that need to know all symbols.
class Domain {
 public:
  Universe& universe() { return universe_; }
  const Universe& universe() const { return universe_; }

  // Symbols are found again by who made them: an instruction or a block, and a
  // number there.
  struct Maker {
    uint32_t place = 0;
    uint32_t number = 0;
    friend bool operator==(const Maker&, const Maker&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Maker& maker) {
      return H::combine(std::move(h), maker.place, maker.number);
    }
  };
  // The symbol of `maker`, whose range now includes `range`. If it is in
  // `state` with an older meaning, what was known by it is forgotten.
  SymbolId Fresh(Maker maker, const Range& range, Origins origins,
                 bool varies_in_warp, State* state);
  // The symbol that Fresh made for `maker`, or one that there is not.
  SymbolId Made(Maker maker) const {
    const auto it = made_.find(maker);
    return it == made_.end() ? ~SymbolId{0} : it->second.symbol;
  }
  // floor(numerator * factor / 2^shift): equal arguments, equal symbol.
  SymbolId Quotient(FormId numerator, int64_t factor, int shift,
                    const State& state);

  // A range grew since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }
  void SetThresholds(std::vector<int64_t> thresholds);
  // What to take instead of `grown`, which is the `growths`th larger range in
  // a row, so that there is an end to it.
  Range Widen(const Range& old, const Range& grown, int growths) const;

  Range RangeOf(FormId form, const State& state) const {
    return universe_.RangeOf(universe_.form(form), state.bounds);
  }
  // Adds what `atoms` say; the state may turn out not to be reachable.
  void Assume(const Atoms& atoms, State* state) const;
  void AddBound(FormId form, const Range& range, State* state) const;

  // Forgets what is known by way of `symbol`, or of any made at `place`.
  void Forget(SymbolId symbol, State* state) const;
  void ForgetMadeAt(uint32_t place, State* state) const;
  // Whether what comes next may be executed more than once by a thread. Only
  // then can a state know symbols by an older meaning.
  void SetRepeats(bool repeats) { repeats_ = repeats; }
  // Give up precision for an end: what still grows has no bounds.
  void Hurry() { hurried_ = true; }

  // Both, at a place where they meet. `place`: of the symbols that are needed.
  Value Join(const Value& a, const State& in_a, const Value& b,
             const State& in_b, Maker maker, State* into);
  void JoinInto(const State& other, uint32_t place, State* state);
  std::vector<Bound> CommonBounds(const State& a, const State& b) const;

  Value Top(Origins origins) const;
  Value Word(const Form& form);
  Value Word(FormId form) { return Word(Form(universe_.form(form))); }
  // The high half of a 64-bit form: where it is the same for all that the form
  // can be, that number.
  Value High(const Form& form, const State& state);
  Value High(FormId form, const State& state) {
    return High(Form(universe_.form(form)), state);
  }
  Value ConstantWord(uint32_t value);
  Origins OriginsOf(const Value& value) const;

 private:
  struct Widening {
    SymbolId symbol = 0;
    int growths = 0;
  };

  Universe universe_;
  absl::flat_hash_map<Maker, Widening> made_;
  absl::flat_hash_map<std::pair<FormId, std::pair<int64_t, int>>, SymbolId>
      quotients_;
  std::vector<int64_t> thresholds_;
  // By place.
  absl::flat_hash_map<uint32_t, std::vector<SymbolId>> made_at_;
  bool changed_ = false;
  bool repeats_ = true;
  bool hurried_ = false;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_STATE_H_
