// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_RECORD_HOOKS_UNSUPPORTED_H_
#define HEDDLE_RUNTIME_RECORD_HOOKS_UNSUPPORTED_H_

// A hook for calls whose effect heddle does not record: the call goes through,
// and the trace says once that it happened, so that nobody trusts a replay of
// it.

#include "runtime/record/hooks.h"
#include "runtime/record/recorder.h"

namespace heddle::record {

template <typename S, typename Fn>
struct UnsupportedHook;

template <typename S, typename... Args>
struct UnsupportedHook<S, CUresult (*)(Args...)> {
  static CUresult Hook(Args... args) {
    WithRecorder([](Recorder& recorder) {
      recorder.Unsupported(S::kName, "its effect is not recorded");
    });
    return S::Real(args...);
  }
};

template <typename S>
void AddUnsupportedHook(HookList* list) {
  AddHook<S>(list, &UnsupportedHook<S, typename S::Fn>::Hook);
}

#define HEDDLE_UNSUPPORTED(list, symbol) \
  ::heddle::record::AddUnsupportedHook<  \
      ::heddle::record::Symbol<#symbol, decltype(&::symbol)>>(list)
#define HEDDLE_UNSUPPORTED_PTSZ(list, symbol) \
  HEDDLE_UNSUPPORTED(list, symbol);           \
  HEDDLE_UNSUPPORTED(list, symbol##_ptsz)
#define HEDDLE_UNSUPPORTED_PTDS(list, symbol) \
  HEDDLE_UNSUPPORTED(list, symbol);           \
  HEDDLE_UNSUPPORTED(list, symbol##_ptds)

}  // namespace heddle::record

#endif  // HEDDLE_RUNTIME_RECORD_HOOKS_UNSUPPORTED_H_
