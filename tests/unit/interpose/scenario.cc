// SPDX-License-Identifier: Apache-2.0
// scenario NAME: one situation, checked inside the process; prints "ok".
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/interpose/probe.h"

namespace heddle::interpose_test {
namespace {

using Alloc = int (*)(Word*, Word);

int CallAlloc() {
  static const auto alloc = Find<Alloc>(DriverLibrary(), "cuMemAlloc_v2");
  Word pointer = 0;
  return alloc(&pointer, 256);
}

int IndexOf(const HeddleInterposer& interposer, const char* symbol) {
  for (uint32_t i = 0; i < interposer.symbol_count; ++i) {
    if (std::strcmp(interposer.symbols[i], symbol) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// A hook that answers by itself.
int AlwaysBusy(Word*, Word) { return 46; }

void HooksComeAndGo() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  REQUIRE(IndexOf(interposer, "cuMemAlloc_v2") == kIndex_cuMemAlloc_v2);
  REQUIRE(interposer.set_hook("cuMemAlloc_v2",
                              reinterpret_cast<void*>(&AlwaysBusy)) == 0);
  REQUIRE(CallAlloc() == 46);
  REQUIRE(DriverCalls(kIndex_cuMemAlloc_v2) == 1);
  REQUIRE(interposer.set_hook("cuMemAlloc_v2", nullptr) == 0);
  REQUIRE(CallAlloc() == 0);
  REQUIRE(DriverCalls(kIndex_cuMemAlloc_v2) == 2);
  REQUIRE(interposer.set_hook("cuMemAlloc", nullptr) == 0);
  REQUIRE(interposer.set_hook("cuMemAllo", nullptr) == -1);
  REQUIRE(interposer.set_hook("cudnnCreate", nullptr) == -1);
  REQUIRE(interposer.real("cuNoSuch") == nullptr);
  // Never a wrapper: its object is the driver.
  Dl_info info;
  REQUIRE(dladdr(interposer.real("cuMemAlloc_v2"), &info) != 0);
  REQUIRE(std::strstr(info.dli_fname, "libcuda.so") != nullptr);
}

void Disable() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  interposer.enable_counting(1);
  interposer.set_hook("cuMemAlloc_v2", reinterpret_cast<void*>(&AlwaysBusy));
  REQUIRE(CallAlloc() == 46);
  interposer.disable("the test says so");
  REQUIRE(CallAlloc() == 0);
  interposer.disable("and says it again");
  interposer.set_hook("cuMemAlloc_v2", reinterpret_cast<void*>(&AlwaysBusy));
  REQUIRE(CallAlloc() == 0);
  // Nothing is handed out any more.
  REQUIRE(dlsym(DriverLibrary(), "cuMemFree_v2") ==
          interposer.real("cuMemFree_v2"));
}

void Counting() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  const auto calls = [&] { return interposer.calls(kIndex_cuMemAlloc_v2); };
  REQUIRE(calls() == 0);
  interposer.enable_counting(1);
  for (int i = 0; i < 5; ++i) CallAlloc();
  REQUIRE(calls() == 5);
  interposer.set_hook("cuMemAlloc_v2", reinterpret_cast<void*>(&AlwaysBusy));
  REQUIRE(CallAlloc() == 46);
  REQUIRE(calls() == 6);
  interposer.set_hook("cuMemAlloc_v2", nullptr);
  interposer.enable_counting(0);
  for (int i = 0; i < 5; ++i) CallAlloc();
  REQUIRE(calls() == 6);
  REQUIRE(interposer.calls(kIndex_cuMemFree_v2) == 0);
  REQUIRE(interposer.calls(interposer.symbol_count) == 0);
}

void RouteCounts() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  const auto routes = [&](int index, int route) {
    return interposer.route_calls(static_cast<uint32_t>(index), route);
  };
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_DLSYM) == 1);
  dlsym(DriverLibrary(), "cuMemAlloc_v2");
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_DLSYM) == 2);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_PROC_ADDRESS) == 0);
  const auto get = Find<int (*)(const char*, void**, int, Word, int*)>(
      DriverLibrary(), "cuGetProcAddress_v2");
  void* pfn = nullptr;
  for (int i = 0; i < 3; ++i) get("cuMemAlloc", &pfn, 12000, 0, nullptr);
  get("cuMemAlloc", &pfn, 2000, 0, nullptr);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_PROC_ADDRESS) == 3);
  REQUIRE(routes(kIndex_cuMemAlloc, HEDDLE_ROUTE_PROC_ADDRESS) == 1);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_ELF) == 0);
  // An object with an import of its own, loaded later.
  void* plugin = dlopen("./libplugin.so", RTLD_NOW);
  REQUIRE(plugin != nullptr);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_ELF) == 1);
  REQUIRE(routes(kIndex_cuMemFree_v2, HEDDLE_ROUTE_ELF) == 0);
  dlclose(plugin);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_ELF) == 0);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, HEDDLE_ROUTE_COUNT) == 0);
  REQUIRE(routes(kIndex_cuMemAlloc_v2, -1) == 0);
}

