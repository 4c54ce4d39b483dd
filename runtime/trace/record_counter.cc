// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/record_counter.h"

#include <cstdint>
#include <vector>

#include "heddle/trace.h"
#include "runtime/trace/format.h"

namespace heddle::trace {

void RecordCounter::Advance(const uint8_t* file, uint64_t end) {
  while (position_ < end) {
    const uint64_t head = LoadHead(file + position_);
    if (head == 0) return;
    Count(static_cast<fb::RecordType>(HeadType(head)), position_);
    position_ += RecordBytes(HeadLength(head));
  }
}

void RecordCounter::Count(fb::RecordType type, uint64_t offset) {
  if (type == fb::RecordType::kPad || type == fb::RecordType::kFooter) return;
  const auto number = static_cast<size_t>(type);
  if (number >= counts_.size()) counts_.resize(number + 1);
  ++counts_[number];
  if (records_ % kIndexInterval == 0) index_.push_back(offset);
  ++records_;
  last_type_ = type;
}

uint64_t RecordCounter::count(fb::RecordType type) const {
  const auto number = static_cast<size_t>(type);
  return number < counts_.size() ? counts_[number] : 0;
}

std::vector<fb::KeyValueU64> RecordCounter::CountsByType() const {
  std::vector<fb::KeyValueU64> result;
  for (size_t number = 0; number < counts_.size(); ++number) {
    if (counts_[number] == 0) continue;
    result.emplace_back(static_cast<int32_t>(number), 0, counts_[number]);
  }
  return result;
}

}  // namespace heddle::trace
