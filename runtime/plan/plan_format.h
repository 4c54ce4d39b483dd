// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_PLAN_PLAN_FORMAT_H_
#define HEDDLE_RUNTIME_PLAN_PLAN_FORMAT_H_

// The bytes of a plan file before its payload; little-endian. traces/FORMAT.md
// says the same in words.

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::plan {

// For the bytes around the letters see trace::kFileMagic.
inline constexpr std::array<uint8_t, 8> kPlanMagic = {0x89, 'H',  'P',  'L',
                                                      '\r', '\n', 0x1a, '\n'};

struct PlanHeader {
  std::array<uint8_t, 8> magic;
  uint32_t version;
  uint32_t min_reader_version;
  uint64_t payload_bytes;            // to the end of the file
  uint64_t payload_checksum;         // XXH3-64 of the payload
  std::array<uint64_t, 3> reserved;  // 0
  uint64_t checksum;                 // XXH3-64 of all bytes before it
};
static_assert(sizeof(PlanHeader) == 64);
static_assert(offsetof(PlanHeader, checksum) == 56);

}  // namespace heddle::plan

#endif  // HEDDLE_RUNTIME_PLAN_PLAN_FORMAT_H_