// Eight threads make the first CUDA calls of the process at once, while the
// runtime takes its time to attach: no call may slip past the hooks.
void FirstCallRace() {
  std::vector<AnyFunction> functions;
  for (const char* symbol : kSymbols) {
    functions.push_back(Find<AnyFunction>(DriverLibrary(), symbol));
  }
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < 8) {
      }
      for (int i = 0; i < kSymbolCount; ++i) {
        functions[(i + t * 79) % kSymbolCount](0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kSymbolCount; ++i) {
    REQUIRE(HookCalls(i) == 8);
    REQUIRE(DriverCalls(i) == 8);
  }
}

// One thread sets and clears hooks, and turns counting on and off, under calls
// of others: each call ends in the driver or in the hook, never nowhere.
void HooksUnderFire() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  std::atomic<bool> stop{false};
  std::atomic<int> hooked{0};
  std::atomic<int> direct{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const int result = CallAlloc();
        REQUIRE(result == 0 || result == 46);
        ++(result == 46 ? hooked : direct);
      }
    });
  }
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
    interposer.set_hook("cuMemAlloc_v2", reinterpret_cast<void*>(&AlwaysBusy));
    interposer.enable_counting(1);
    interposer.set_hook("cuMemAlloc_v2", nullptr);
    interposer.enable_counting(0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(DriverCalls(kIndex_cuMemAlloc_v2) ==
          static_cast<Word>(direct.load()) + 1);
}

