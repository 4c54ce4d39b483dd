// SPDX-License-Identifier: Apache-2.0
// A program that calls the driver in the ways that preloading may miss; each is
// called after cuInit, and what the hooks have seen is printed.
#include <cstring>

#include "tests/unit/interpose/probe.h"

namespace heddle::interpose_test {
namespace {

extern "C" {
int cuInit(unsigned);
int cuMemAlloc_v2(Word*, Word);
int cuMemFree_v2(Word);
int cuCtxSynchronize();
int cuStreamSynchronize(Word);
int cuEventRecord(Word, Word);
int cuDeviceGetCount(Word);
}

// Relocations by the dynamic linker, read-only afterwards.
int (*const volatile kReadOnlyPointer)(Word) = cuMemFree_v2;
// The same, writable.
int (*volatile g_pointer)() = cuCtxSynchronize;
// Filled in at run time, as a CUDA runtime does.
int (*volatile g_stored)(Word);
struct {
  int before;
  int (*function)(Word, Word);
} volatile g_table[3];

void Print(const char* what, int index) {
  std::printf("%s: driver %lu hook %lu\n", what, DriverCalls(index),
              HookCalls(index));
}

void Run(bool deep) {
  void* driver = DriverLibrary();
  g_stored = Find<int (*)(Word)>(driver, "cuStreamSynchronize");
  g_table[2].function = Find<int (*)(Word, Word)>(driver, "cuEventRecord");
  void* plugin = dlopen("./libplugin.so",
                        RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  REQUIRE(plugin != nullptr);
  const auto plugin_alloc = Find<int (*)()>(plugin, "plugin_alloc");

  REQUIRE(cuInit(0) == 0);

  Word pointer = 0;
  cuMemAlloc_v2(&pointer, 1);
  Print("import", kIndex_cuMemAlloc_v2);
  plugin_alloc();
  Print("import of a library", kIndex_cuMemAlloc_v2);
  kReadOnlyPointer(0);
  Print("read-only pointer", kIndex_cuMemFree_v2);
  g_pointer();
  Print("pointer", kIndex_cuCtxSynchronize);
  g_stored(0);
  Print("stored pointer", kIndex_cuStreamSynchronize);
  g_table[2].function(0, 0);
  Print("pointer in a table", kIndex_cuEventRecord);
  Find<int (*)(Word)>(driver, "cuDeviceGetCount")(0);
  Print("dlsym afterwards", kIndex_cuDeviceGetCount);
}

}  // namespace
}  // namespace heddle::interpose_test

int main(int argc, char** argv) {
  heddle::interpose_test::Run(argc > 1 && std::strcmp(argv[1], "deep") == 0);
}
