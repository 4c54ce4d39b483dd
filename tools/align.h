// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_ALIGN_H_
#define HEDDLE_TOOLS_ALIGN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace heddle::tools {

// Pairs of positions {in a, in b} with equal tokens, ascending in both: a
// longest common subsequence (Myers, "An O(ND) difference algorithm and its
// variations", 1986). Where the sequences differ by thousands of tokens in one
// place it settles for a long one, so that time stays bounded: about n * 256
// steps for n tokens without anything in common.
std::vector<std::pair<uint64_t, uint64_t>> Align(absl::Span<const uint64_t> a,
                                                 absl::Span<const uint64_t> b);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_ALIGN_H_
