// SPDX-License-Identifier: Apache-2.0
#include "tools/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/install_paths.h"

namespace heddle::tools {
namespace {

constexpr char kPreloadName[] = "libheddle_preload.so";
constexpr std::array<int, 7> kForwarded = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                           SIGUSR1, SIGUSR2, SIGCONT};

// The program that signals are passed on to. Only ever set and read by signal
// handlers and the one thread that runs RunProgram.
volatile pid_t g_child = 0;

void Forward(int signal, siginfo_t* info, void*) {
  // What the terminal sends goes to its whole foreground group.
  if (info->si_code == SI_KERNEL || g_child <= 0) return;
  const int saved = errno;
  kill(g_child, signal);
  errno = saved;
}

// Passes signals on for as long as it lives.
class SignalForwarding {
 public:
  SignalForwarding() {
    struct sigaction action {};
    action.sa_sigaction = &Forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], nullptr, &saved_[i]);
      // What was ignored (nohup) stays ignored, in the program as well.
      if (saved_[i].sa_handler == SIG_IGN) continue;
      sigaction(kForwarded[i], &action, nullptr);
    }
  }
  ~SignalForwarding() { Restore(); }
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

  // Async-signal-safe: also called between fork and exec.
  void Restore() {
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      sigaction(kForwarded[i], &saved_[i], nullptr);
    }
  }

 private:
  std::array<struct sigaction, kForwarded.size()> saved_{};
};

std::vector<std::string> Environment(const EnvironmentChanges& changes) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (changes.count(text.substr(0, text.find('='))) == 0) {
      environment.push_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    if (value.has_value()) {
      environment.push_back(absl::StrCat(name, "=", *value));
    }
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  pointers.reserve(words->size() + 1);
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status StartError(const std::string& program, int error) {
  return absl::NotFoundError(
      absl::StrCat("cannot run ", program, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> FindPreloadLibrary() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::NotFoundError(absl::StrCat(
        "cannot find out where heddle is installed: /proc/self/exe: ",
        error.message()));
  }
  const fs::path root = self.parent_path().parent_path();
  std::vector<std::string> tried;
  for (const char* folder : {"lib/heddle", kInstallLibraryFolder, "lib"}) {
    const fs::path candidate = root / folder / kPreloadName;
    if (fs::exists(candidate, error)) return candidate.string();
    tried.push_back(candidate.string());
  }
  return absl::NotFoundError(
      absl::StrCat("cannot find ", kPreloadName, ", looked for ",
                   absl::StrJoin(tried, ", "), "; build or install all of it"));
}

absl::StatusOr<std::string> PrependPreload(const std::string& library) {
  if (library.find_first_of(" :") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LD_PRELOAD cannot hold a path with a blank or a colon: ", library,
        "; install heddle elsewhere"));
  }
  const char* present = std::getenv("LD_PRELOAD");
  if (present == nullptr || present[0] == '\0') return library;
  return absl::StrCat(library, ":", present);
}

absl::StatusOr<int> RunProgram(const std::vector<std::string>& command,
                               const EnvironmentChanges& changes) {
  std::vector<std::string> words = command;
  std::vector<std::string> environment = Environment(changes);
  const std::vector<char*> argv = Pointers(&words);
  const std::vector<char*> envp = Pointers(&environment);
  // Closed by a successful exec; else it carries the reason.
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) {
    return StartError(command[0], errno);
  }
  SignalForwarding forwarding;
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(report[0]);
    close(report[1]);
    return StartError(command[0], error);
  }
  if (child == 0) {
    forwarding.Restore();
    execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    (void)!write(report[1], &error, sizeof(error));
    _exit(127);
  }
  g_child = child;
  close(report[1]);
  int start_error = 0;
  ssize_t got = 0;
  do {
    got = read(report[0], &start_error, sizeof(start_error));
  } while (got < 0 && errno == EINTR);
  close(report[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    g_child = 0;
    return absl::InternalError(
        absl::StrCat("waiting for ", command[0], ": ", std::strerror(errno)));
  }
  g_child = 0;
  if (got == sizeof(start_error)) return StartError(command[0], start_error);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace heddle::tools
