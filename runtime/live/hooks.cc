// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/hooks.h"

namespace heddle::live {

const HookList& AllHooks() {
  static const HookList* hooks = [] {
    auto* list = new HookList;
    live::AddCodeHooks(list);
    live::AddGraphHooks(list);
    live::AddMemoryHooks(list);
    live::AddTensorMapHooks(list);
    live::AddGateHooks(list);
    return list;
  }();
  return *hooks;
}

}  // namespace heddle::live
