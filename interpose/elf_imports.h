/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_ELF_IMPORTS_H_
#define HEDDLE_INTERPOSE_ELF_IMPORTS_H_

#include <link.h>
#include <stdint.h>

/* A word of a loaded object that the dynamic linker fills in by symbol name. */
struct heddle_import {
  const struct dl_phdr_info *object;
  const char *name;
  void **slot;
  int is_plt; /* may still lead to the object's own PLT, to be bound lazily */
};

/* Calls `visit` for every import of `object`. For use inside a callback of
 * dl_iterate_phdr(), which keeps the object loaded. Tolerates malformed dynamic
 * sections. */
void heddle_visit_imports(const struct dl_phdr_info *object,
                          void (*visit)(const struct heddle_import *import,
                                        void *data),
                          void *data);

/* Does `size` bytes at `address` lie in one of the object's segments with all
 * of `flags` (PF_R, PF_W, PF_X)? */
int heddle_object_contains(const struct dl_phdr_info *object, uintptr_t address,
                           uintptr_t size, uint32_t flags);

/* How many imports of all loaded objects are bound to this symbol's wrapper.
 * Imports that are bound lazily count from their first call on. */
uint64_t heddle_count_elf_imports(int index);

#endif /* HEDDLE_INTERPOSE_ELF_IMPORTS_H_ */
