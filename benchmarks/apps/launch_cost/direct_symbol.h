// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_BENCHMARKS_APPS_LAUNCH_COST_DIRECT_SYMBOL_H_
#define HEDDLE_BENCHMARKS_APPS_LAUNCH_COST_DIRECT_SYMBOL_H_

// The address of `name` in the loaded library `library` ("libcuda.so.1"), read
// from its own symbol table: what dlsym would give if nobody interposed it.
// nullptr if there is none.
void* DirectSymbol(const char* library, const char* name);

#endif  // HEDDLE_BENCHMARKS_APPS_LAUNCH_COST_DIRECT_SYMBOL_H_
