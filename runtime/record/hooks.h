// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_HOOKS_H_
#define HEDDLE_RUNTIME_RECORD_HOOKS_H_

// The driver functions that recording hooks, one file a group:
//   hooks_launch.cc  hooks_module.cc  hooks_memory.cc  hooks_copy.cc
//   hooks_memset.cc  hooks_stream.cc  hooks_graph.cc   hooks_tensor_map.cc
//
// A hook is a function template over the symbol it stands for, so that the
// versions and per-thread variants of a call share one body and each calls its
// own driver function.

#include <cuda.h>

#include <string_view>
#include <vector>

#include "runtime/record/hook_table.h"

namespace heddle::record {

struct HookDefinition {
  const char* symbol;
  void* hook;
  void** real;
};
using HookList = std::vector<HookDefinition>;

// A symbol's name as a template argument.
template <size_t kSize>
struct SymbolName {
  // NOLINTNEXTLINE(google-explicit-constructor): made from string literals.
  constexpr SymbolName(const char (&text)[kSize]) {
    for (size_t i = 0; i < kSize; ++i) value[i] = text[i];
  }
  char value[kSize];
};

// `Layer` keeps apart the hooks that several parts of heddle have on one
// symbol: each calls the next one down.
template <SymbolName kSymbolName, typename Function, typename Layer = void>
struct Symbol {
  using Fn = Function;
  static constexpr const char* kName = kSymbolName.value;
  // Variant whose stream handle 0 is the calling thread's own stream.
  static constexpr bool kPerThread =
      std::string_view(kSymbolName.value).ends_with("_ptsz") ||
      std::string_view(kSymbolName.value).ends_with("_ptds");
  // The driver's function, or the hook of the layer below; set before the hook
  // is.
  static inline void* real_pointer = nullptr;

  template <typename... Args>
  static CUresult Real(Args... args) {
    return reinterpret_cast<Fn>(real_pointer)(args...);
  }
};

// `hook` has the symbol's own type, so a wrong signature does not compile.
template <typename S>
void AddHook(HookList* list, typename S::Fn hook) {
  list->push_back({S::kName, reinterpret_cast<void*>(hook), &S::real_pointer});
}

// HEDDLE_HOOK(list, cuMemAlloc_v2, MemAlloc): `MemAlloc<S>` hooks the symbol.
// Compiled with __CUDA_API_VERSION_INTERNAL, so that cuda.h does not rename.
// NOLINTBEGIN(bugprone-macro-parentheses): names, not expressions.
#define HEDDLE_HOOK(list, symbol, function)                    \
  ::heddle::record::AddHook<                                   \
      ::heddle::record::Symbol<#symbol, decltype(&::symbol)>>( \
      list, &function<::heddle::record::Symbol<#symbol, decltype(&::symbol)>>)
// NOLINTEND(bugprone-macro-parentheses)
// The symbol and its per-thread variant (_ptsz for calls that take a stream,
// _ptds for those that use the default one).
#define HEDDLE_HOOK_PTSZ(list, symbol, function) \
  HEDDLE_HOOK(list, symbol, function);           \
  HEDDLE_HOOK(list, symbol##_ptsz, function)
#define HEDDLE_HOOK_PTDS(list, symbol, function) \
  HEDDLE_HOOK(list, symbol, function);           \
  HEDDLE_HOOK(list, symbol##_ptds, function)

void AddLaunchHooks(HookList* list);
void AddModuleHooks(HookList* list);
void AddMemoryHooks(HookList* list);
void AddCopyHooks(HookList* list);
void AddMemsetHooks(HookList* list);
void AddStreamHooks(HookList* list);
void AddGraphHooks(HookList* list);
void AddTensorMapHooks(HookList* list);

// Every hook of the files above.
const HookList& AllHooks();

// Hooks of another part of heddle, set directly on the driver; recording's own
// are put before them. Call it before InstallHooks. Keeps a reference.
void InstallHooksBelow(const HeddleInterposer* interposer,
                       const HookList& hooks);
// Sets all hooks whose symbol this driver has.
void InstallHooks(const HeddleInterposer* interposer);
// Leads every hooked symbol back to the driver, or to the hook below.
void ClearHooks(const HeddleInterposer* interposer);
bool IsHooked(std::string_view symbol);

// Whether the hook on `symbol` only writes down work that a step repeats
// (launches, copies, fills, waiting), so that missing a call leaves nothing
// that recording knows about the program wrong.
bool IsWork(std::string_view symbol);
// Leads the symbols of IsWork to their hooks or past them, after InstallHooks.
void SwitchWorkHooks(const HeddleInterposer* interposer, bool hooked);

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_HOOKS_H_
