/* SPDX-License-Identifier: Apache-2.0 */
/* The second way in, for programs that LD_PRELOAD does not reach (a DT_RPATH or
 * RTLD_DEEPBIND in the way, an environment that is cleaned): the driver loads
 * the library that CUDA_INJECTION64_PATH names and calls InitializeInjection
 * during cuInit. By then the program holds driver addresses: imports that are
 * bound, and pointers that a CUDA runtime has stored. They are replaced where
 * they lie.
 *
 * Out of reach: pointers on the heap, and libraries loaded after cuInit. */

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/dispatch.h"
#include "interpose/dlsym.h"
#include "interpose/driver.h"
#include "interpose/elf_imports.h"
#include "interpose/log.h"
#include "interpose/maps.h"
#include "interpose/runtime_loader.h"

struct mapping {
  uintptr_t start;
  uintptr_t end;
  int protection;
};

struct injection {
  const struct heddle_driver *driver;
  /* What is mapped now, ascending: a program may have protected a part of its
   * data, which must not be touched, and relocations are read-only. */
  struct mapping *mappings;
  size_t mapping_count;
  size_t mapping_capacity;
  int other_copy;
  int is_preloaded;
  unsigned imports;
  unsigned words;
  unsigned shared_addresses;
};

static int take_mapping(const struct heddle_mapping *mapping, void *data) {
  struct injection *injection = data;
  if (injection->mapping_count == injection->mapping_capacity) {
    const size_t capacity =
        injection->mapping_capacity ? 2 * injection->mapping_capacity : 1024;
    void *grown =
        realloc(injection->mappings, capacity * sizeof injection->mappings[0]);
    if (!grown) return 1;
    injection->mappings = grown;
    injection->mapping_capacity = capacity;
  }
  injection->mappings[injection->mapping_count++] =
      (struct mapping){mapping->start, mapping->end, mapping->protection};
  return 0;
}

static const struct mapping *mapping_of(const struct injection *injection,
                                        uintptr_t address) {
  size_t low = 0;
  size_t high = injection->mapping_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (injection->mappings[middle].end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < injection->mapping_count &&
                 injection->mappings[low].start <= address
             ? &injection->mappings[low]
             : NULL;
}

/* Replaces `*slot`, if it still holds `expected`. */
static int replace(const struct injection *injection, void **slot,
                   void *expected, void *replacement) {
  const struct mapping *mapping = mapping_of(injection, (uintptr_t)slot);
  if (!mapping || !(mapping->protection & PROT_READ)) return 0;
  const uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)((uintptr_t)slot & ~(page_size - 1));
  const int is_writable = mapping->protection & PROT_WRITE;
  if (!is_writable &&
      mprotect(page, page_size, mapping->protection | PROT_WRITE) != 0) {
    return 0;
  }
  const int done = __atomic_compare_exchange_n(
      slot, &expected, replacement, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  if (!is_writable) mprotect(page, page_size, mapping->protection);
  return done;
}

/* A slot that leads to its object's own code has not been bound yet. Any other
 * value is left: it is not the driver's, or not relocated yet. */
static int leads_to(const struct heddle_import *import, void *value,
                    const void *expected) {
  return value == expected ||
         (import->is_plt &&
          heddle_object_contains(import->object, (uintptr_t)value, 1, PF_X));
}

static void patch_import(const struct heddle_import *import, void *data) {
  struct injection *injection = data;
  const struct mapping *mapping =
      mapping_of(injection, (uintptr_t)import->slot);
  if (!mapping || !(mapping->protection & PROT_READ)) return;
  void *value = __atomic_load_n(import->slot, __ATOMIC_RELAXED);
  if (strcmp(import->name, "dlsym") == 0) {
    if (leads_to(import, value, (void *)heddle_real_dlsym())) {
      injection->imports += (unsigned)replace(injection, import->slot, value,
                                              (void *)heddle_dlsym_entry);
    }
    return;
  }
  if (import->name[0] != 'c' || import->name[1] != 'u') return;
  const int index = heddle_symbol_index(import->name);
  if (index < 0 || !injection->driver->real[index] ||
      !leads_to(import, value, injection->driver->real[index])) {
    return;
  }
  if (!replace(injection, import->slot, value,
               (void *)heddle_wrappers[HEDDLE_FAMILY_ELF][index])) {
    return;
  }
  ++injection->imports;
  /* An import that is not bound yet would most likely have come to us. */
  if (!injection->is_preloaded || value == injection->driver->real[index]) {
    heddle_count_route(index, HEDDLE_ROUTE_INJECTION);
  }
}

/* `word` holds the address of a driver function. */
static void patch_word(struct injection *injection, void **word, int entry) {
  const struct heddle_driver *driver = injection->driver;
  const struct heddle_driver_address *found = &driver->by_address[entry];
  if (entry + 1 < driver->address_count &&
      found[1].address == found[0].address) {
    ++injection->shared_addresses; /* Which of the functions is meant? */
    return;
  }
  if (replace(injection, word, found->address,
              (void *)heddle_wrappers[HEDDLE_FAMILY_ELF][found->index])) {
    ++injection->words;
    heddle_count_route(found->index, HEDDLE_ROUTE_INJECTION);
  }
}

static void scan_words(struct injection *injection, uintptr_t start,
                       uintptr_t end) {
  const struct heddle_driver *driver = injection->driver;
  const uintptr_t lowest = (uintptr_t)driver->by_address[0].address;
  const uintptr_t highest =
      (uintptr_t)driver->by_address[driver->address_count - 1].address;
  for (uintptr_t at = (start + 7) & ~(uintptr_t)7; at + 8 <= end; at += 8) {
    void **word = (void **)at;
    const uintptr_t value = (uintptr_t)__atomic_load_n(word, __ATOMIC_RELAXED);
    if (value < lowest || value > highest) continue;
    const int entry = heddle_driver_find(driver, (const void *)value);
    if (entry >= 0) patch_word(injection, word, entry);
  }
}

static void scan_data(struct injection *injection,
                      const struct dl_phdr_info *object) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W)) continue;
    const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
    const uintptr_t end = start + segment->p_memsz;
    uintptr_t at = start;
    while (at < end) {
      const struct mapping *mapping = mapping_of(injection, at);
      if (!mapping) break;
      const uintptr_t stop = mapping->end < end ? mapping->end : end;
      if (mapping->protection & PROT_READ) scan_words(injection, at, stop);
      at = stop;
    }
  }
}

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The driver with its own helpers, the C library and its linker, and ourselves
 * keep what they have. */
