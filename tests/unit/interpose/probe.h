// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_TESTS_UNIT_INTERPOSE_PROBE_H_
#define HEDDLE_TESTS_UNIT_INTERPOSE_PROBE_H_

// What the probe programs share. A probe is run as a process of its own, with
// and without the preload library, and prints what it reached; the test
// compares the two outputs. It finds the fake driver's and the test runtime's
// functions with dlsym, under names that the interposer does not know.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/interpose/fake_driver.h"
#include "tests/unit/interpose/test_runtime.h"

namespace heddle::interpose_test {

enum {
#define HEDDLE_SYMBOL(index, name) kIndex_##name = (index),
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
  kSymbolCount
};

inline const char* const kSymbols[kSymbolCount] = {
#define HEDDLE_SYMBOL(index, name) #name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
};

inline void Require(bool condition, const char* text) {
  if (condition) return;
  std::printf("FAILED: %s\n", text);
  std::fflush(stdout);
  std::_Exit(1);
}
#define REQUIRE(condition) \
  ::heddle::interpose_test::Require((condition), #condition)

using Word = unsigned long;  // NOLINT(google-runtime-int): a register
using AnyFunction = int (*)(Word, Word, Word, Word, Word, Word, Word, Word,
                            Word, Word, Word);

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// The fake driver, if it is loaded or `load` is set.
inline void* DriverLibrary(bool load = true) {
  return dlopen("libcuda.so.1", RTLD_NOW | (load ? 0 : RTLD_NOLOAD));
}

// The test runtime, once the interposer has loaded it.
inline void* RuntimeLibrary() {
  const char* path = std::getenv("HEDDLE_RUNTIME_LIBRARY");
  return path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
}

inline const HeddleInterposer* Interposer() {
  void* library = RuntimeLibrary();
  REQUIRE(library != nullptr);
  return Find<const HeddleInterposer* (*)()>(library,
                                             "test_runtime_interposer")();
}

// Calls of one symbol's hook, or of all with -1.
inline Word HookCalls(int index) {
  static Word (*calls)(int) = nullptr;
  if (calls == nullptr) {
    void* library = RuntimeLibrary();
    if (library == nullptr) return 0;
    calls = Find<Word (*)(int)>(library, "test_runtime_hook_calls");
  }
  return calls(index);
}

inline Word DriverCalls(int index) {
  static const auto calls =
      Find<Word (*)(int, int)>(DriverLibrary(), "fake_driver_calls");
  return calls(FAKE_FAMILY_ELF, index) + calls(FAKE_FAMILY_PROC, index);
}

inline fake_call LastCall() {
  static const auto last =
      Find<fake_call (*)()>(DriverLibrary(), "fake_driver_last_call");
  return last();
}

// Functions whose arguments the fake driver looks at; they are called with 0.
inline bool ReadsArguments(int index) {
  return index == kIndex_cuGetProcAddress ||
         index == kIndex_cuGetProcAddress_v2 ||
         index == kIndex_cuGetExportTable || index == kIndex_cuParamSetf;
}

// Calls `function`, which the program was given as `index` (or -1 if it cannot
// know), and prints where that led: the result, the driver's function, whether
// all eleven arguments arrived; then, behind a bar, how often which hook ran.
template <typename Call>
void PrintCall(const std::string& what, int index, const Call& call) {
  static const auto reset =
      Find<void (*)()>(DriverLibrary(), "fake_driver_reset");
  reset();
  const Word hooks_before = HookCalls(-1);
  Word a[FAKE_ARGUMENTS];
  const bool zero = index >= 0 && ReadsArguments(index);
  for (int i = 0; i < FAKE_ARGUMENTS; ++i) {
    a[i] = zero ? 0 : 0x100000000ul * (i + 1) + 17;
  }
  const int result = call(a);
  const fake_call last = LastCall();
  bool intact = true;
  for (int i = 0; i < FAKE_ARGUMENTS; ++i) {
    intact &= zero || last.arguments[i] == a[i];
  }
  std::printf("%s: %d %s/%s %s | %lu %lu\n", what.c_str(), result,
              last.family == FAKE_FAMILY_ELF    ? "elf"
              : last.family == FAKE_FAMILY_PROC ? "proc"
                                                : "none",
              last.index < 0 ? "-" : kSymbols[last.index],
              intact ? "intact" : "BROKEN", HookCalls(-1) - hooks_before,
              last.index < 0 ? 0 : HookCalls(last.index));
}

inline void PrintPointerCall(const std::string& what, int index,
                             void* function) {
  if (function == nullptr) {
    std::printf("%s: null | 0 0\n", what.c_str());
    return;
  }
  PrintCall(what, index, [&](const Word* a) {
    return reinterpret_cast<AnyFunction>(function)(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
  });
}

}  // namespace heddle::interpose_test

#endif  // HEDDLE_TESTS_UNIT_INTERPOSE_PROBE_H_
