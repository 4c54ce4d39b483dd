// SPDX-License-Identifier: Apache-2.0
// How many registers an operand covers, by what the modifiers say.

#include "runtime/cubin/sass_table.h"

namespace heddle::cubin::sass {
namespace {

// Registers of a product's operands: A, B, and C (also the result).
struct Shape {
  int8_t a = 0;
  int8_t b = 0;
  int8_t c = 0;
};

Shape HmmaShape(uint64_t low, uint64_t high) {
  const bool single = Bits(low, high, 76, 1) != 0;  // F32 accumulators
  const int8_t c = single ? 4 : 2;
  const uint64_t type = Bits(low, high, 82, 2);  // 0 F16, 1 BF16, 2 TF32
  if (type == 3) return {};
  const bool tf32 = type == 2;
  const bool size_low = Bits(low, high, 75, 1) != 0;
  if (Bits(low, high, 78, 1) != 0) {
    return size_low ? Shape{} : Shape{2, 1, c};  // 16x8x4
  }
  // 16x8x8 and 16x8x16 halves; TF32 has the sizes the other way round.
  return size_low == tf32 ? Shape{2, 1, c} : Shape{4, 2, c};
}

Shape ImmaShape(uint64_t low, uint64_t high) {
  // Signedness of 8-bit values only; 4-bit ones have other types.
  if (Bits(low, high, 77, 1) != 0 || Bits(low, high, 79, 1) != 0 ||
      Bits(low, high, 83, 2) != 0) {
    return {};
  }
  const uint64_t size = Bits(low, high, 75, 1) | Bits(low, high, 85, 2) << 1;
  switch (size) {
    case 0:
      return {1, 1, 2};  // 8x8x16
    case 4:
      return {2, 1, 4};  // 16x8x16
    case 5:
      return {4, 2, 4};  // 16x8x32
    default:
      return {};
  }
}

Shape BmmaShape(uint64_t low, uint64_t high) {
  switch (Bits(low, high, 75, 2)) {
    case 0:
      return {1, 1, 2};  // 8x8x128
    case 1:
      return {2, 1, 4};  // 16x8x128
    case 2:
      return {4, 2, 4};  // 16x8x256
    default:
      return {};
  }
}

Shape DmmaShape(uint64_t low, uint64_t high) {
  switch (Bits(low, high, 76, 2)) {
    case 0:
      return {2, 2, 4};  // 8x8x4
    case 1:
      return {4, 2, 8};  // 16x8x4
    case 2:
      return {8, 4, 8};  // 16x8x8
    default:
      return {16, 8, 8};  // 16x8x16
  }
}

// Registers for the 64 x N results of a warpgroup's 128 threads.
int GmmaRegisters(int columns, bool half) {
  return half ? columns / 4 : columns / 2;
}

// N of floating-point products: (field + 1) * 8.
int FloatColumns(uint64_t low, uint64_t high) {
  return static_cast<int>(Bits(low, high, 53, 5) + 1) * 8;
}

// N of integer and binary products: 8, 16, 24, 32, 48, 64, and so on to 256.
int IntegerColumns(uint64_t step) {
  if (step > 17) return 0;
  return step < 4 ? static_cast<int>(step + 1) * 8
                  : static_cast<int>(step - 1) * 16;
}

int SizeCode(uint64_t code) {
  switch (code) {
    case 5:
      return 2;  // 64
    case 6:
      return 4;  // 128
    case 7:
      return 0;
    default:
      return 1;  // U8, S8, U16, S16, 32
  }
}

int IntegerAtomic(uint64_t code) {
  switch (code) {
    case 0:
    case 1:
      return 1;  // 32, S32
    case 2:
    case 3:
      return 2;  // 64, S64
    case 4:
      return 4;  // 128
    default:
      return 0;
  }
}

int MixedAtomic(uint64_t code) {
  switch (code) {
    case 0:  // 32
    case 1:  // S32
    case 3:  // F32.FTZ
    case 4:
      return 1;  // F16x2
    case 2:      // 64
    case 5:      // S64
    case 6:
      return 2;  // F64
    default:
      return 0;
  }
}

int FloatAtomic(uint64_t code) {
  switch (code) {
    case 0:  // F16x2
    case 3:  // BF16x2
    case 9:  // F32.FTZ
    case 12:
      return 1;  // F32
    case 1:      // F16x4
    case 4:      // BF16x4
    case 10:     // F32x2.FTZ
    case 13:     // F32x2
    case 15:
      return 2;  // F64
    case 2:      // F16x8
    case 5:      // BF16x8
    case 11:     // F32x4.FTZ
    case 14:
      return 4;  // F32x4
    default:
      return 0;
  }
}

}  // namespace

int RegisterCount(Count count, uint64_t low, uint64_t high) {
  const auto bits = [&](int bit, int size) {
    return Bits(low, high, bit, size);
  };
  const auto pair_if = [&](int bit) { return bits(bit, 1) != 0 ? 2 : 1; };
  switch (count) {
    case Count::kOne:
      return 1;
    case Count::kTwo:
      return 2;
    case Count::kThree:
      return 3;
    case Count::kFour:
      return 4;
    case Count::kPairIf70:
      return pair_if(70);
    case Count::kPairIf72:
      return pair_if(72);
    case Count::kPairIf73:
      return pair_if(73);
    case Count::kPairIf80:
      return pair_if(80);
    case Count::kPairIf90:
      return pair_if(90);
    case Count::kSize73:
      return SizeCode(bits(73, 3));
    case Count::kInteger73:
      return IntegerAtomic(bits(73, 3));
    case Count::kMixed73:
      return MixedAtomic(bits(73, 4));
    case Count::kFloat73:
      return FloatAtomic(bits(73, 4));
    case Count::kMatrices72:
      return bits(72, 2) == 3 ? 0 : 1 << bits(72, 2);
    case Count::kType75:
      return bits(75, 3) == 3 ? 2 : 1;
    case Count::kInteger75:
      return bits(75, 2) == 3 ? 2 : 1;
    case Count::kType84:
      return bits(84, 3) == 3 ? 2 : 1;
    case Count::kInteger84:
      return bits(84, 2) == 3 ? 2 : 1;
    case Count::kTensorRank:
    case Count::kTensorRank1:
    case Count::kTensorRank2: {
      const int rank = static_cast<int>(bits(79, 3)) + 1;
      if (rank > 5) return 0;
      return rank +
             (static_cast<int>(count) - static_cast<int>(Count::kTensorRank));
    }
    case Count::kHmmaA:
      return HmmaShape(low, high).a;
    case Count::kHmmaB:
      return HmmaShape(low, high).b;
    case Count::kHmmaC:
      return HmmaShape(low, high).c;
    case Count::kImmaA:
      return ImmaShape(low, high).a;
    case Count::kImmaB:
      return ImmaShape(low, high).b;
    case Count::kImmaC:
      return ImmaShape(low, high).c;
    case Count::kBmmaA:
      return BmmaShape(low, high).a;
    case Count::kBmmaB:
      return BmmaShape(low, high).b;
    case Count::kBmmaC:
      return BmmaShape(low, high).c;
    case Count::kDmmaA:
      return DmmaShape(low, high).a;
    case Count::kDmmaB:
      return DmmaShape(low, high).b;
    case Count::kDmmaC:
      return DmmaShape(low, high).c;
    case Count::kHgmma:
      // Bit 58 tells K, bit 59 has no meaning.
      return bits(59, 1) != 0
                 ? 0
                 : GmmaRegisters(FloatColumns(low, high), bits(75, 1) == 0);
    case Count::kQgmma:
      return bits(58, 1) != 0
                 ? 0
                 : GmmaRegisters(FloatColumns(low, high), bits(75, 1) == 0);
    case Count::kIgmma:
      return bits(53, 6) % 3 != 0
                 ? 0
                 : GmmaRegisters(IntegerColumns(bits(53, 6) / 3), false);
    case Count::kBgmma:
      return GmmaRegisters(IntegerColumns(bits(53, 6)), false);
  }
  return 0;
}

}  // namespace heddle::cubin::sass