static int is_left_alone(const struct injection *injection,
                         const struct dl_phdr_info *object) {
  static const char *const prefixes[] = {"ld-linux", "libc.so", "libnvidia-",
                                         "linux-vdso", "libheddle_"};
  const char *name = file_name(object->dlpi_name);
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i) {
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return 1;
  }
  return heddle_is_driver_path(name) ||
         heddle_object_contains(object, (uintptr_t)&is_left_alone, 1, PF_X) ||
         heddle_object_contains(
             object, (uintptr_t)injection->driver->by_address[0].address, 1,
             PF_X);
}

static int patch_object(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  struct injection *injection = data;
  if (is_left_alone(injection, object)) return 0;
  heddle_visit_imports(object, patch_import, injection);
  scan_data(injection, object);
  return 0;
}

static int find_other_copy(struct dl_phdr_info *object, size_t size,
                           void *data) {
  (void)size;
  struct injection *injection = data;
  if (strcmp(file_name(object->dlpi_name), "libheddle_preload.so") == 0 &&
      !heddle_object_contains(object, (uintptr_t)&find_other_copy, 1, PF_X)) {
    injection->other_copy = 1;
  }
  return injection->other_copy;
}

/* Is this library in the program's global scope? */
static int is_preloaded(void) {
  void *program = dlopen(NULL, RTLD_LAZY);
  return program && heddle_is_own_address(heddle_real_dlsym()(
                        program, "InitializeInjectionNvtx2"));
}

/* Called by the driver. Harmless if this library is preloaded as well: what
 * leads to a wrapper already is no driver address, and what does not, because
 * preloading could not reach it, is mended. Always 1: the program's cuInit must
 * not fail because of us. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void) {
  if (!heddle_is_active()) return 1;
  struct injection injection = {0};
  injection.driver = heddle_driver(__builtin_return_address(0), 1);
  injection.is_preloaded = is_preloaded();
  dl_iterate_phdr(find_other_copy, &injection);
  if (injection.other_copy) {
    heddle_log(HEDDLE_LOG_WARN,
               "CUDA_INJECTION64_PATH names a second copy of "
               "libheddle_preload.so: ignored");
  } else if (injection.driver) {
    heddle_visit_mappings(take_mapping, &injection);
    dl_iterate_phdr(patch_object, &injection);
    heddle_log(HEDDLE_LOG_INFO,
               "injected: %u imports and %u pointers replaced, %u left that "
               "several functions share",
               injection.imports, injection.words, injection.shared_addresses);
  }
  free(injection.mappings);
  return 1;
}
