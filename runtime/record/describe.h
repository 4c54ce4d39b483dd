// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_DESCRIBE_H_
#define HEDDLE_RUNTIME_RECORD_DESCRIBE_H_

// What a large range of device memory looks like: which scalar type its bytes
// plausibly are, and their mean and standard deviation. A replay fills a range
// that is known by hash alone with seeded data of that description, so that
// numbers neither vanish nor overflow on their way through the program.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "heddle/trace.h"

namespace heddle::record {

struct Description {
  fb::ScalarType type = fb::ScalarType::kBytes;
  double mean = 0;
  double stddev = 0;
};

// Judges by samples; feed it pieces that begin at multiples of 8 bytes of the
// range.
class Describer {
 public:
  void Add(absl::Span<const uint8_t> piece);
  Description Result() const;

 private:
  std::vector<uint8_t> sample_;
};

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_DESCRIBE_H_
