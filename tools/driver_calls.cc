// SPDX-License-Identifier: Apache-2.0
#include "tools/driver_calls.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace heddle::tools {
namespace {

// Neither a question nor a wait by name.
constexpr const char* kHarmless[] = {
    "cuInit",
    // Which context is current is asked of the driver when work is recorded.
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxSetFlags",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuDeviceCanAccessPeer",
    "cuDeviceComputeCapability",
    "cuProfilerInitialize",
    "cuProfilerStart",
    "cuProfilerStop",
};

// A question by name that hands out something to work with behind heddle's
// back: shared memory, graphics buffers. (cuGetExportTable does so too, but
// every CUDA runtime calls it.)
constexpr const char* kNotHarmless[] = {
    "cuIpc",
    "cuGraphics",
    "cuMemGetHandle",
    "cuMemPoolGetAccess",
};

// "cuMemGetInfo_v2" -> "cuMemGetInfo".
std::string Base(const std::string& symbol) {
  std::string base = symbol;
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    base = std::string(absl::StripSuffix(base, suffix));
  }
  const size_t at = base.rfind("_v");
  if (at != std::string::npos && at + 2 < base.size() &&
      std::all_of(base.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                  base.end(),
                  [](unsigned char c) { return std::isdigit(c); })) {
    base.resize(at);
  }
  return base;
}

// The words of "cuStreamGetCaptureInfo": Stream, Get, Capture, Info.
std::vector<std::string> Words(const std::string& base) {
  std::vector<std::string> words;
  for (size_t i = 2; i < base.size(); ++i) {
    if (words.empty() || std::isupper(static_cast<unsigned char>(base[i]))) {
      words.emplace_back();
    }
    words.back() += base[i];
  }
  return words;
}

}  // namespace

bool IsHarmlessDriverCall(const std::string& symbol) {
  const std::string base = Base(symbol);
  for (const char* prefix : kNotHarmless) {
    if (absl::StartsWith(base, prefix)) return false;
  }
  if (std::find(std::begin(kHarmless), std::end(kHarmless), base) !=
      std::end(kHarmless)) {
    return true;
  }
  for (const std::string& word : Words(base)) {
    if (word == "Get" || word == "Query" || word == "Occupancy") return true;
  }
  return false;
}

}  // namespace heddle::tools
