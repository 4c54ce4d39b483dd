// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle::replay {
namespace {

constexpr size_t kQuantiles = 65536;
constexpr double kWeightDeviation = 0.02;

// splitmix64 (Steele, Lea, Flood 2014): a hash that is a bijection of 64 bits.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Quantiles of the standard normal distribution at (i + 0.5) / kQuantiles, by
// bisection of its distribution function: slow, exact enough, done once.
const std::vector<double>& NormalQuantiles() {
  static const auto* const quantiles = [] {
    auto* values = new std::vector<double>(kQuantiles);
    double low = -6;
    for (size_t i = 0; i < kQuantiles; ++i) {
      const double p = (static_cast<double>(i) + 0.5) / kQuantiles;
      double a = low;
      double b = 6;
      while (b - a > 1e-9) {
        const double middle = (a + b) / 2;
        (0.5 * std::erfc(-middle * M_SQRT1_2) < p ? a : b) = middle;
      }
      low = a;  // the next one is larger
      (*values)[i] = (a + b) / 2;
    }
    return values;
  }();
  return *quantiles;
}

struct Limits {
  double largest;   // finite
  double smallest;  // normal, positive
};

Limits LimitsOf(fb::ScalarType type) {
  switch (type) {
    case fb::ScalarType::kF16:
      return {65504, 0x1p-14};
    case fb::ScalarType::kFP8:
      return {448, 0x1p-6};  // E4M3
    case fb::ScalarType::kF64:
      return {1e300, 0x1p-1000};
    default:
      return {3e38, 0x1p-126};
  }
}

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(rounded >> 16);
}

// Values are in the normal range of the type, so that only rounding can carry
// into the exponent, which is right.
uint16_t ToBinary16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

uint8_t ToE4M3(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = (bits >> 24) & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = magnitude + 0x7ffff + ((magnitude >> 20) & 1);
  const uint32_t code = (rounded - 0x3c000000) >> 20;
  return static_cast<uint8_t>(sign | std::min<uint32_t>(code, 0x7e));
}

// The nearest value that is allowed: finite, and not zero.
double Allowed(double value, const Limits& limits) {
  const double magnitude =
      std::clamp(std::abs(value), limits.smallest, limits.largest);
  return std::copysign(magnitude, value);
}

template <typename T>
void Put(std::vector<uint8_t>& table, size_t i, T value) {
  std::memcpy(table.data() + i * sizeof(T), &value, sizeof(T));
}

size_t ElementBytes(fb::ScalarType type) {
  switch (type) {
    case fb::ScalarType::kF32:
    case fb::ScalarType::kI32:
      return 4;
    case fb::ScalarType::kF16:
    case fb::ScalarType::kBF16:
      return 2;
    case fb::ScalarType::kF64:
    case fb::ScalarType::kI64:
      return 8;
    default:
      return 1;
  }
}

// A byte that cannot be the top byte of a NaN or infinity of any type.
uint8_t HarmlessByte(double value) {
  const auto byte =
      static_cast<uint8_t>(std::lround(std::clamp(value, 1.0, 255.0)));
  return (byte & 0x78) == 0x78 ? static_cast<uint8_t>(byte & ~0x40) : byte;
}

}  // namespace

SeededFill::SeededFill(fb::ScalarType type, double mean, double stddev,
                       uint64_t seed)
    : element_bytes_(ElementBytes(type)), seed_(Mix(seed)) {
  const bool bytes =
      type == fb::ScalarType::kBytes ||
      static_cast<uint8_t>(type) > static_cast<uint8_t>(fb::ScalarType::kFP8);
  const bool integer =
      type == fb::ScalarType::kI32 || type == fb::ScalarType::kI64;
  const Limits limits = LimitsOf(type);
  const bool sane = std::isfinite(mean) && std::isfinite(stddev) &&
                    stddev >= 0 && std::abs(mean) <= limits.largest &&
                    stddev <= limits.largest;
  if (bytes && (!sane || stddev == 0)) {
    mean = 64;
    stddev = 32;
  } else if (integer && !sane) {
    mean = 0;
    stddev = 0;
  } else if (!integer && (!sane || (mean == 0 && stddev == 0))) {
    mean = 0;
    stddev = kWeightDeviation;
  }
  const std::vector<double>& quantiles = NormalQuantiles();
  table_.resize(kQuantiles * element_bytes_);
  for (size_t i = 0; i < kQuantiles; ++i) {
    const double value = mean + stddev * quantiles[i];
    if (bytes) {
      table_[i] = HarmlessByte(value);
      continue;
    }
    if (integer) {
      const double low = std::max(mean - 2 * stddev, mean >= 0 ? 0.0 : -0x1p31);
      const double limit = type == fb::ScalarType::kI32 ? 0x1p31 - 1 : 0x1p62;
      const double kept = std::clamp(
          value, std::clamp(low, -limit, limit),
          std::clamp(std::max(low, mean + 2 * stddev), -limit, limit));
      if (type == fb::ScalarType::kI32) {
        Put(table_, i, static_cast<int32_t>(kept));
      } else {
        Put(table_, i, static_cast<int64_t>(kept));
      }
      continue;
    }
    const double allowed = Allowed(value, limits);
    switch (type) {
      case fb::ScalarType::kF32:
        Put(table_, i, static_cast<float>(allowed));
        break;
      case fb::ScalarType::kF64:
        Put(table_, i, allowed);
        break;
      case fb::ScalarType::kF16:
        Put(table_, i, ToBinary16(static_cast<float>(allowed)));
        break;
      case fb::ScalarType::kBF16:
        Put(table_, i, ToBFloat16(static_cast<float>(allowed)));
        break;
      default:
        table_[i] = ToE4M3(static_cast<float>(allowed));
        break;
    }
  }
}

