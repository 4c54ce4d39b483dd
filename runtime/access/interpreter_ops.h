// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_INTERPRETER_OPS_H_
#define HEDDLE_RUNTIME_ACCESS_INTERPRETER_OPS_H_

// What the operations of Interpreter have in common. Internal to it.

#include <cstdint>

#include "runtime/access/linear.h"
#include "runtime/access/state.h"
#include "runtime/cubin/sass_semantics.h"

namespace heddle::access {

// Whether `form` is a number, which is put in `value` then.
bool ConstantOf(const Universe& universe, FormId form, int64_t* value);

// Three-valued logic that keeps what the operands say of other values.
Truth Known(bool value);
Truth And(const Truth& a, const Truth& b);
Truth Not(Truth a);
Truth Or(const Truth& a, const Truth& b);
Truth Combine(cubin::SassCombine combine, const Truth& a, const Truth& b);

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_INTERPRETER_OPS_H_
