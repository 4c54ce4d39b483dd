/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/dlsym.h"
#include "interpose/log.h"

static _Atomic(const struct heddle_driver *) known_driver;

int heddle_is_driver_path(const char *path) {
  if (!path) return 0;
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  static const char *const prefixes[] = {"libcuda.so", "libcudadebugger.so"};
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; ++i) {
    if (strncmp(file, prefixes[i], strlen(prefixes[i])) == 0) return 1;
  }
  return 0;
}

int heddle_is_driver_code(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info)) return 0;
  const struct heddle_driver *driver = heddle_known_driver();
  if (driver && info.dli_fbase == driver->base) return 1;
  return heddle_is_driver_path(info.dli_fname);
}

static int by_address(const void *left, const void *right) {
  const struct heddle_driver_address *a = left;
  const struct heddle_driver_address *b = right;
  if (a->address != b->address) {
    return (uintptr_t)a->address < (uintptr_t)b->address ? -1 : 1;
  }
  return a->index - b->index;
}

static struct heddle_driver *read_driver(void *handle) {
  struct heddle_driver *driver = calloc(1, sizeof *driver);
  if (!driver) return NULL;
  const heddle_dlsym_fn real_dlsym = heddle_real_dlsym();
  for (int i = 0; i < HEDDLE_SYMBOL_COUNT; ++i) {
    void *address = real_dlsym(handle, heddle_symbols[i]);
    /* A wrapper as its own destination would never return. */
    if (!address || heddle_is_own_address(address)) continue;
    driver->real[i] = address;
    driver->by_address[driver->address_count].address = address;
    driver->by_address[driver->address_count++].index = i;
  }
  dlerror(); /* Symbols that this driver lacks are no error of the program. */
  qsort(driver->by_address, driver->address_count, sizeof driver->by_address[0],
        by_address);
  Dl_info info;
  if (driver->address_count && dladdr(driver->by_address[0].address, &info)) {
    driver->base = info.dli_fbase;
  }
  return driver;
}

/* A handle on the object that holds `address`, which is loaded already. */
static void *open_object_of(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return NULL;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

const struct heddle_driver *heddle_known_driver(void) {
  return atomic_load_explicit(&known_driver, memory_order_acquire);
}

const struct heddle_driver *heddle_driver(const void *hint, int load) {
  const struct heddle_driver *known = heddle_known_driver();
  if (known) return known;

  void *handle =
      hint && heddle_is_driver_code(hint) ? open_object_of(hint) : NULL;
  if (!handle) handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle && load) handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    if (load) {
      heddle_log(HEDDLE_LOG_WARN, "no CUDA driver: %s", dlerror());
    } else {
      dlerror();
    }
    return NULL;
  }
  /* The handle is kept for good: its functions are in our targets. */
  struct heddle_driver *driver = read_driver(handle);
  if (!driver) return NULL;
  if (driver->address_count == 0) {
    free(driver);
    return NULL;
  }
  /* Several threads may have come here; all have read the same. */
  if (!atomic_compare_exchange_strong(&known_driver, &known, driver)) {
    free(driver);
    return known;
  }
  heddle_log(HEDDLE_LOG_INFO, "driver found: %d of %d symbols",
             driver->address_count, (int)HEDDLE_SYMBOL_COUNT);
  return driver;
}

int heddle_driver_find(const struct heddle_driver *driver,
                       const void *address) {
  int low = 0;
  int high = driver->address_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if ((uintptr_t)driver->by_address[middle].address < (uintptr_t)address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < driver->address_count &&
                 driver->by_address[low].address == address
             ? low
             : -1;
}
