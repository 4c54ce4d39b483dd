/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/elf_imports.h"

#include <elf.h>
#include <stdlib.h>

#include "interpose/driver.h"
#include "interpose/surface.h"

#if defined(__x86_64__)
enum {
  RELOC_PLT = R_X86_64_JUMP_SLOT,
  RELOC_GOT = R_X86_64_GLOB_DAT,
  RELOC_WORD = R_X86_64_64
};
#elif defined(__aarch64__)
enum {
  RELOC_PLT = R_AARCH64_JUMP_SLOT,
  RELOC_GOT = R_AARCH64_GLOB_DAT,
  RELOC_WORD = R_AARCH64_ABS64
};
#endif

int heddle_object_contains(const struct dl_phdr_info *object, uintptr_t address,
                           uintptr_t size, uint32_t flags) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags &&
        address >= start && size <= segment->p_memsz &&
        address - start <= segment->p_memsz - size) {
      return 1;
    }
  }
  return 0;
}

/* The part of PT_DYNAMIC that leads to the imports. */
struct dynamic {
  const ElfW(Sym) * symbols;
  const char *strings;
  uintptr_t strings_size;
  const ElfW(Rela) * tables[2]; /* DT_JMPREL, DT_RELA */
  uintptr_t table_sizes[2];
};

/* The dynamic linker has put addresses in the place of offsets, except in the
 * vDSO, which it does not write to. */
static uintptr_t absolute(const struct dl_phdr_info *object, uintptr_t value) {
  return value < object->dlpi_addr ? value + object->dlpi_addr : value;
}

static void read_entry(const struct dl_phdr_info *object,
                       const ElfW(Dyn) * entry, struct dynamic *dynamic) {
  const uintptr_t address = absolute(object, entry->d_un.d_ptr);
  switch (entry->d_tag) {
    case DT_SYMTAB:
      dynamic->symbols = (const ElfW(Sym) *)address;
      break;
    case DT_STRTAB:
      dynamic->strings = (const char *)address;
      break;
    case DT_STRSZ:
      dynamic->strings_size = entry->d_un.d_val;
      break;
    case DT_JMPREL:
      dynamic->tables[0] = (const ElfW(Rela) *)address;
      break;
    case DT_PLTRELSZ:
      dynamic->table_sizes[0] = entry->d_un.d_val;
      break;
    case DT_RELA:
      dynamic->tables[1] = (const ElfW(Rela) *)address;
      break;
    case DT_RELASZ:
      dynamic->table_sizes[1] = entry->d_un.d_val;
      break;
    default:
      break;
  }
}

static int read_dynamic(const struct dl_phdr_info *object,
                        struct dynamic *dynamic) {
  *dynamic = (struct dynamic){0};
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_DYNAMIC) continue;
    const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
    if (!heddle_object_contains(object, start, segment->p_memsz, PF_R)) break;
    const ElfW(Dyn) *entry = (const ElfW(Dyn) *)start;
    const uintptr_t count = segment->p_memsz / sizeof *entry;
    for (uintptr_t k = 0; k < count && entry[k].d_tag != DT_NULL; ++k) {
      read_entry(object, &entry[k], dynamic);
    }
  }
  return dynamic->symbols && dynamic->strings &&
         heddle_object_contains(object, (uintptr_t)dynamic->strings,
                                dynamic->strings_size, PF_R);
}

static const char *import_name(const struct dl_phdr_info *object,
                               const struct dynamic *dynamic,
                               const ElfW(Rela) * relocation) {
  const ElfW(Sym) *symbol = &dynamic->symbols[ELF64_R_SYM(relocation->r_info)];
  if (!heddle_object_contains(object, (uintptr_t)symbol, sizeof *symbol,
                              PF_R) ||
      symbol->st_name >= dynamic->strings_size) {
    return NULL;
  }
  return dynamic->strings + symbol->st_name;
}

void heddle_visit_imports(const struct dl_phdr_info *object,
                          void (*visit)(const struct heddle_import *import,
                                        void *data),
                          void *data) {
  struct dynamic dynamic;
  if (!read_dynamic(object, &dynamic)) return;
  for (int t = 0; t < 2; ++t) {
    const ElfW(Rela) *table = dynamic.tables[t];
    if (!table || !heddle_object_contains(object, (uintptr_t)table,
                                          dynamic.table_sizes[t], PF_R)) {
      continue;
    }
    const uintptr_t count = dynamic.table_sizes[t] / sizeof *table;
    for (uintptr_t i = 0; i < count; ++i) {
      const uint32_t type = ELF64_R_TYPE(table[i].r_info);
      if (type != RELOC_PLT && type != RELOC_GOT && type != RELOC_WORD) {
        continue;
      }
      const uintptr_t slot = object->dlpi_addr + table[i].r_offset;
      const char *name = import_name(object, &dynamic, &table[i]);
      if (!name || slot % sizeof(void *) != 0 ||
          !heddle_object_contains(object, slot, sizeof(void *), PF_R)) {
        continue;
      }
      const struct heddle_import import = {object, name, (void **)slot,
                                           type == RELOC_PLT};
      visit(&import, data);
    }
  }
}

/* The imports of surface names in all loaded objects. Valid while no object
 * comes or goes; read and rebuilt only inside dl_iterate_phdr(), whose lock
 * guards it. */
static struct {
  unsigned long long adds;
  unsigned long long subs;
  struct known_import {
    void **slot;
    int index;
  } * imports;
  size_t count;
  size_t capacity;
} known;

static void remember(const struct heddle_import *import, void *data) {
  (void)data;
  if (import->name[0] != 'c' || import->name[1] != 'u') return;
  const int index = heddle_symbol_index(import->name);
  if (index < 0) return;
  if (known.count == known.capacity) {
    const size_t capacity = known.capacity ? 2 * known.capacity : 256;
    void *grown = realloc(known.imports, capacity * sizeof known.imports[0]);
    if (!grown) return;
    known.imports = grown;
    known.capacity = capacity;
  }
  known.imports[known.count].slot = import->slot;
  known.imports[known.count++].index = index;
}

struct import_count {
  int index;
  int rebuilding;
  uint64_t bound;
};

/* Counts the bound ones among the known imports from `first` on. */
static void count_known(struct import_count *request, size_t first) {
  const void *wrapper = heddle_wrappers[HEDDLE_FAMILY_ELF][request->index];
  for (size_t i = first; i < known.count; ++i) {
    if (known.imports[i].index == request->index &&
        __atomic_load_n(known.imports[i].slot, __ATOMIC_RELAXED) == wrapper) {
      ++request->bound;
    }
  }
}

static int visit_object(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  struct import_count *request = data;
  if (!request->rebuilding) {
    if (known.imports && known.adds == object->dlpi_adds &&
        known.subs == object->dlpi_subs) {
      count_known(request, 0);
      return 1;
    }
    request->rebuilding = 1;
    known.count = 0;
    known.adds = object->dlpi_adds;
    known.subs = object->dlpi_subs;
  }
  /* A driver that refers to its own exports is no program. */
  if (heddle_is_driver_path(object->dlpi_name)) return 0;
  const size_t first = known.count;
  heddle_visit_imports(object, remember, NULL);
  count_known(request, first);
  return 0;
}

uint64_t heddle_count_elf_imports(int index) {
  struct import_count request = {index, 0, 0};
  dl_iterate_phdr(visit_object, &request);
  return request.bound;
}
