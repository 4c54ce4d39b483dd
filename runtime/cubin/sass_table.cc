// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass_table.h"

#include <array>
#include <cstdint>
#include <deque>

namespace heddle::cubin::sass {
namespace {

class Index {
 public:
  Index() {
    for (const absl::Span<const Row> part :
         {ArithmeticRows(), MemoryRows(), BulkRows(), ControlRows()}) {
      for (const Row& row : part) {
        if (row.forms == 0) {
          Add(row.opcode, row);
          continue;
        }
        for (int form = 1; form < 8; ++form) {
          if ((row.forms >> form & 1) == 0) continue;
          Add(static_cast<uint16_t>(row.opcode | form << 9), row);
        }
      }
    }
  }

  const RowLink* First(uint16_t opcode) const { return first_[opcode & 0xfff]; }

 private:
  void Add(uint16_t opcode, const Row& row) {
    links_.push_back({&row, first_[opcode]});
    first_[opcode] = &links_.back();
  }

  std::array<const RowLink*, 4096> first_{};
  std::deque<RowLink> links_;  // whose elements stay where they are
};

}  // namespace

const RowLink* RowsOf(uint16_t opcode) {
  static const Index* const index = new Index;
  return index->First(opcode);
}

}  // namespace heddle::cubin::sass
