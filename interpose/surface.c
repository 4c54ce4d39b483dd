/* SPDX-License-Identifier: Apache-2.0 */
/* The tables over the generated list; the code is in surface_entry.S. */
#include "interpose/surface.h"

#include <string.h>

#define HEDDLE_SYMBOL(index, name)            \
  extern const char heddle_elf_##name[];      \
  extern const char heddle_proc_##name[];     \
  extern const char heddle_slow_elf_##name[]; \
  extern const char heddle_slow_proc_##name[];
#pragma GCC visibility push(hidden)
#include "interpose/surface.inc"
#pragma GCC visibility pop
#undef HEDDLE_SYMBOL

const char *const heddle_symbols[HEDDLE_SYMBOL_COUNT] = {
#define HEDDLE_SYMBOL(index, name) #name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
};

const void *const heddle_wrappers[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT] = {
    {
#define HEDDLE_SYMBOL(index, name) heddle_elf_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
    },
    {
#define HEDDLE_SYMBOL(index, name) heddle_proc_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
    }};

const void *const heddle_slow_stubs[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT] =
    {{
#define HEDDLE_SYMBOL(index, name) heddle_slow_elf_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
     },
     {
#define HEDDLE_SYMBOL(index, name) heddle_slow_proc_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
     }};

_Atomic(void *) heddle_targets[HEDDLE_FAMILY_COUNT][HEDDLE_SYMBOL_COUNT] = {{
#define HEDDLE_SYMBOL(index, name) (void *)heddle_slow_elf_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
                                                                            },
                                                                            {
#define HEDDLE_SYMBOL(index, name) (void *)heddle_slow_proc_##name,
#include "interpose/surface.inc"
#undef HEDDLE_SYMBOL
                                                                            }};

int heddle_symbol_index(const char *name) {
  int low = 0;
  int high = HEDDLE_SYMBOL_COUNT - 1;
  while (low <= high) {
    const int middle = (low + high) / 2;
    const int order = strcmp(name, heddle_symbols[middle]);
    if (order == 0) return middle;
    if (order < 0) {
      high = middle - 1;
    } else {
      low = middle + 1;
    }
  }
  return -1;
}

/* Set by the linker: the first and the last byte of this library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

int heddle_is_own_address(const void *address) {
  return (uintptr_t)address >= (uintptr_t)__ehdr_start &&
         (uintptr_t)address < (uintptr_t)_end;
}