void Fork() {
  REQUIRE(CallAlloc() == 0);
  const HeddleInterposer& interposer = *Interposer();
  std::atomic<bool> stop{false};
  // Holds the interposer's lock most of the time.
  std::thread busy([&] {
    while (!stop) interposer.enable_counting(0);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(10);
      interposer.set_hook("cuMemAlloc_v2",
                          reinterpret_cast<void*>(&AlwaysBusy));
      _exit(CallAlloc() == 46 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(CallAlloc() == 0);
  }
  stop = true;
  busy.join();
}

void OldDriver() {
  void* driver = DriverLibrary();
  // Not there: dlsym says so, as without heddle.
  REQUIRE(dlsym(driver, "cuGraphAddNode_v2") == nullptr);
  REQUIRE(dlerror() != nullptr);
  REQUIRE(CallAlloc() == 0);
  REQUIRE(Interposer()->real("cuGraphAddNode_v2") == nullptr);
}

// The exported wrapper of a symbol that the driver lacks.
extern "C" int cuGraphAddNode_v2(Word, Word, Word, Word, Word, Word)
    __attribute__((weak));
void MissingSymbol() {
  REQUIRE(CallAlloc() == 0);
  REQUIRE(&cuGraphAddNode_v2 != nullptr);
  REQUIRE(cuGraphAddNode_v2(1, 2, 3, 4, 5, 6) == 500);
}

void NoDriverAtAll() { REQUIRE(cuGraphAddNode_v2(1, 2, 3, 4, 5, 6) == 500); }

void Float() {
  const auto set =
      Find<int (*)(void*, int, float)>(DriverLibrary(), "cuParamSetf");
  const auto last =
      Find<float (*)()>(DriverLibrary(), "fake_driver_last_float");
  REQUIRE(set(nullptr, 4, 2.75F) == 0);  // through the slow stub
  REQUIRE(last() == 2.75F);
  REQUIRE(set(nullptr, 4, -1.5F) == 0);
  REQUIRE(last() == -1.5F);
}

void KeepsErrno() {
  errno = 1234;
  REQUIRE(CallAlloc() == 0);
  REQUIRE(errno == 1234);
}

// A shared stub says nothing about arguments: it must not lead to the hook of
// whichever symbol has its address.
void SharedStub() {
  const auto get = Find<int (*)(const char*, void**, int, Word, int*)>(
      DriverLibrary(), "cuGetProcAddress_v2");
  void* pfn = nullptr;
  REQUIRE(get("cuParamSetSize", &pfn, 12000, 0, nullptr) == 0);
  const HeddleInterposer& interposer = *Interposer();
  REQUIRE(pfn == interposer.real("cuCtxAttach"));
  REQUIRE(get("cuCtxAttach", &pfn, 12000, 0, nullptr) == 0);
  REQUIRE(pfn != interposer.real("cuCtxAttach"));
}

void ExportTable() {
  const auto get = Find<int (*)(const void**, const void*)>(DriverLibrary(),
                                                            "cuGetExportTable");
  const void* table = nullptr;
  REQUIRE(get(&table, "0123456789abcdef") == 0);
  Dl_info info;
  REQUIRE(dladdr(table, &info) != 0);
  REQUIRE(std::strstr(info.dli_fname, "libcuda.so") != nullptr);
  const auto words = static_cast<const void* const*>(table);
  REQUIRE(words[1] == table && words[2] == table);
  const void* untouched = &info;
  REQUIRE(get(&untouched, nullptr) == 1);
  REQUIRE(untouched == &info);
}

void Init() {
  const auto init = Find<int (*)(unsigned)>(DriverLibrary(), "cuInit");
  REQUIRE(init(0) == 0);
  // WSL: once by the program, once by the driver itself.
  REQUIRE(DriverCalls(kIndex_cuInit) ==
          1 + (std::getenv("FAKE_WSL") != nullptr));
  const bool hooked = std::getenv("TEST_HOOKS") != nullptr;
  REQUIRE(HookCalls(kIndex_cuInit) == (hooked ? 1 : 0));
}

void OneCall() { REQUIRE(CallAlloc() == 0); }

// What the program still calls when the runtime is gone goes to the driver.
void CallAtExit() {
  std::atexit([] {
    REQUIRE(CallAlloc() == 0);
    std::printf("hooked at exit: %lu\n", HookCalls(kIndex_cuMemAlloc_v2));
  });
  REQUIRE(CallAlloc() == 0);
}

void LeaveFolder() {
  REQUIRE(chdir("/") == 0);
  REQUIRE(CallAlloc() == 0);
}

// ns for each call, to compare with and without the preload library.
void Cost() {
  static const auto launch = Find<AnyFunction>(DriverLibrary(), "cuCtxAttach");
  launch(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  double best = 1e9;
  constexpr int kCalls = 200000;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) launch(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const std::chrono::duration<double, std::nano> taken =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / kCalls);
  }
  std::printf("%.2f\n", best);
}

const std::map<std::string, void (*)()> kScenarios = {
    {"call_at_exit", CallAtExit},
    {"cost", Cost},
    {"counting", Counting},
    {"disable", Disable},
    {"export_table", ExportTable},
    {"first_call_race", FirstCallRace},
    {"float", Float},
    {"fork", Fork},
    {"hooks_come_and_go", HooksComeAndGo},
    {"hooks_under_fire", HooksUnderFire},
    {"init", Init},
    {"keeps_errno", KeepsErrno},
    {"leave_folder", LeaveFolder},
    {"missing_symbol", MissingSymbol},
    {"no_driver_at_all", NoDriverAtAll},
    {"old_driver", OldDriver},
    {"one_call", OneCall},
    {"route_counts", RouteCounts},
    {"shared_stub", SharedStub},
};

}  // namespace
}  // namespace heddle::interpose_test

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  heddle::interpose_test::kScenarios.at(argv[1])();
  std::printf("ok\n");
  return 0;
}
