// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/kernel_analysis_entry.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/access/code_image.h"
#include "runtime/access/kernel_analysis.h"
#include "runtime/access/launch_access.h"

namespace heddle::access {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "kernel analysis: %s\n", what);
  std::abort();
}

bool Sorted(const ExtentSet& set) {
  uint64_t end = 0;
  for (const Extent& extent : set.extents()) {
    if (extent.size == 0 || extent.end() < extent.address ||
        (end != 0 && extent.address <= end)) {
      return false;
    }
    end = extent.end();
  }
  return true;
}

void CheckFootprint(const KernelFootprint& kernel, const LaunchValues& launch,
                    size_t text) {
  for (const Footprint& part : kernel.footprints) {
    Require(part.offset < text, "a footprint lies outside of the code");
    Require(part.pointer < static_cast<int>(launch.pointers.size()),
            "a footprint is of a pointer that there is not");
    if (!part.bounded) continue;
    Require(part.lo <= part.hi, "bounds are the wrong way round");
    for (const AddressTerm& term : part.terms) {
      Require(term.lo <= term.hi, "a term has its bounds the wrong way round");
    }
  }
}

}  // namespace

void FuzzKernelAnalysis(absl::Span<const uint8_t> bytes) {
  if (bytes.size() >= 4 && std::memcmp(bytes.data(),
                                       "\x7f"
                                       "ELF",
                                       4) == 0) {
    const auto image =
        CodeImage::Create(std::vector<uint8_t>(bytes.begin(), bytes.end()));
    Require(!image.ok() || *image != nullptr, "an image that is none");
    return;
  }
  if (bytes.size() < kAnalysisHeader) return;
  constexpr std::array<uint32_t, 4> kChips = {80, 86, 89, 90};
  KernelCodeView code;
  code.arch = kChips[bytes[0] % kChips.size()];
  code.text = bytes.subspan(kAnalysisHeader);
  LaunchValues launch;
  std::array<uint16_t, 6> sizes;
  std::memcpy(sizes.data(), bytes.data() + 2, sizeof(sizes));
  for (size_t axis = 0; axis < 3; ++axis) {
    launch.grid[axis] = std::max<uint32_t>(1, sizes[axis]);
    launch.block[axis] = std::max<uint32_t>(1, sizes[3 + axis] % 1025);
  }
  launch.param_base = code.arch >= 90 ? 0x210 : 0x160;
  launch.params = bytes.subspan(2 + sizeof(sizes), 64);
  for (uint32_t i = 0; i < 8; ++i) {
    if ((bytes[1] >> i & 1) != 0) launch.pointers.push_back(8 * i);
  }
  const KernelFootprint kernel = AnalyzeKernel(code, launch);
  CheckFootprint(kernel, launch, code.text.size());

  MemoryView memory;
  memory.allocation = [](uint64_t address) -> std::optional<Extent> {
    if (address % 3 == 0) return std::nullopt;
    return Extent{address - std::min<uint64_t>(address, 4096), 1 << 20};
  };
  memory.tensor_map =
      [](absl::Span<const uint8_t> map) -> std::optional<ExtentSet> {
    if (map[0] % 2 == 0) return std::nullopt;
    return ExtentSet({Extent{0x1000, 64}});
  };
  const AccessSet set = AccessOfLaunch(kernel, launch, memory);
  Require(Sorted(set.Reads()) && Sorted(set.Writes()), "a set is no set");
}

}  // namespace heddle::access
