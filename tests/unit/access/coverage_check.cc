// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/access/coverage_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace heddle::access {
namespace {

using sass_machine::AccessMode;
using sass_machine::LoggedAccess;

bool Contains(const ExtentSet& set, uint64_t address, uint64_t bytes) {
  return ExtentSet({Extent{address, bytes}}).Minus(set).empty();
}

// The set of one instruction.
struct Prediction {
  AccessSet set;
  ExtentSet reads;
  ExtentSet writes;
  bool proved = false;
};

std::map<uint32_t, Prediction> Predict(const KernelFootprint& footprint,
                                       const LaunchValues& launch,
                                       const MemoryView& memory) {
  std::map<uint32_t, KernelFootprint> parts;
  for (const Footprint& part : footprint.footprints) {
    parts[part.offset].footprints.push_back(part);
  }
  std::map<uint32_t, Prediction> predictions;
  for (const auto& [offset, part] : parts) {
    Prediction prediction;
    prediction.set = AccessOfLaunch(part, launch, memory);
    prediction.reads = prediction.set.Reads();
    prediction.writes = prediction.set.Writes();
    prediction.proved =
        std::all_of(prediction.set.accesses.begin(),
                    prediction.set.accesses.end(), [](const Access& access) {
                      return access.provenance == Provenance::kProved;
                    });
    predictions[offset] = std::move(prediction);
  }
  return predictions;
}

}  // namespace

CoverageResult CheckCoverage(const KernelFootprint& footprint,
                             const LaunchValues& launch,
                             const MemoryView& memory,
                             const sass_machine::AccessLog& log) {
  CoverageResult result;
  if (!footprint.unknown.empty()) return result;
  const std::map<uint32_t, Prediction> predictions =
      Predict(footprint, launch, memory);
  std::set<std::tuple<uint32_t, uint64_t, uint32_t>> seen;
  for (const LoggedAccess& access : log) {
    if (!seen.insert({access.instruction, access.address, access.bytes})
             .second) {
      continue;
    }
    const auto complain = [&access](const char* what) {
      return absl::StrCat(
          what, " of ", access.bytes, " bytes at 0x", absl::Hex(access.address),
          " by the instruction at 0x", absl::Hex(access.instruction),
          ", thread ", access.thread[0], ",", access.thread[1], ",",
          access.thread[2], " of block ", access.block[0], ",", access.block[1],
          ",", access.block[2]);
    };
    const auto found = predictions.find(access.instruction);
    if (found == predictions.end()) {
      result.complaint = complain("an access where there should be none:");
      return result;
    }
    const Prediction& prediction = found->second;
    const bool reads = access.mode != AccessMode::kWrite;
    const bool writes = access.mode != AccessMode::kRead;
    const bool known = (!reads || prediction.set.reads_known()) &&
                       (!writes || prediction.set.writes_known());
    if (known) {
      ++result.checked;
      if (prediction.proved) ++result.proved;
    }
    if (reads && prediction.set.reads_known() &&
        !Contains(prediction.reads, access.address, access.bytes)) {
      result.complaint = complain("unforeseen read");
      return result;
    }
    if (writes && prediction.set.writes_known() &&
        !Contains(prediction.writes, access.address, access.bytes)) {
      result.complaint = complain("unforeseen write");
      return result;
    }
  }
  return result;
}

}  // namespace heddle::access