void SeededFill::Write(uint64_t offset, absl::Span<uint8_t> out) const {
  // One hash gives four elements.
  const size_t group = 4 * element_bytes_;
  uint64_t counter = offset / group;
  size_t at = 0;
  std::vector<uint8_t> last(group);
  while (at < out.size()) {
    const uint64_t hash = Mix(seed_ ^ Mix(counter++));
    uint8_t* to = out.size() - at >= group ? out.data() + at : last.data();
    for (size_t lane = 0; lane < 4; ++lane) {
      const size_t index = (hash >> (16 * lane)) & 0xffff;
      std::memcpy(to + lane * element_bytes_,
                  table_.data() + index * element_bytes_, element_bytes_);
    }
    if (to == last.data()) {
      std::memcpy(out.data() + at, last.data(), out.size() - at);
      return;
    }
    at += group;
  }
}

namespace {

constexpr size_t kBlock = 256;

// Exponents 2^-30 to 2^30 of a type with an 8-bit exponent.
bool PlausibleExponent8(uint32_t exponent) {
  return exponent >= 127 - 30 && exponent <= 127 + 30;
}

bool PlausibleF32(uint32_t bits) {
  return PlausibleExponent8((bits >> 23) & 0xff);
}
bool PlausibleBF16(uint16_t bits) {
  return PlausibleExponent8((bits >> 7) & 0xff);
}
// 2^-12 to 2^14; denormals and the ends of the range are left out.
bool PlausibleF16(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 0x1f;
  return exponent >= 3 && exponent <= 29;
}

template <typename Word, typename Plausible>
bool LooksLike(const uint8_t* block, Plausible plausible) {
  size_t nonzero = 0;
  for (size_t at = 0; at < kBlock; at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, block + at, sizeof(Word));
    if (static_cast<Word>(word << 1) == 0) continue;  // zero of either sign
    if (!plausible(word)) return false;
    ++nonzero;
  }
  return nonzero * 2 * sizeof(Word) >= kBlock;
}

template <typename Word>
uint64_t Flip(uint8_t* block, uint64_t state, int shift, Word mask) {
  uint64_t changed = 0;
  for (size_t at = 0; at < kBlock; at += sizeof(Word)) {
    state = Mix(state);
    Word word;
    std::memcpy(&word, block + at, sizeof(Word));
    if (static_cast<Word>(word << 1) == 0) continue;
    const Word flip =
        static_cast<Word>(static_cast<Word>(state >> 32 << shift) & mask);
    if ((state & 1) == 0 || flip == 0) continue;
    word = static_cast<Word>(word ^ flip);
    std::memcpy(block + at, &word, sizeof(Word));
    changed += sizeof(Word);
  }
  return changed;
}

}  // namespace

uint64_t Perturb(absl::Span<uint8_t> bytes, uint64_t address, uint64_t seed,
                 uint64_t pointer_begin, uint64_t pointer_end) {
  uint64_t changed = 0;
  // Blocks start at multiples of kBlock of the address.
  size_t at = (kBlock - address % kBlock) % kBlock;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    uint8_t* block = bytes.data() + at;
    bool pointer = false;
    for (size_t i = 0; i < kBlock; i += 8) {
      uint64_t word;
      std::memcpy(&word, block + i, 8);
      pointer |= word >= pointer_begin && word < pointer_end;
    }
    if (pointer) continue;
    const uint64_t state = Mix(seed ^ Mix(address + at));
    // A pair of 16-bit floats is often a plausible binary32 as well; flipping
    // low bits is harmless to either reading only for the narrower type.
    if (LooksLike<uint16_t>(block, PlausibleBF16) ||
        LooksLike<uint16_t>(block, PlausibleF16)) {
      changed += Flip<uint16_t>(block, state, 0, 0x0001);
    } else if (LooksLike<uint32_t>(block, PlausibleF32)) {
      changed += Flip<uint32_t>(block, state, 8, 0x0000ff00);
    }
  }
  return changed;
}

}  // namespace heddle::replay
