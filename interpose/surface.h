/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_SURFACE_H_
#define HEDDLE_INTERPOSE_SURFACE_H_

/* The generated surface: for each symbol of the driver, in strcmp order, two
 * wrappers.
 *
 * A wrapper does one thing: it jumps to its target, with every argument and the
 * return address in place. Targets are data, so that passing through, hooks and
 * counting cost the same on the way: one load and one indirect jump, no branch.
 * At the start each target is the symbol's slow stub, which asks
 * heddle_slow_call() where to go; dispatch.c replaces targets.
 *
 * The second wrapper of a symbol exists for drivers whose cuGetProcAddress
 * returns another address than the ELF symbol's: a program that was given that
 * address must end there. */

#include <stdatomic.h>
#include <stdint.h>

enum {
#define HEDDLE_SYMBOL(index, name) HEDDLE_INDEX_##name = (index),
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
  HEDDLE_SYMBOL_COUNT
};

/* Which of a symbol's two wrappers. The values are known to surface_entry.S. */
enum heddle_family {
  HEDDLE_FAMILY_ELF = 0,  /* stands for the ELF symbol's address */
  HEDDLE_FAMILY_PROC = 1, /* stands for an address from cuGetProcAddress */
  HEDDLE_FAMILY_COUNT = 2
};

extern const char *const heddle_symbols[HEDDLE_SYMBOL_COUNT];
extern const void
    *const heddle_wrappers[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT];
extern const void
    *const heddle_slow_stubs[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT];
extern _Atomic(void *) heddle_targets[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT];

/* Index of an exact symbol name, or -1. */
int heddle_symbol_index(const char *name);

/* Does `address` lie in this library? */
int heddle_is_own_address(const void *address);

#endif /* HEDDLE_INTERPOSE_SURFACE_H_ */
