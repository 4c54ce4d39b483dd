// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_LINEAR_H_
#define HEDDLE_RUNTIME_ACCESS_LINEAR_H_

// Linear forms over the unknowns of a kernel (thread and block indices, loop
// counts, loaded values), and what is known of their ranges. The arithmetic
// under the static analysis of addresses.
//
// A form stands for an integer modulo 2^64: coefficients wrap. Whoever needs
// the integer itself asks for its range and sees that it fits.
//
// Not thread safe.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace heddle::access {

using Wide = __int128;  // sums of products of 64-bit numbers

using SymbolId = uint32_t;
using FormId = uint32_t;  // forms are interned: equal forms, equal ids

struct Range {
  Wide lo = 0;
  Wide hi = 0;  // inclusive

  bool empty() const { return lo > hi; }
  bool single() const { return lo == hi; }
  bool Within(Wide least, Wide most) const { return lo >= least && hi <= most; }
  friend bool operator==(const Range&, const Range&) = default;
};

// No bound. Small enough that sums of a few do not overflow.
inline constexpr Wide kUnbounded = Wide{1} << 100;
inline constexpr Range kAnything = {-kUnbounded, kUnbounded};
inline constexpr Range kSigned32 = {-(Wide{1} << 31), (Wide{1} << 31) - 1};
inline constexpr Range kUnsigned32 = {0, (Wide{1} << 32) - 1};
inline constexpr Range kUnsigned64 = {0, (Wide{1} << 64) - 1};
inline constexpr Range kSigned64 = {-(Wide{1} << 63), (Wide{1} << 63) - 1};

Range Hull(const Range& a, const Range& b);
Range Intersect(const Range& a, const Range& b);
Range Sum(const Range& a, const Range& b);  // saturates at kUnbounded
Range Scale(const Range& range, Wide factor);
Range Product(const Range& a, const Range& b);

struct Term {
  SymbolId symbol = 0;
  int64_t coefficient = 0;
  friend bool operator==(const Term&, const Term&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Term& term) {
    return H::combine(std::move(h), term.symbol, term.coefficient);
  }
};

struct Form {
  std::vector<Term> terms;  // by symbol, coefficients not 0
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  int64_t CoefficientOf(SymbolId symbol) const;
  friend bool operator==(const Form&, const Form&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Form& form) {
    return H::combine(std::move(h), form.terms, form.constant);
  }
};

Form Add(const Form& a, const Form& b, int64_t factor_of_b = 1);
Form Times(const Form& form, int64_t factor);
// Coefficients and constant reduced to the signed 32-bit numbers that are equal
// modulo 2^32.
Form Reduced32(const Form& form);

// Where a value can have come from, as far as addresses care. A set of bits:
// bit i for pointer i of the launch, and
inline constexpr uint64_t kFromMemory = uint64_t{1} << 63;    // loaded
inline constexpr uint64_t kFromVariable = uint64_t{1} << 62;  // bank 4
inline constexpr uint64_t kFromDriver = uint64_t{1}
                                        << 61;  // driver's constants
inline constexpr int kMaxPointers = 60;
using Origins = uint64_t;

// A constraint: lo <= form <= hi as integers.
struct Bound {
  FormId form = 0;
  Range range;
  friend bool operator==(const Bound&, const Bound&) = default;
};

enum class SymbolKind : uint8_t {
  kThread,      // threadIdx
  kBlock,       // blockIdx
  kPointer,     // the value of a pointer parameter
  kParameters,  // where the parameter block is, as a generic address
  kLoop,        // how often a loop has been round
  kOther,
};

struct Symbol {
  SymbolKind kind = SymbolKind::kOther;
  uint8_t axis = 0;  // of kThread, kBlock
  // kPointer: which, and its value modulo 256 (its alignment).
  uint8_t pointer = 0;
  uint8_t residue = 0;
  Range range;
  Origins origins = 0;
  // Not the same for all threads of a warp.
  bool varies_in_warp = true;
  // Symbols that it was computed from: what is known of it goes when they do.
  std::vector<SymbolId> depends;
  // What is true of it by definition.
  std::vector<Bound> definition;
  // floor(numerator * factor / 2^shift); shift 0: no quotient.
  FormId numerator = 0;
  int64_t factor = 0;
  int shift = 0;
};

// All symbols and forms of one analysis.
class Universe {
 public:
  Universe();

  FormId Intern(Form form);
  const Form& form(FormId id) const { return *forms_[id]; }
  FormId Constant(int64_t value);
  FormId Of(SymbolId symbol);

  SymbolId NewSymbol(Symbol symbol);
  const Symbol& symbol(SymbolId id) const { return symbols_[id]; }
  Symbol& symbol(SymbolId id) { return symbols_[id]; }
  size_t symbol_count() const { return symbols_.size(); }

  Origins OriginsOf(const Form& form) const;
  bool VariesInWarp(const Form& form) const;
  // Whether `form` has `symbol`, or one that depends on it.
  bool Mentions(const Form& form, SymbolId symbol) const;

  // What `form` can be where `bounds` hold, from these, the symbols' ranges
  // and their definitions.
  Range RangeOf(const Form& form, absl::Span<const Bound> bounds) const;
  // How many bounds were tried on forms so far: what an analysis costs.
  uint64_t work() const { return work_; }
  // The value of `form` modulo 2^bits (bits <= 8), or -1 if that is open.
  int ResidueOf(const Form& form, int bits) const;
  // The largest k <= 62 for which 2^k divides `form` whatever its symbols are.
  int TrailingZeros(const Form& form) const;

 private:
  Range Tighten(const Form& form, absl::Span<const Bound> bounds, int depth,
                int* budget) const;
  Range Naive(const Form& form) const;

  absl::flat_hash_map<Form, FormId> ids_;
  std::vector<const Form*> forms_;  // keys of `ids_`
  std::vector<std::unique_ptr<Form>> storage_;
  std::vector<Symbol> symbols_;
  mutable uint64_t work_ = 0;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_LINEAR_H_
