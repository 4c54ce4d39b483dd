// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_CUBIN_TEST_IMAGES_H_
#define HEDDLE_TESTS_UNIT_CUBIN_TEST_IMAGES_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace heddle::cubin {

// A file that the build compiled from kernels.cu; empty if this toolkit cannot
// make it.
inline std::vector<uint8_t> TestImage(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_TEST_IMAGES) + "/" + name,
                     std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// Calls `check` with damaged copies of `image`: cut at many lengths, then with
// bytes changed. Every copy has its own heap block of exactly its size, so that
// a read outside is seen by AddressSanitizer.
template <typename Check>
void ForEachDamaged(const std::vector<uint8_t>& image, Check check) {
  const auto run = [&](absl::Span<const uint8_t> bytes) {
    std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
    if (!bytes.empty()) {
      std::memcpy(exact.get(), bytes.data(), bytes.size());
    }
    check(absl::Span<const uint8_t>(exact.get(), bytes.size()));
  };
  for (size_t size = 0; size < image.size(); size += 1 + size / 64) {
    run(absl::MakeConstSpan(image).first(size));
  }
  std::mt19937 random(20240607);
  for (int round = 0; round < 4000; ++round) {
    std::vector<uint8_t> copy = image;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      // Half of the changes near the ends, where the headers are.
      size_t at = random() % copy.size();
      if (random() % 2 == 0) at = random() % std::min<size_t>(at + 1, 256);
      if (random() % 4 == 0) at = copy.size() - 1 - at;
      copy[at] = random() % 3 == 0 ? 0xff : static_cast<uint8_t>(random());
    }
    run(copy);
  }
}

}  // namespace heddle::cubin

#endif  // HEDDLE_TESTS_UNIT_CUBIN_TEST_IMAGES_H_
