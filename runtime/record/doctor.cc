// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/doctor.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::record {
namespace {

std::string OwnExecutable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<size_t>(length));
}

// The file of the driver's cuInit.
std::string DriverFile(const HeddleInterposer& interposer) {
  Dl_info info;
  void* init = interposer.real("cuInit");
  if (init == nullptr || dladdr(init, &info) == 0) return "";
  return info.dli_fname == nullptr ? "" : info.dli_fname;
}

nlohmann::json UsedSymbols(
    const HeddleInterposer& interposer,
    const std::function<bool(const char* symbol)>& is_hooked) {
  static constexpr const char* kRouteNames[HEDDLE_ROUTE_COUNT] = {
      "elf", "dlsym", "proc_address", "injection"};
  nlohmann::json symbols = nlohmann::json::array();
  for (uint32_t i = 0; i < interposer.symbol_count; ++i) {
    const uint64_t calls = interposer.calls(i);
    bool used = calls > 0;
    nlohmann::json routes;
    for (int route = 0; route < HEDDLE_ROUTE_COUNT; ++route) {
      const uint64_t count = interposer.route_calls(i, route);
      routes[kRouteNames[route]] = count;
      used |= count > 0;
    }
    if (!used) continue;
    symbols.push_back({{"name", interposer.symbols[i]},
                       {"calls", calls},
                       {"hooked", is_hooked(interposer.symbols[i])},
                       {"routes", routes}});
  }
  return symbols;
}

}  // namespace

absl::Status WriteDoctorReport(
    const HeddleInterposer& interposer, const std::string& path,
    const std::function<bool(const char* symbol)>& is_hooked) {
  const nlohmann::json report = {
      {"schema", 1},
      {"pid", static_cast<int64_t>(getpid())},
      {"exe", OwnExecutable()},
      {"driver", DriverFile(interposer)},
      {"symbols", UsedSymbols(interposer, is_hooked)}};
  const std::string partial = absl::StrCat(path, ".partial");
  std::ofstream out(partial, std::ios::trunc);
  // Paths need not be UTF-8: what is not is replaced.
  out << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
      << '\n';
  out.close();
  if (!out) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", partial,
                     "; check that its folder exists and is "
                     "writable"));
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot rename ", partial, " to ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace heddle::record
