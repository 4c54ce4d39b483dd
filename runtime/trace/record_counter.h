// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_TRACE_RECORD_COUNTER_H_
#define HEDDLE_RUNTIME_TRACE_RECORD_COUNTER_H_

#include <cstdint>
#include <vector>

#include "heddle/trace.h"

namespace heddle::trace {

// Walks over the records of a file as they become complete and gathers what
// the footer says about them. The writer counts behind its threads instead of
// in them, so that appending costs no shared counters.
class RecordCounter {
 public:
  explicit RecordCounter(uint64_t position) : position_(position) {}

  // Counts the complete records of `file` from position() on, up to `end` at
  // most.
  void Advance(const uint8_t* file, uint64_t end);
  void Skip(uint64_t bytes) { position_ += bytes; }

  uint64_t position() const { return position_; }
  // Padding and the footer do not count.
  uint64_t records() const { return records_; }
  uint64_t count(fb::RecordType type) const;
  fb::RecordType last_type() const { return last_type_; }
  // In the order of the types' numbers.
  std::vector<fb::KeyValueU64> CountsByType() const;
  // Offsets of every kIndexInterval-th record.
  const std::vector<uint64_t>& index() const { return index_; }

  // Counts one record that was found elsewhere.
  void Count(fb::RecordType type, uint64_t offset);

 private:
  uint64_t position_;
  uint64_t records_ = 0;
  fb::RecordType last_type_ = fb::RecordType::kNone;
  std::vector<uint64_t> counts_;  // by type
  std::vector<uint64_t> index_;
};

}  // namespace heddle::trace

#endif  // HEDDLE_RUNTIME_TRACE_RECORD_COUNTER_H_
