// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/hooks.h"

#include <algorithm>

namespace heddle::record {

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

void InstallHooks(const HeddleInterposer* interposer) {
  for (const HookDefinition& hook : AllHooks()) {
    void* real = interposer->real(hook.symbol);
    if (real == nullptr) continue;
    *hook.real = real;
    interposer->set_hook(hook.symbol, hook.hook);
  }
}

void ClearHooks(const HeddleInterposer* interposer) {
  for (const HookDefinition& hook : AllHooks()) {
    interposer->set_hook(hook.symbol, nullptr);
  }
}

bool IsHooked(std::string_view symbol) {
  return std::any_of(
      AllHooks().begin(), AllHooks().end(),
      [symbol](const HookDefinition& hook) { return hook.symbol == symbol; });
}

}  // namespace heddle::record
