/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/dlsym.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

#include "interpose/dispatch.h"
#include "interpose/driver.h"
#include "interpose/runtime_loader.h"
#include "interpose/surface.h"

/* Not a constructor: other libraries' constructors may run, and call dlsym,
 * before ours. dlvsym and not a private symbol of glibc, with each version that
 * dlsym has had (it moved from libdl to libc in 2.34). */
heddle_dlsym_fn heddle_real_dlsym(void) {
  static _Atomic(void *) found;
  void *real = atomic_load_explicit(&found, memory_order_acquire);
  if (real) return (heddle_dlsym_fn)real;
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5",
                                         "GLIBC_2.17"};
  for (unsigned i = 0; !real && i < sizeof versions / sizeof versions[0]; ++i) {
    real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  }
  atomic_store_explicit(&found, real, memory_order_release);
  return (heddle_dlsym_fn)real;
}

/* A look-up over the global scope found our export, which hides what the
 * program would have found: what comes after us there, else what the caller's
 * own dependencies have. If that is nothing, dlerror() says so. */
static void *find_behind_us(void *handle, const char *name,
                            const void *caller) {
  const heddle_dlsym_fn real_dlsym = heddle_real_dlsym();
  void *found = real_dlsym(RTLD_NEXT, name); /* from here: after us */
  Dl_info info;
  struct link_map *map = NULL;
  if (!found && handle == RTLD_DEFAULT &&
      dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
      map->l_name && *map->l_name) {
    void *object = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (object) {
      found = real_dlsym(object, name);
      dlclose(object);
    }
    if (found && heddle_is_own_address(found)) found = NULL;
  }
  return found ? found : real_dlsym(RTLD_NEXT, name);
}

/* The wrapper for `found`, if that is the driver's own function for exactly
 * this symbol, and the program is to be given wrappers; else NULL. */
static void *wrapper_for(int index, void *found, const void *caller) {
  Dl_info info;
  if (!heddle_is_active() || heddle_is_driver_code(caller) ||
      heddle_is_runtime_code(caller) || !dladdr(found, &info) ||
      !heddle_is_driver_path(info.dli_fname)) {
    return NULL;
  }
  /* A second driver, in another namespace or from another path, is left alone:
   * a wrapper could not lead to both. */
  const struct heddle_driver *driver = heddle_driver(found, 0);
  if (!driver || driver->real[index] != found) return NULL;
  heddle_count_route(index, HEDDLE_ROUTE_DLSYM);
  return (void *)heddle_wrappers[HEDDLE_FAMILY_ELF][index];
}

struct heddle_dlsym_answer heddle_filter_dlsym(void *handle, const char *name,
                                               void *caller) {
  const heddle_dlsym_fn real_dlsym = heddle_real_dlsym();
  const struct heddle_dlsym_answer pass = {(void *)real_dlsym, 0};
  if (handle == RTLD_NEXT || !name || name[0] != 'c' || name[1] != 'u') {
    return pass;
  }
  const int index = heddle_symbol_index(name);
  if (index < 0 || heddle_in_runtime()) return pass;

  /* From here, not from the caller: for a handle that is the same; for
   * RTLD_DEFAULT it is the global scope, which comes first for every caller.
   * When this finds nothing, the real one is entered after all. */
  void *found = real_dlsym(handle, name);
  if (!found) return pass;
  const int is_ours = heddle_is_own_address(found);
  if (is_ours) found = find_behind_us(handle, name, caller);
  void *wrapper = found ? wrapper_for(index, found, caller) : NULL;
  if (wrapper) return (struct heddle_dlsym_answer){wrapper, 1};
  return is_ours ? (struct heddle_dlsym_answer){found, 1} : pass;
}
