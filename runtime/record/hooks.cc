// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/hooks.h"

#include <algorithm>
#include <iterator>

namespace heddle::record {
namespace {

const HookList* g_below = nullptr;

// The hook under recording's own, nullptr for the driver.
void* Below(std::string_view symbol) {
  if (g_below == nullptr) return nullptr;
  const auto it = std::find_if(
      g_below->begin(), g_below->end(),
      [symbol](const HookDefinition& hook) { return hook.symbol == symbol; });
  return it == g_below->end() || *it->real == nullptr ? nullptr : it->hook;
}

}  // namespace

const HookList& AllHooks() {
  static const HookList* hooks = [] {
    auto* list = new HookList;
    AddLaunchHooks(list);
    AddModuleHooks(list);
    AddMemoryHooks(list);
    AddCopyHooks(list);
    AddMemsetHooks(list);
    AddStreamHooks(list);
    AddGraphHooks(list);
    AddTensorMapHooks(list);
    return list;
  }();
  return *hooks;
}

void InstallHooksBelow(const HeddleInterposer* interposer,
                       const HookList& hooks) {
  for (const HookDefinition& hook : hooks) {
    void* real = interposer->real(hook.symbol);
    if (real == nullptr) continue;
    *hook.real = real;
    interposer->set_hook(hook.symbol, hook.hook);
  }
  g_below = &hooks;
}

void InstallHooks(const HeddleInterposer* interposer) {
  for (const HookDefinition& hook : AllHooks()) {
    void* real = interposer->real(hook.symbol);
    if (real == nullptr) continue;
    void* below = Below(hook.symbol);
    *hook.real = below == nullptr ? real : below;
    interposer->set_hook(hook.symbol, hook.hook);
  }
}

void ClearHooks(const HeddleInterposer* interposer) {
  for (const HookDefinition& hook : AllHooks()) {
    interposer->set_hook(hook.symbol, Below(hook.symbol));
  }
}

bool IsWork(std::string_view symbol) {
  // Of each family all versions, per-thread variants and asynchronous forms.
  constexpr std::string_view kFamilies[] = {
      "cuCtxSynchronize",   "cuEventQuery",      "cuEventRecord",
      "cuEventSynchronize", "cuGraphLaunch",     "cuLaunch",
      "cuMemcpy",           "cuMemset",          "cuStreamAddCallback",
      "cuStreamBatchMemOp", "cuStreamQuery",     "cuStreamSynchronize",
      "cuStreamWaitEvent",  "cuStreamWaitValue", "cuStreamWriteValue",
  };
  return std::any_of(
      std::begin(kFamilies), std::end(kFamilies),
      [symbol](std::string_view family) { return symbol.starts_with(family); });
}

void SwitchWorkHooks(const HeddleInterposer* interposer, bool hooked) {
  for (const HookDefinition& hook : AllHooks()) {
    if (!IsWork(hook.symbol) || *hook.real == nullptr) continue;
    interposer->set_hook(hook.symbol, hooked ? hook.hook : Below(hook.symbol));
  }
}

bool IsHooked(std::string_view symbol) {
  return std::any_of(
      AllHooks().begin(), AllHooks().end(),
      [symbol](const HookDefinition& hook) { return hook.symbol == symbol; });
}

}  // namespace heddle::record
