// SPDX-License-Identifier: Apache-2.0
// Which hooks a measurement leads past, against an interposer that only notes.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "runtime/record/hook_table.h"
#include "runtime/record/hooks.h"

namespace heddle::record {
namespace {

using Slots = std::map<std::string, void*>;

Slots& TheSlots() {
  static Slots slots;
  return slots;
}

// A driver that has every symbol but one.
constexpr std::string_view kMissing = "cuLaunchKernelEx";

const HeddleInterposer* Interposer() {
  static const HeddleInterposer interposer = [] {
    HeddleInterposer table{};
    table.abi_version = HEDDLE_HOOK_ABI_VERSION;
    table.struct_size = sizeof(table);
    table.real = [](const char* symbol) -> void* {
      static int function;
      return symbol == kMissing ? nullptr : &function;
    };
    table.set_hook = [](const char* symbol, void* hook) {
      TheSlots()[symbol] = hook;
      return 0;
    };
    return table;
  }();
  return &interposer;
}

// The words in a symbol that say that the call changes (or asks for) something
// that lasts. What has none of them is work.
bool NamesState(std::string_view symbol) {
  for (std::string_view word :
       {"Alloc",  "Free",    "Create",    "Destroy",     "Load",       "Unload",
        "Get",    "Set",     "Enumerate", "Register",    "Unregister", "Map",
        "Unmap",  "Ipc",     "Capture",   "Instantiate", "Update",     "Upload",
        "Encode", "Replace", "Primary",   "Attach",      "Detach",     "Import",
        "Push",   "Pop",     "Link",      "Pool",        "Handle"}) {
    if (symbol.find(word) != std::string_view::npos) return true;
  }
  return false;
}

TEST(MeasureTest, WorkIsExactlyWhatChangesNothingThatLasts) {
  int work = 0;
  for (const HookDefinition& hook : AllHooks()) {
    EXPECT_NE(IsWork(hook.symbol), NamesState(hook.symbol)) << hook.symbol;
    if (IsWork(hook.symbol)) ++work;
  }
  EXPECT_GT(work, 50);
  EXPECT_LT(work, static_cast<int>(AllHooks().size()));
}

TEST(MeasureTest, WorkIsLedPastAndBackAndTheRestIsNeverTouched) {
  TheSlots().clear();
  InstallHooks(Interposer());
  const Slots installed = TheSlots();
  ASSERT_EQ(installed.size() + 1, AllHooks().size());
  ASSERT_EQ(installed.count(std::string(kMissing)), 0u);
  for (const auto& [symbol, hook] : installed) EXPECT_NE(hook, nullptr);

  SwitchWorkHooks(Interposer(), /*hooked=*/false);
  ASSERT_EQ(TheSlots().size(), installed.size());
  for (const auto& [symbol, hook] : TheSlots()) {
    EXPECT_EQ(hook, IsWork(symbol) ? nullptr : installed.at(symbol)) << symbol;
  }
  SwitchWorkHooks(Interposer(), /*hooked=*/true);
  EXPECT_EQ(TheSlots(), installed);
}

}  // namespace
}  // namespace heddle::record
