// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/command.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_report.h"
#include "tools/driver_calls.h"
#include "tools/run_program.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

// A folder for the reports of the program's processes, removed with the object.
class ReportFolder {
 public:
  static absl::StatusOr<std::string> Make() {
    std::error_code error;
    std::string path =
        (fs::temp_directory_path(error) / "heddle-doctor-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot make a folder ", path,
                                                 "; set TMPDIR to one that is "
                                                 "writable"));
    }
    return path;
  }
  explicit ReportFolder(std::string path) : path_(std::move(path)) {}
  ~ReportFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  // The value of HEDDLE_DOCTOR.
  std::string Pattern() const { return path_ + "/%p.json"; }

  // In the order of process ids.
  std::vector<DoctorReport> Read(std::vector<Finding>* findings) const {
    std::vector<DoctorReport> reports;
    std::error_code error;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(path_, error)) {
      if (entry.path().extension() != ".json") continue;
      absl::StatusOr<DoctorReport> report = ReadDoctorReport(entry.path());
      if (report.ok()) {
        reports.push_back(*std::move(report));
      } else {
        findings->push_back({Severity::kWarning,
                             std::string(report.status().message()),
                             "run heddle of one version throughout"});
      }
    }
    std::sort(reports.begin(), reports.end(),
              [](const DoctorReport& a, const DoctorReport& b) {
                return a.pid < b.pid;
              });
    return reports;
  }

 private:
  std::string path_;
};

EnvironmentChanges Changes(const std::string& library,
                           const std::string& preload,
                           const std::string& reports) {
  EnvironmentChanges changes = {{"LD_PRELOAD", preload},
                                {"HEDDLE_DOCTOR", reports},
                                {"HEDDLE_TRACE", std::nullopt},
                                {"HEDDLE_DISABLE", std::nullopt}};
  // Injection replaces only what preloading has missed, so what comes by it
  // shows what is missed.
  if (!FromEnvironment("CUDA_INJECTION64_PATH").has_value()) {
    changes["CUDA_INJECTION64_PATH"] = library;
  }
  return changes;
}

bool IsUnknown(const DoctorSymbol& symbol) {
  return symbol.calls > 0 && !symbol.hooked &&
         !IsHarmlessDriverCall(symbol.name);
}

void CheckReport(const DoctorReport& report, std::vector<Finding>* findings) {
  std::vector<std::string> unknown;
  std::vector<std::string> missed;
  for (const DoctorSymbol& symbol : report.symbols) {
    if (IsUnknown(symbol)) unknown.push_back(symbol.name);
    if (symbol.injection > 0) missed.push_back(symbol.name);
  }
  const std::string process =
      absl::StrCat(report.exe, " (process ", report.pid, ")");
  if (!unknown.empty()) {
    findings->push_back(
        {Severity::kWarning,
         absl::StrCat(process,
                      " made driver calls that heddle does not "
                      "understand: ",
                      absl::StrJoin(unknown, ", ")),
         "a recording may lack what they do; replay with --verify shows "
         "whether it matters"});
  }
  if (!missed.empty()) {
    findings->push_back(
        {Severity::kWarning,
         absl::StrCat(process, ": preloading does not reach ",
                      absl::StrJoin(missed, ", "),
                      " everywhere (RTLD_DEEPBIND, or addresses that were "
                      "looked up behind it)"),
         "record with --inject, or set CUDA_INJECTION64_PATH to "
         "libheddle_preload.so"});
  }
}

