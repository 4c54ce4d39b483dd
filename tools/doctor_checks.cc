// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor_checks.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/elf_facts.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kPreloadName[] = "libheddle_preload.so";

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

absl::StatusOr<std::string> FindInPath(const std::string& name,
                                       const Getenv& getenv) {
  if (absl::StrContains(name, "/")) {
    if (IsFile(name)) return name;
    return absl::NotFoundError(absl::StrCat("no file ", name));
  }
  const std::string path = getenv("PATH").value_or("/usr/bin:/bin");
  for (const std::string& folder :
       std::vector<std::string>(absl::StrSplit(path, ':'))) {
    const std::string candidate =
        absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsFile(candidate) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return absl::NotFoundError(absl::StrCat("no ", name, " in PATH"));
}

// The program of a script's first line; "" if the file is no script.
std::string Interpreter(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line(256, '\0');
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(in.gcount()));
  if (!absl::StartsWith(line, "#!")) return "";
  line = line.substr(2, line.find('\n') - 2);
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return "";
  if (!absl::EndsWith(words[0], "/env")) return words[0];
  // env's options and settings come before the program.
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] != '-' && !absl::StrContains(words[i], "=")) {
      return words[i];
    }
  }
  return words[0];
}

bool HasFileCapabilities(const std::string& path) {
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void CheckRights(const std::string& path, std::vector<Finding>* findings) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  const bool set_id = (status.st_mode & (S_ISUID | S_ISGID)) != 0;
  if (!set_id && !HasFileCapabilities(path)) return;
  findings->push_back(
      {Severity::kError,
       absl::StrCat(path,
                    set_id ? " is set-user-ID or set-group-ID"
                           : " has file capabilities",
                    ": the dynamic linker preloads nothing into it"),
       "run a copy of it without special rights"});
}

void CheckRunPath(const std::string& path, const char* tag,
                  const std::vector<std::string>& folders,
                  std::vector<Finding>* findings) {
  std::error_code error;
  const std::string origin =
      fs::weakly_canonical(path, error).parent_path().string();
  for (const std::string& written : folders) {
    const std::string folder = absl::StrReplaceAll(
        written, {{"$ORIGIN", origin}, {"${ORIGIN}", origin}});
    const std::string driver = absl::StrCat(folder, "/libcuda.so.1");
    if (!IsFile(driver)) continue;
    const bool stub = absl::StrContains(driver, "/stubs");
    findings->push_back(
        {stub ? Severity::kError : Severity::kWarning,
         absl::StrCat(path, ": its ", tag, " ", written,
                      stub ? " leads to the toolkit's stub driver, "
                           : " leads to a CUDA driver of its own, ",
                      driver),
         stub ? "remove the folder from the run path (patchelf --set-rpath)"
              : "make sure that this is the driver you mean; if heddle sees no "
                "calls, set CUDA_INJECTION64_PATH (heddle record --inject)"});
  }
}

void CheckOtherTool(const std::string& library, const std::string& where,
                    std::vector<Finding>* findings) {
  if (fs::path(library).filename() == kPreloadName) return;
  const absl::StatusOr<ElfFacts> facts = ReadElfFacts(library);
  if (facts.ok() && !facts->defined.empty()) {
    findings->push_back(
        {Severity::kWarning,
         absl::StrCat(where, ": ", library, " stands in for ",
                      absl::StrJoin(facts->defined, ", "),
                      ": another tool between the program and the driver"),
         "run the program without it, or expect that one of the two misses "
         "calls"});
  } else {
    findings->push_back({Severity::kInfo,
                         absl::StrCat(where, ": ", library,
                                      " is loaded too; it defines no driver "
                                      "function"),
                         ""});
  }
}

void CheckInjection(const char* variable,
                    const std::optional<std::string>& value,
                    const char* consequence, std::vector<Finding>* findings) {
  if (!value.has_value() || value->empty() ||
      fs::path(*value).filename() == kPreloadName) {
    return;
  }
  findings->push_back(
      {Severity::kWarning,
       absl::StrCat(variable, " is set to another tool, ", *value, ": ",
                    consequence),
       absl::StrCat("unset ", variable, " while using heddle")});
}

}  // namespace

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "?";
}

