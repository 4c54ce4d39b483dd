// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_CUBIN_STRAIGHT_LINE_H_
#define HEDDLE_RUNTIME_CUBIN_STRAIGHT_LINE_H_

// Which instruction a register has its value from, where that can be seen
// without following control.

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "runtime/cubin/sass.h"

namespace heddle::cubin {

class StraightLine {
 public:
  // `code` is a text section, or a part of it that control enters at its start
  // or by the branches in it; it outlives the object. Not thread safe.
  StraightLine(absl::Span<const uint8_t> code, uint32_t arch)
      : code_(code), arch_(arch) {}

  // The offset of the last instruction before `at` that writes register
  // `index` of `kind` (kRegister, kUniformRegister), under whatever guard.
  // nullopt if control may come to what lies between from elsewhere.
  std::optional<uint64_t> WriterBefore(SassOperandKind kind, int index,
                                       uint64_t at) const;

  bool IsCode(absl::Span<const uint8_t> code) const {
    return code_.data() == code.data() && code_.size() == code.size();
  }

 private:
  bool IsTarget(uint64_t offset) const;
  void FindTargets() const;

  absl::Span<const uint8_t> code_;
  uint32_t arch_;
  // Found at the first question.
  mutable bool looked_ = false;
  mutable absl::flat_hash_set<int64_t> targets_;
  mutable bool anywhere_ = false;
};

}  // namespace heddle::cubin

#endif  // HEDDLE_RUNTIME_CUBIN_STRAIGHT_LINE_H_
