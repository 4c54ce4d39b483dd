// SPDX-License-Identifier: Apache-2.0
// Where kernel bodies come from; see host_kernel.h.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/hostdevice/builtin_kernels.h"
#include "tests/hostdevice/module.h"

namespace heddle::hostdevice {
namespace {

// The libraries of HEDDLE_HOSTDEVICE_KERNELS, opened once.
const std::vector<void*>& KernelLibraries() {
  static const std::vector<void*>& libraries = *[] {
    auto* opened = new std::vector<void*>;
    const char* list = std::getenv("HEDDLE_HOSTDEVICE_KERNELS");
    const std::string paths = list == nullptr ? "" : list;
    size_t start = 0;
    while (start < paths.size()) {
      size_t end = paths.find(':', start);
      if (end == std::string::npos) end = paths.size();
      const std::string path = paths.substr(start, end - start);
      start = end + 1;
      if (path.empty()) continue;
      void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        std::fprintf(stderr,
                     "heddle host device: HEDDLE_HOSTDEVICE_KERNELS: %s\n",
                     dlerror());
        continue;
      }
      opened->push_back(library);
    }
    return opened;
  }();
  return libraries;
}

}  // namespace

HeddleHostKernelFn FindBody(Function* function) {
  if (function->looked_up) return function->body;
  function->looked_up = true;
  const std::string symbol = std::string("heddle_host_") + function->name;
  void* body = dlsym(RTLD_DEFAULT, symbol.c_str());
  for (void* library : KernelLibraries()) {
    if (body != nullptr) break;
    body = dlsym(library, symbol.c_str());
  }
  function->body = reinterpret_cast<HeddleHostKernelFn>(body);
  if (function->body == nullptr) {
    function->body = FindBuiltinKernel(function->name);
  }
  if (function->body == nullptr) {
    std::fprintf(stderr,
                 "heddle host device: kernel %s has no body here: define %s "
                 "(tests/hostdevice/host_kernel.h) in the program, linked with "
                 "-rdynamic, or in a library named in "
                 "HEDDLE_HOSTDEVICE_KERNELS\n",
                 function->name, symbol.c_str());
  }
  return function->body;
}

}  // namespace heddle::hostdevice