std::vector<Finding> StaticFindings(const std::vector<std::string>& command,
                                    const std::string& library) {
  std::vector<Finding> findings;
  const absl::StatusOr<std::string> executable =
      FindExecutable(command[0], FromEnvironment);
  if (executable.ok()) {
    findings = CheckExecutable(*executable);
  } else {
    findings.push_back(
        {Severity::kWarning, std::string(executable.status().message()), ""});
  }
  for (const std::vector<Finding>& more :
       {CheckEnvironment(FromEnvironment, library, "/etc/ld.so.preload"),
        CheckDriver()}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

nlohmann::json ToJson(const DoctorReport& report) {
  nlohmann::json symbols = nlohmann::json::array();
  for (const DoctorSymbol& symbol : report.symbols) {
    symbols.push_back({{"name", symbol.name},
                       {"calls", symbol.calls},
                       {"hooked", symbol.hooked},
                       {"understood", !IsUnknown(symbol)},
                       {"routes",
                        {{"elf", symbol.elf},
                         {"dlsym", symbol.dlsym},
                         {"proc_address", symbol.proc_address},
                         {"injection", symbol.injection}}}});
  }
  return {{"pid", report.pid},
          {"exe", report.exe},
          {"driver", report.driver},
          {"symbols", symbols}};
}

void PrintJson(const std::vector<std::string>& command, int exit_status,
               const std::vector<Finding>& findings,
               const std::vector<DoctorReport>& reports) {
  nlohmann::json json = {{"schema", 1},
                         {"command", command},
                         {"exit_status", exit_status},
                         {"findings", nlohmann::json::array()},
                         {"processes", nlohmann::json::array()}};
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"severity", SeverityName(finding.severity)},
                                {"what", finding.what},
                                {"advice", finding.advice}});
  }
  for (const DoctorReport& report : reports) {
    json["processes"].push_back(ToJson(report));
  }
  std::printf("%s\n",
              json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

void PrintProcess(const DoctorReport& report) {
  uint64_t calls = 0;
  uint64_t elf = 0;
  uint64_t dlsym = 0;
  uint64_t proc_address = 0;
  uint64_t injection = 0;
  size_t called = 0;
  size_t understood = 0;
  for (const DoctorSymbol& symbol : report.symbols) {
    calls += symbol.calls;
    elf += symbol.elf;
    dlsym += symbol.dlsym;
    proc_address += symbol.proc_address;
    injection += symbol.injection;
    called += symbol.calls > 0 ? 1 : 0;
    understood += symbol.calls > 0 && !IsUnknown(symbol) ? 1 : 0;
  }
  std::printf("process %lld: %s\n", static_cast<long long>(report.pid),
              report.exe.c_str());
  std::printf("  driver    %s\n", report.driver.empty()
                                      ? "none was loaded"
                                      : report.driver.c_str());
  std::printf("  calls     %llu, of %zu functions; heddle understands %zu\n",
              static_cast<unsigned long long>(calls), called, understood);
  std::printf(
      "  routes    %llu linked, %llu by dlsym, %llu by cuGetProcAddress, %llu "
      "by injection\n",
      static_cast<unsigned long long>(elf),
      static_cast<unsigned long long>(dlsym),
      static_cast<unsigned long long>(proc_address),
      static_cast<unsigned long long>(injection));
  for (const DoctorSymbol& symbol : report.symbols) {
    if (!IsUnknown(symbol)) continue;
    std::printf("  unknown   %s, %llu calls\n", symbol.name.c_str(),
                static_cast<unsigned long long>(symbol.calls));
  }
}

void PrintText(const std::vector<Finding>& findings,
               const std::vector<DoctorReport>& reports) {
  for (const DoctorReport& report : reports) PrintProcess(report);
  for (const Finding& finding : findings) {
    std::printf("%s: %s\n", SeverityName(finding.severity),
                finding.what.c_str());
    if (!finding.advice.empty()) std::printf("  %s\n", finding.advice.c_str());
  }
  const bool well =
      !reports.empty() &&
      std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.severity == Severity::kInfo;
      });
  if (well) std::printf("heddle sees and understands this program.\n");
}

absl::StatusOr<int> Run(Invocation& call) {
  bool json = false;
  call.flags().Bool("json", &json, "print JSON instead of text");
  if (std::optional<int> exit = call.Parse({.rest = true})) return *exit;
  const std::vector<std::string>& command = call.rest();
  absl::StatusOr<std::string> library = FindPreloadLibrary();
  if (!library.ok()) return library.status();
  absl::StatusOr<std::string> preload = PrependPreload(*library);
  if (!preload.ok()) return preload.status();
  absl::StatusOr<std::string> made = ReportFolder::Make();
  if (!made.ok()) return made.status();
  const ReportFolder folder(*std::move(made));

  std::vector<Finding> findings = StaticFindings(command, *library);
  std::fflush(stdout);
  absl::StatusOr<int> exit_status =
      RunProgram(command, Changes(*library, *preload, folder.Pattern()));
  if (!exit_status.ok()) return exit_status.status();

  const std::vector<DoctorReport> reports = folder.Read(&findings);
  for (const DoctorReport& report : reports) CheckReport(report, &findings);
  if (reports.empty()) {
    findings.push_back(
        {Severity::kError,
         *exit_status > 128
             ? "the program was ended by a signal before it could report"
             : "no driver call of the program reached heddle",
         "if the program uses CUDA, one of the findings above is why, or it "
         "ends by _exit() or a signal"});
  }
  if (json) {
    PrintJson(command, *exit_status, findings, reports);
  } else {
    PrintText(findings, reports);
  }
  return *exit_status;
}

}  // namespace

const Command& DoctorCommand() {
  static constexpr Command kCommand = {
      .name = "doctor",
      .synopsis = "run a program and say whether heddle sees its driver calls",
      .arguments = "[flags] -- PROGRAM [ARGUMENTS]",
      .help =
          "Says by which routes the program reaches the CUDA driver, which of "
          "its calls heddle\ndoes not understand, and what stands in the way: "
          "a static program, a run path with a\ndriver of its own, another "
          "tool. Nothing is recorded. The exit status is the\nprogram's, 128 + "
          "n if signal n ended it.\n",
      .run = &Run};
  return kCommand;
}

}  // namespace heddle::tools
