// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_SASS_TABLE_H_
#define HEDDLE_RUNTIME_CUBIN_SASS_TABLE_H_

// The table behind DecodeSass: which instruction an opcode is, under which
// modifiers, and which bits hold which operand. Internal to the decoder.
//
// Bit numbers run over the whole 128-bit word. Bits 9 to 11 of the opcode of an
// arithmetic instruction are its form: where its second and third source come
// from.
//
//   form | second source (B)   | third source (C)
//   -----|---------------------|--------------------
//    1   | R at 32             | R at 64
//    2   | R at 64             | immediate at 32
//    3   | R at 64             | constant
//    4   | immediate at 32     | R at 64
//    5   | constant            | R at 64
//    6   | UR at 32            | R at 64
//    7   | R at 64             | UR at 32
//
// On the uniform datapath all R are UR.

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/cubin/sass.h"

namespace heddle::cubin::sass {

// A bit that must be set or clear; 0 is no condition.
class BitTest {
 public:
  constexpr BitTest() = default;
  static constexpr BitTest Set(int bit) { return BitTest(bit + 1); }
  static constexpr BitTest Clear(int bit) { return BitTest(-bit - 1); }
  constexpr bool none() const { return code_ == 0; }
  constexpr bool wants_set() const { return code_ > 0; }
  constexpr int bit() const { return (code_ > 0 ? code_ : -code_) - 1; }

 private:
  explicit constexpr BitTest(int code) : code_(static_cast<int8_t>(code)) {}
  int8_t code_ = 0;
};
constexpr BitTest Set(int bit) { return BitTest::Set(bit); }
constexpr BitTest Clear(int bit) { return BitTest::Clear(bit); }

// How many consecutive registers an operand covers.
enum class Count : uint8_t {
  kOne,
  kTwo,
  kThree,
  kFour,
  kPairIf70,  // two where this bit is set, else one
  kPairIf72,
  kPairIf73,
  kPairIf80,
  kPairIf90,
  kSize73,       // loads and stores: size code in bits 73 to 75
  kInteger73,    // integer atomics: type code in bits 73 to 75
  kMixed73,      // atomics before sm_90, which have one list for all types
  kFloat73,      // floating-point atomics: type code in bits 73 to 76
  kMatrices72,   // LDSM, STSM: 1, 2 or 4 matrices
  kType75,       // conversions: two if the code in bits 75 to 77 says 64 bits
  kInteger75,    // the same in two bits
  kType84,       // bits 84 to 86
  kInteger84,    // bits 84 and 85
  kTensorRank,   // coordinates of tensor copies: rank
  kTensorRank1,  // and an address
  kTensorRank2,  // and an address and a barrier
  kHmmaA,
  kHmmaB,
  kHmmaC,
  kImmaA,
  kImmaB,
  kImmaC,
  kBmmaA,
  kBmmaB,
  kBmmaC,
  kDmmaA,
  kDmmaB,
  kDmmaC,
  kHgmma,  // accumulators of warpgroup products
  kQgmma,
  kIgmma,
  kBgmma,
};

enum class SlotKind : uint8_t {
  kEnd,
  kRegister,
  kUniform,
  kUniformNext,  // the one behind the one at `bit`
  kPredicate,
  kInvertedPredicate,  // its number is stored as 7 minus itself
  kUniformPredicate,
  kInvertedUniformPredicate,
  kPredicateSet,         // mask at `bit`; all if `size` is 0
  kUniformPredicateSet,  // the same
  kImmediate,            // `size` bits at `bit`
  kSigned,
  kLut,      // the split look-up table of PLOP3
  kSourceB,  // by form
  kSourceC,
  kField,     // what is at bit 32, by form
  kConstant,  // offset of 16 bits at 38, bank at 54
  kSpecial,
  kConvergence,
  kTarget,        // of branches: relative, in the places of kFar
  kMeetingPlace,  // of BSSY: relative, at 34
  kAddressOf,     // of LEPC: relative, at 24
  kHere,          // the instruction's own address
  kFar,           // what kTarget reads, as an immediate
  kFarRelative,   // the same where it counts from the instruction
};

// What a slot is for an access to memory.
enum class Part : uint8_t {
  kNone,
  kBase,
  kUniform,
  kOffset,
  kDescriptor,
  kData,
};

struct Slot {
  SlotKind kind = SlotKind::kEnd;
  uint8_t bit = 0;
  uint8_t size = 0;
  bool write = false;
  Count count = Count::kOne;
  Part part = Part::kNone;
  uint8_t access = 0;  // which of the row's two accesses `part` belongs to
  std::array<BitTest, 2> when{};

