// SPDX-License-Identifier: Apache-2.0
#include "runtime/cubin/sass.h"

namespace heddle::cubin {

absl::string_view SassClassName(SassClass value) {
  switch (value) {
    case SassClass::kUnknown:
      return "unknown";
    case SassClass::kControlFlow:
      return "control flow";
    case SassClass::kLoad:
      return "load";
    case SassClass::kStore:
      return "store";
    case SassClass::kAtomic:
      return "atomic";
    case SassClass::kBulk:
      return "bulk";
    case SassClass::kBarrier:
      return "barrier";
    case SassClass::kInteger:
      return "integer";
    case SassClass::kFloat:
      return "float";
    case SassClass::kTensor:
      return "tensor";
    case SassClass::kConversion:
      return "conversion";
    case SassClass::kMove:
      return "move";
    case SassClass::kPredicate:
      return "predicate";
    case SassClass::kUniform:
      return "uniform";
    case SassClass::kSpecialRegister:
      return "special register";
    case SassClass::kNop:
      return "nop";
    case SassClass::kDependentLaunch:
      return "dependent launch";
    case SassClass::kOther:
      return "other";
  }
  return "unknown";
}

}  // namespace heddle::cubin
