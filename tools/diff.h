// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TOOLS_DIFF_H_
#define HEDDLE_TOOLS_DIFF_H_

// What two traces do differently on the device: `heddle diff`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/trace.h"

namespace heddle::tools {

struct DiffOptions {
  // Which operations to compare, by record; empty = all.
  std::function<bool(uint64_t record)> in_a = nullptr;
  std::function<bool(uint64_t record)> in_b = nullptr;
  // Compare addresses as numbers, too.
  bool exact = false;
  bool mangled = false;
};

struct Difference {
  enum class Kind { kRemoved, kAdded, kChanged };
  Kind kind = Kind::kChanged;
  // Records; the one that is not there is absent.
  std::optional<uint64_t> a;
  std::optional<uint64_t> b;
  std::string text_a;  // the operation
  std::string text_b;
  std::vector<std::string> changes;  // kChanged: "grid 12 -> 13"
};

struct DiffResult {
  uint64_t operations_a = 0;
  uint64_t operations_b = 0;
  uint64_t removed = 0;
  uint64_t added = 0;
  uint64_t changed = 0;
  std::vector<Difference> differences;  // in order
  bool same() const { return removed + added + changed == 0; }
};

// Aligns the operations of the traces (see trace::ListOperations) by what they
// are, then compares each pair: shape, stream (by order of first use),
// parameters. Addresses are compared as buffer and offset (buffers by order of
// allocation); one that lies in no buffer of either trace is taken for equal.
// Times and handles do not count.
DiffResult DiffTraces(const trace::Reader& a, const trace::Reader& b,
                      const DiffOptions& options);

}  // namespace heddle::tools

#endif  // HEDDLE_TOOLS_DIFF_H_
