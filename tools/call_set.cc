// SPDX-License-Identifier: Apache-2.0
#include "tools/call_set.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::tools {
namespace {

// Digits alone: SimpleAtoi would take a sign and blanks, too.
bool ParseNumber(absl::string_view text, uint64_t* number) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  }) && absl::SimpleAtoi(text, number);
}

}  // namespace

absl::StatusOr<CallSet::Item> CallSet::ParseItem(const std::string& text) {
  const auto bad = [&text](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("call set: \"", text, "\": ", why));
  };
  Item item;
  absl::string_view rest = text;
  item.steps = absl::ConsumePrefix(&rest, "step");
  const std::vector<absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  const bool has_stride = parts.size() == 2;
  if (has_stride &&
      (!ParseNumber(parts[1], &item.range.stride) || item.range.stride == 0)) {
    return bad("after / goes a number, 1 or more");
  }
  if (parts[0] == "*") return item;
  const std::vector<absl::string_view> ends =
      absl::StrSplit(parts[0], absl::MaxSplits('-', 1));
  if (!ParseNumber(ends[0], &item.range.first)) {
    return bad("expected 7, 100-120, 200-, */100, step3 or the like");
  }
  if (ends.size() == 1) {
    if (!has_stride) item.range.last = item.range.first;
  } else if (!ends[1].empty()) {
    if (!ParseNumber(ends[1], &item.range.last)) {
      return bad("after - goes a number or nothing");
    }
    if (item.range.last < item.range.first) {
      return bad("the range ends before it begins");
    }
  }
  return item;
}

absl::StatusOr<CallSet> CallSet::Parse(const std::string& text,
                                       const FindStepsFn& find_steps) {
  CallSet set;
  std::optional<trace::StepList> steps;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<Item> item =
        ParseItem(std::string(absl::StripAsciiWhitespace(part)));
    if (!item.ok()) return item.status();
    if (!item->steps) {
      set.Add(item->range);
      continue;
    }
    if (!steps.has_value()) {
      absl::StatusOr<trace::StepList> found = find_steps();
      if (!found.ok()) return found.status();
      steps = *std::move(found);
    }
    const uint64_t count = steps->steps.size();
    if (count == 0) {
      return absl::OutOfRangeError(absl::StrCat(
          "call set: \"", part, "\": no steps were found in the trace"));
    }
    const bool open = item->range.last == kEnd;
    if (item->range.first >= count || (!open && item->range.last >= count)) {
      return absl::OutOfRangeError(
          absl::StrCat("call set: \"", part, "\": the trace has ", count,
                       " steps, 0 to ", count - 1, " (see `heddle info`)"));
    }
    const uint64_t last = open ? count - 1 : item->range.last;
    for (uint64_t i = item->range.first; i <= last;
         i += std::min(item->range.stride, count)) {
      const trace::Step& step = steps->steps[i];
      if (step.end_record > step.first_record) {
        set.Add({step.first_record, step.end_record - 1, 1});
      }
    }
  }
  return set;
}

CallSet CallSet::All() {
  CallSet set;
  set.Add({});
  return set;
}

void CallSet::Add(const Range& range) {
  last_ = std::max(last_, range.last);
  // Neighbouring steps become one range, so that Contains stays quick.
  if (!ranges_.empty()) {
    Range& back = ranges_.back();
    if (back.stride == 1 && range.stride == 1 && back.last != kEnd &&
        back.last + 1 == range.first) {
      back.last = range.last;
      return;
    }
  }
  ranges_.push_back(range);
}

bool CallSet::Contains(uint64_t record) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [record](const Range& range) {
                       return record >= range.first && record <= range.last &&
                              (record - range.first) % range.stride == 0;
                     });
}

}  // namespace heddle::tools