absl::StatusOr<std::string> FindExecutable(const std::string& command,
                                           const Getenv& getenv) {
  std::string name = command;
  // The kernel follows four interpreters that are scripts, and so do we.
  for (int depth = 0; depth <= 5; ++depth) {
    absl::StatusOr<std::string> path = FindInPath(name, getenv);
    if (!path.ok()) return path.status();
    if (access(path->c_str(), R_OK) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat("cannot read ", *path, "; its type is unknown"));
    }
    name = Interpreter(*path);
    if (name.empty()) return path;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(command, ": scripts that interpret each other"));
}

std::vector<Finding> CheckExecutable(const std::string& path) {
  std::vector<Finding> findings;
  const absl::StatusOr<ElfFacts> facts = ReadElfFacts(path);
  if (!facts.ok()) {
    findings.push_back({Severity::kWarning,
                        std::string(facts.status().message()),
                        "give the program itself, not a file that it reads"});
    return findings;
  }
  CheckRights(path, &findings);
  if (!facts->is_this_machine) {
    findings.push_back({Severity::kError,
                        absl::StrCat(path, " is for another kind of machine"),
                        "heddle works with 64-bit programs of this machine"});
    return findings;
  }
  if (!facts->has_interpreter) {
    findings.push_back(
        {Severity::kError,
         absl::StrCat(path,
                      " is linked statically: it has no dynamic linker that "
                      "could preload anything"),
         "link it dynamically (cudart itself may stay static)"});
  }
  std::vector<std::string> functions = facts->defined;
  functions.erase(std::remove(functions.begin(), functions.end(), "dlsym"),
                  functions.end());
  if (!functions.empty()) {
    findings.push_back({Severity::kError,
                        absl::StrCat(path, " has driver functions in itself (",
                                     absl::StrJoin(functions, ", "),
                                     "): its calls do not leave the program"),
                        "link it with libcuda.so"});
  }
  CheckRunPath(path, "DT_RPATH", facts->rpath, &findings);
  CheckRunPath(path, "DT_RUNPATH", facts->runpath, &findings);
  return findings;
}

std::vector<Finding> CheckEnvironment(const Getenv& getenv,
                                      const std::string& own_library,
                                      const std::string& preload_file) {
  std::vector<Finding> findings;
  const std::string preload = getenv("LD_PRELOAD").value_or("");
  for (const std::string& library : std::vector<std::string>(
           absl::StrSplit(preload, absl::ByAnyChar(": "), absl::SkipEmpty()))) {
    if (library == own_library) continue;
    CheckOtherTool(library, "LD_PRELOAD", &findings);
  }
  std::ifstream in(preload_file);
  for (std::string library; in >> library;) {
    CheckOtherTool(library, preload_file, &findings);
  }
  CheckInjection("CUDA_INJECTION64_PATH", getenv("CUDA_INJECTION64_PATH"),
                 "it sees the program's calls first, and heddle cannot be "
                 "injected",
                 &findings);
  CheckInjection("NVTX_INJECTION64_PATH", getenv("NVTX_INJECTION64_PATH"),
                 "it gets the NVTX ranges, and heddle sees none", &findings);
  if (getenv("HEDDLE_DISABLE").value_or("") == "1") {
    findings.push_back({Severity::kWarning, "HEDDLE_DISABLE=1 turns heddle off",
                        "unset HEDDLE_DISABLE"});
  }
  return findings;
}

std::vector<Finding> CheckDriver() {
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) return {};
  const char* error = dlerror();
  return {{Severity::kError,
           absl::StrCat("no CUDA driver: ",
                        error == nullptr ? "libcuda.so.1" : error),
           "install the NVIDIA driver; without a GPU, put the host device's "
           "libcuda.so.1 into LD_LIBRARY_PATH"}};
}

}  // namespace heddle::tools
