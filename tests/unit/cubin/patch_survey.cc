// SPDX-License-Identifier: Apache-2.0
// Patches every cubin for one chip in the libraries given, with every prologue
// and with and without a hidden parameter, and checks each result. Prints one
// JSON object; for benchmarks/suite/check_patch.py.
//
// usage: patch_survey ARCH STRIDE LIBRARY...
// ARCH: compute capability x 10. STRIDE: every how-many-th cubin is taken.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/cubin/library_images.h"
#include "tests/unit/cubin/patch_checker.h"

namespace heddle::cubin {
namespace {

struct Survey {
  uint64_t cubins = 0;
  uint64_t bytes = 0;
  uint64_t checked = 0;
  uint64_t patched = 0;
  uint64_t failed = 0;  // the checker found something
  double patch_seconds = 0;
  double largest_seconds = 0;
  uint64_t largest_bytes = 0;
  std::map<std::string, uint64_t> reasons;
  std::map<std::string, uint64_t> failures;
};

void Add(absl::Span<const uint8_t> cubin, const PatchOptions& options,
         Survey* survey) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<PatchedImage> patched = PatchCubin(cubin, options);
  const double seconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  survey->patch_seconds += seconds;
  survey->bytes += cubin.size();
  if (cubin.size() > survey->largest_bytes) {
    survey->largest_bytes = cubin.size();
    survey->largest_seconds = seconds;
  }
  if (!patched.ok()) {
    ++survey->failures[patched.status().ToString()];
    ++survey->failed;
    return;
  }
  for (const KernelPatch& kernel : patched->kernels) {
    ++survey->checked;
    if (kernel.patched) {
      ++survey->patched;
    } else {
      ++survey->reasons[kernel.reason];
    }
  }
  for (const std::string& error : CheckPatch(cubin, *patched, options)) {
    ++survey->failed;
    ++survey->failures[error];
  }
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c < ' ' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string Counts(const std::map<std::string, uint64_t>& counts) {
  std::string out = "{";
  size_t printed = 0;
  for (const auto& [text, count] : counts) {
    if (printed++ == 100) break;
    if (out.size() > 1) out += ", ";
    out += Quoted(text) + ": " + std::to_string(count);
  }
  return out + "}";
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s ARCH STRIDE LIBRARY...\n", argv[0]);
    return 2;
  }
  const auto arch = static_cast<uint32_t>(std::atoi(argv[1]));
  const int stride = std::max(1, std::atoi(argv[2]));
  std::vector<PatchOptions> variants;
  for (const Prologue prologue :
       {Prologue::kNone, Prologue::kWait, Prologue::kTriggerWait,
        Prologue::kWaitTrigger}) {
    for (const uint32_t hidden : {0U, 8U, 64U}) {
      variants.push_back({prologue, hidden});
    }
  }
  Survey survey;
  for (int i = 3; i < argc; ++i) {
    const int images = ForEachLibraryCubin(
        argv[i], arch, [&](const std::vector<uint8_t>& cubin) {
          if (survey.cubins++ % static_cast<uint64_t>(stride) != 0) return true;
          for (const PatchOptions& options : variants) {
            Add(cubin, options, &survey);
          }
          return true;
        });
    if (images < 0) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
  }
  std::printf(
      "{\"arch\": %u, \"stride\": %d, \"cubins\": %llu, "
      "\"variants\": %zu, \"checked_kernels\": %llu, \"patched_kernels\": "
      "%llu, \"failed_kernels\": %llu, \"patch_seconds\": %.3f, "
      "\"patched_bytes\": %llu, \"largest_cubin_bytes\": %llu, "
      "\"largest_cubin_seconds\": %.4f,\n \"reasons\": %s,\n \"failures\": "
      "%s}\n",
      arch, stride, static_cast<unsigned long long>(survey.cubins),
      variants.size(), static_cast<unsigned long long>(survey.checked),
      static_cast<unsigned long long>(survey.patched),
      static_cast<unsigned long long>(survey.failed), survey.patch_seconds,
      static_cast<unsigned long long>(survey.bytes),
      static_cast<unsigned long long>(survey.largest_bytes),
      survey.largest_seconds, Counts(survey.reasons).c_str(),
      Counts(survey.failures).c_str());
  return survey.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::cubin

int main(int argc, char** argv) { return heddle::cubin::Main(argc, argv); }
