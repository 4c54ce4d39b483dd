// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor_report.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heddle::tools {
namespace {

constexpr int kSchema = 1;

DoctorSymbol ParseSymbol(const nlohmann::json& json) {
  DoctorSymbol symbol;
  symbol.name = json.value("name", "");
  symbol.calls = json.value("calls", uint64_t{0});
  symbol.hooked = json.value("hooked", false);
  const nlohmann::json routes = json.value("routes", nlohmann::json::object());
  symbol.elf = routes.value("elf", uint64_t{0});
  symbol.dlsym = routes.value("dlsym", uint64_t{0});
  symbol.proc_address = routes.value("proc_address", uint64_t{0});
  symbol.injection = routes.value("injection", uint64_t{0});
  return symbol;
}

}  // namespace

absl::StatusOr<DoctorReport> ParseDoctorReport(const std::string& json) {
  // nlohmann's accessors throw on a wrong type, and only they do here.
  try {
    const nlohmann::json root = nlohmann::json::parse(json);
    if (root.value("schema", 0) > kSchema) {
      return absl::InvalidArgumentError(
          absl::StrCat("the report has schema ", root.value("schema", 0),
                       ", newer than this heddle"));
    }
    DoctorReport report;
    report.pid = root.value("pid", int64_t{0});
    report.exe = root.value("exe", "");
    report.driver = root.value("driver", "");
    for (const nlohmann::json& symbol :
         root.value("symbols", nlohmann::json::array())) {
      report.symbols.push_back(ParseSymbol(symbol));
    }
    return report;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a doctor report: ", error.what()));
  }
}

absl::StatusOr<DoctorReport> ReadDoctorReport(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  absl::StatusOr<DoctorReport> report = ParseDoctorReport(text);
  if (!report.ok()) {
    return absl::Status(report.status().code(),
                        absl::StrCat(path, ": ", report.status().message()));
  }
  return report;
}

}  // namespace heddle::tools
