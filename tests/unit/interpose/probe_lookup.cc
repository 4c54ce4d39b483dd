// SPDX-License-Identifier: Apache-2.0
// A program that looks the functions of the driver up: probe_lookup dlsym |
// default | proc.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/interpose/probe.h"

namespace heddle::interpose_test {
namespace {

struct Key {
  const char* base;
  int version;
};

constexpr Key kKeys[] = {
#define HEDDLE_KEY(base, version, per_thread, symbol, index, type) \
  {base, version},
#include "interpose/keys.inc"
#undef HEDDLE_KEY
};

void Dlsym(void* handle, const char* route) {
  for (int i = 0; i < kSymbolCount; ++i) {
    PrintPointerCall(std::string(route) + " " + kSymbols[i], i,
                     dlsym(handle, kSymbols[i]));
  }
  for (const char* other : {"cudnnCreate", "cuMemAlloc_v99", "cu", "",
                            "cuInitialize", "fake_driver_reset"}) {
    std::printf("%s other %s: %s\n", route, other,
                dlsym(handle, other) == nullptr ? "null" : "found");
  }
}

// Every base name, at each version that the list has for any of its functions,
// just below and just above, and under each flag.
std::set<std::pair<std::string, int>> Requests() {
  std::set<std::pair<std::string, int>> requests;
  for (const Key& key : kKeys) {
    for (int delta : {-10, 0, 10}) {
      requests.emplace(key.base, key.version + delta);
    }
    requests.emplace(key.base, 12000);
    requests.emplace(key.base, 13000);
    requests.emplace(key.base, 99000);  // newer than the driver: refused
  }
  requests.emplace("cuNoSuchFunction", 13000);
  requests.emplace("cudnnCreate", 13000);
  return requests;
}

using GetV1 = int (*)(const char*, void**, int, Word);
using GetV2 = int (*)(const char*, void**, int, Word, int*);

int IndexOf(void* function) {
  // Which functions take no arbitrary arguments shows in what they do with 0.
  for (int i : {kIndex_cuGetProcAddress, kIndex_cuGetProcAddress_v2,
                kIndex_cuGetExportTable, kIndex_cuParamSetf}) {
    if (function == dlsym(DriverLibrary(), kSymbols[i])) return i;
  }
  return -1;
}

void ProcAddress(GetV1 v1, GetV2 v2, const std::string& route) {
  void* const untouched = reinterpret_cast<void*>(0x1111);
  for (const auto& [base, version] : Requests()) {
    for (Word flags : {0, 1, 2}) {
      const std::string request = route + " " + base + " " +
                                  std::to_string(version) + " " +
                                  std::to_string(flags);
      void* pfn = untouched;
      int status = 77;
      int result = v2(base.c_str(), &pfn, version, flags, &status);
      std::printf("%s v2: %d status %d\n", request.c_str(), result, status);
      if (pfn != untouched) {
        int index = IndexOf(pfn);
        if (base == "cuGetProcAddress" || base == "cuGetExportTable" ||
            base == "cuParamSetf") {
          index = kIndex_cuGetProcAddress;  // any that is called with 0
        }
        PrintPointerCall(request + " v2", index, pfn);
      }
      void* const first = pfn;
      pfn = untouched;
      result = v1(base.c_str(), &pfn, version, flags);
      std::printf("%s v1: %d %s\n", request.c_str(), result,
                  pfn == first ? "same" : "DIFFERENT");
    }
  }
  int result = v2("cuInit", nullptr, 12000, 0, nullptr);
  std::printf("%s no pfn: %d\n", route.c_str(), result);
  void* pfn = untouched;
  result = v2("cuInit", &pfn, 12000, 0, nullptr);
  std::printf("%s no status: %d\n", route.c_str(), result);
}

void ProcRoutes() {
  void* driver = DriverLibrary();
  const auto v1 = Find<GetV1>(driver, "cuGetProcAddress");
  const auto v2 = Find<GetV2>(driver, "cuGetProcAddress_v2");
  ProcAddress(v1, v2, "proc");
  // As CUDA runtimes do: cuGetProcAddress, asked for itself, and then that one.
  GetV1 own_v1 = nullptr;
  GetV2 own_v2 = nullptr;
  v2("cuGetProcAddress", reinterpret_cast<void**>(&own_v1), 11030, 0, nullptr);
  v2("cuGetProcAddress", reinterpret_cast<void**>(&own_v2), 12000, 0, nullptr);
  ProcAddress(own_v1, own_v2, "proc itself");
  std::printf("same address: %d %d\n", own_v1 == v1, own_v2 == v2);
}

void Run(const char* mode) {
  if (std::strcmp(mode, "dlsym") == 0) Dlsym(DriverLibrary(), "dlsym");
  if (std::strcmp(mode, "default") == 0) {
    // Nobody has loaded a driver yet.
    std::printf("before: %s\n",
                dlsym(RTLD_DEFAULT, "cuInit") == nullptr ? "null" : "found");
    std::printf("error: %s\n", dlerror() == nullptr ? "none" : "set");
    std::printf("program: %s\n",
                dlsym(dlopen(nullptr, RTLD_NOW), "cuInit") == nullptr
                    ? "null"
                    : "found");
    REQUIRE(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr);
    Dlsym(RTLD_DEFAULT, "default");
    Dlsym(dlopen(nullptr, RTLD_NOW), "program");
  }
  if (std::strcmp(mode, "proc") == 0) ProcRoutes();
}

}  // namespace
}  // namespace heddle::interpose_test

int main(int argc, char** argv) {
  heddle::interpose_test::Run(argc > 1 ? argv[1] : "dlsym");
}
