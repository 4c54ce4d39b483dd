// SPDX-License-Identifier: Apache-2.0
#include "tests/hostdevice/random.h"

#include <cstring>

namespace heddle::hostdevice {

void FillUndefined(void* data, size_t size, uint64_t salt) {
  // One random page repeated: fast, and still wrong for any program.
  constexpr size_t kBlock = 4096;
  uint64_t block[kBlock / sizeof(uint64_t)];
  Random random(salt ^ 0x5eed5eed5eed5eedu);
  // Every byte has its low bit set: none is zero.
  for (uint64_t& word : block) word = random.Next() | 0x0101010101010101u;
  auto* out = static_cast<unsigned char*>(data);
  while (size >= kBlock) {
    std::memcpy(out, block, kBlock);
    out += kBlock;
    size -= kBlock;
  }
  if (size > 0) std::memcpy(out, block, size);
}

}  // namespace heddle::hostdevice
