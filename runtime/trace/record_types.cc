// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/record_types.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "flatbuffers/flatbuffers.h"
#include "heddle/trace.h"

namespace heddle::trace {
namespace {

template <typename Table>
bool VerifyAs(absl::Span<const uint8_t> payload) {
  // Depth bounds the stack. The number of tables bounds the time that tables
  // which share their parts can cost; honest ones take 4 bytes each at least.
  constexpr flatbuffers::uoffset_t kMaxDepth = 64;
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(
      std::max<size_t>(payload.size() / 4, 1'000'000));
  flatbuffers::Verifier verifier(payload.data(), payload.size(), kMaxDepth,
                                 max_tables);
  return verifier.VerifyBuffer<Table>(nullptr);
}

}  // namespace

bool IsKnownRecordType(fb::RecordType type) {
  switch (type) {
#define HEDDLE_CASE(Table)       \
  case fb::RecordType::k##Table: \
    return true;
    HEDDLE_RECORD_TABLES(HEDDLE_CASE)
#undef HEDDLE_CASE
    default:
      return false;
  }
}

bool VerifyPayload(fb::RecordType type, absl::Span<const uint8_t> payload) {
  switch (type) {
#define HEDDLE_CASE(Table)       \
  case fb::RecordType::k##Table: \
    return VerifyAs<fb::Table>(payload);
    HEDDLE_RECORD_TABLES(HEDDLE_CASE)
#undef HEDDLE_CASE
    default:
      return false;
  }
}

bool VerifyFooter(absl::Span<const uint8_t> payload) {
  return VerifyAs<fb::Footer>(payload);
}

std::string RecordTypeName(fb::RecordType type) {
  // kModuleUnload -> module-unload
  const std::string name = fb::EnumNameRecordType(type);
  if (name.size() < 2) {
    return absl::StrCat("type-", static_cast<uint16_t>(type));
  }
  std::string result;
  for (size_t i = 1; i < name.size(); ++i) {
    if (i > 1 && absl::ascii_isupper(name[i])) result += '-';
    result += absl::ascii_tolower(name[i]);
  }
  return result;
}

}  // namespace heddle::trace
