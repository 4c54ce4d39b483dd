// SPDX-License-Identifier: Apache-2.0
#include "tools/retry_layout.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

constexpr const char* kVariable = "HEDDLE_REPLAY_ATTEMPT";
constexpr int kMaxAttempts = 8;

std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
}

}  // namespace

void RunAgainOnCollision(const absl::Status& status) {
  if (!absl::IsAborted(status)) return;
  int attempt = 0;
  if (const char* text = std::getenv(kVariable); text != nullptr) {
    if (!absl::SimpleAtoi(text, &attempt)) return;
  }
  if (++attempt >= kMaxAttempts) return;
  std::string words = CommandLine();
  std::vector<char*> arguments;
  for (size_t at = 0; at < words.size();) {
    arguments.push_back(words.data() + at);
    at = words.find('\0', at);
    if (at == std::string::npos) break;
    ++at;
  }
  if (arguments.empty()) return;
  arguments.push_back(nullptr);
  setenv(kVariable, absl::StrCat(attempt).c_str(), 1);
  execv("/proc/self/exe", arguments.data());
}

}  // namespace heddle::tools