  constexpr Slot Of(Count value) const {
    Slot copy = *this;
    copy.count = value;
    return copy;
  }
  constexpr Slot If(BitTest first, BitTest second = {}) const {
    Slot copy = *this;
    copy.when = {first, second};
    return copy;
  }
  constexpr Slot As(Part value, uint8_t which = 0) const {
    Slot copy = *this;
    copy.part = value;
    copy.access = which;
    return copy;
  }
};

struct MemoryRow {
  uint16_t fixed_bytes = 0;  // if not 0, instead of `bytes`
  SassSpace space = SassSpace::kNone;
  SassMemoryKind kind = SassMemoryKind::kLoad;
  Count bytes = Count::kOne;  // as a register count; sub-word sizes by kSize73
  bool sized = true;          // false: the size is not in the instruction
};

// Modifier bits that must have one of these values, else unknown.
struct Allowed {
  uint64_t values = 0;  // bit v set: value v is fine
  uint8_t bit = 0;
  uint8_t size = 0;  // 0: anything goes
};

struct Row {
  const char* mnemonic = "";
  Allowed allowed{};
  uint16_t opcode = 0;  // 12 bits; the low 9 if `forms` is not 0
  uint16_t min_arch = 80;
  uint16_t max_arch = 90;
  std::array<MemoryRow, 2> memory{};
  uint8_t memory_count = 0;
  uint8_t forms = 0;     // bit f set: form f exists
  bool uniform = false;  // of the uniform datapath: guards are UP, forms use UR
  bool scaled = false;   // bits 78 and 79 scale the base of a shared address
  SassClass instruction_class = SassClass::kOther;
  SassFlow flow = SassFlow::kNext;
  std::array<Slot, 13> slots{};
  std::array<BitTest, 8> when{};

  constexpr Row When(std::array<BitTest, 8> value) const {
    Row copy = *this;
    copy.when = value;
    return copy;
  }
  constexpr Row Flow(SassFlow value) const {
    Row copy = *this;
    copy.flow = value;
    return copy;
  }
  constexpr Row Touches(MemoryRow first) const {
    Row copy = *this;
    copy.memory[0] = first;
    copy.memory_count = 1;
    return copy;
  }
  constexpr Row Touches(MemoryRow first, MemoryRow second) const {
    Row copy = *this;
    copy.memory = {first, second};
    copy.memory_count = 2;
    return copy;
  }
  constexpr Row Only(uint8_t bit, uint8_t size, uint64_t values) const {
    Row copy = *this;
    copy.allowed = {values, bit, size};
    return copy;
  }
  constexpr Row Arch(uint16_t min, uint16_t max) const {
    Row copy = *this;
    copy.min_arch = min;
    copy.max_arch = max;
    return copy;
  }
  constexpr Row Scaled() const {
    Row copy = *this;
    copy.scaled = true;
    return copy;
  }
};

// The table, in four parts. Rows of one opcode exclude one another by `when`.
absl::Span<const Row> ArithmeticRows();
absl::Span<const Row> MemoryRows();
absl::Span<const Row> BulkRows();
absl::Span<const Row> ControlRows();

// The rows of an opcode of 12 bits, all its forms told apart: a list.
struct RowLink {
  const Row* row = nullptr;
  const RowLink* next = nullptr;
};
const RowLink* RowsOf(uint16_t opcode);

// The registers that `count` means for this instruction; 0 if its modifiers
// have a value that is not known.
int RegisterCount(Count count, uint64_t low, uint64_t high);

// `size` (1 to 32) bits at `bit` of the 128-bit word.
inline uint64_t Bits(uint64_t low, uint64_t high, int bit, int size) {
  const uint64_t word =
      bit >= 64 ? high >> (bit - 64)
                : (low >> bit) | (bit == 0 ? 0 : high << (64 - bit));
  return word & (size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1);
}

}  // namespace heddle::cubin::sass

#endif  // HEDDLE_RUNTIME_CUBIN_SASS_TABLE_H_
