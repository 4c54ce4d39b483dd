// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_LIVE_HOOKS_H_
#define HEDDLE_RUNTIME_LIVE_HOOKS_H_

// The driver calls that the optimizer sees, one file a group:
//   hooks_code.cc    loading and look-up of device code
//   hooks_graph.cc   capture and executable graphs
//   hooks_memory.cc  allocation
//   hooks_tensor_map.cc  encoding of tensor maps
//   hooks_gate.cc    everything that queues work or touches memory

#include "runtime/live/gate.h"
#include "runtime/record/hooks.h"

namespace heddle::live {

using record::HookList;

struct HookLayer {};

// HEDDLE_LIVE_HOOK(list, cuGraphLaunch, GraphLaunch): like HEDDLE_HOOK.
// NOLINTBEGIN(bugprone-macro-parentheses): names, not expressions.
#define HEDDLE_LIVE_SYMBOL(symbol)                       \
  ::heddle::record::Symbol<#symbol, decltype(&::symbol), \
                           ::heddle::live::HookLayer>
#define HEDDLE_LIVE_HOOK(list, symbol, function)         \
  ::heddle::record::AddHook<HEDDLE_LIVE_SYMBOL(symbol)>( \
      list, &function<HEDDLE_LIVE_SYMBOL(symbol)>)
// NOLINTEND(bugprone-macro-parentheses)
#define HEDDLE_LIVE_HOOK_PTSZ(list, symbol, function) \
  HEDDLE_LIVE_HOOK(list, symbol, function);           \
  HEDDLE_LIVE_HOOK(list, symbol##_ptsz, function)

// A call that only has to wait while a graph is tried.
template <typename S, typename Fn>
struct GatedHook;
template <typename S, typename... Args>
struct GatedHook<S, CUresult (*)(Args...)> {
  static CUresult Hook(Args... args) {
    const Gate::Pass pass;
    return S::Real(args...);
  }
};
template <typename S>
void AddGatedHook(HookList* list) {
  record::AddHook<S>(list, &GatedHook<S, typename S::Fn>::Hook);
}
#define HEDDLE_LIVE_GATED(list, symbol) \
  ::heddle::live::AddGatedHook<HEDDLE_LIVE_SYMBOL(symbol)>(list)
#define HEDDLE_LIVE_GATED_PTSZ(list, symbol) \
  HEDDLE_LIVE_GATED(list, symbol);           \
  HEDDLE_LIVE_GATED(list, symbol##_ptsz)
#define HEDDLE_LIVE_GATED_PTDS(list, symbol) \
  HEDDLE_LIVE_GATED(list, symbol);           \
  HEDDLE_LIVE_GATED(list, symbol##_ptds)

void AddCodeHooks(HookList* list);
void AddGraphHooks(HookList* list);
void AddMemoryHooks(HookList* list);
void AddTensorMapHooks(HookList* list);
void AddGateHooks(HookList* list);

// Every hook of the files above.
const HookList& AllHooks();

}  // namespace heddle::live

#endif  // HEDDLE_RUNTIME_LIVE_HOOKS_H_
