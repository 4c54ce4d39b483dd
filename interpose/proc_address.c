/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/proc_address.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <string.h>

#include "interpose/dispatch.h"
#include "interpose/driver.h"
#include "interpose/log.h"
#include "interpose/runtime_loader.h"

/* A pair whose types differ is worth nothing: a hook on the symbol would read
 * the arguments wrongly. */
#define HEDDLE_KEY(base, version, per_thread, symbol, index, type) \
  {base, version, per_thread,                                      \
   __builtin_types_compatible_p(__typeof__(&symbol), type) ? (index) : -1},

/* Sorted by base name and version. */
static const struct {
  const char *base;
  int version;
  int per_thread;
  int index;
} keys[] = {
#include "interpose/keys.inc"
};
#undef HEDDLE_KEY

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

static int first_key_of(const char *base) {
  int low = 0;
  int high = KEY_COUNT;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (strcmp(keys[middle].base, base) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

int heddle_symbol_of_key(const char *base, int version, int per_thread) {
  if (version > CUDA_VERSION) return -1;
  int best[2] = {-1, -1};
  for (int i = first_key_of(base);
       i < KEY_COUNT && strcmp(keys[i].base, base) == 0; ++i) {
    if (keys[i].version <= version) best[keys[i].per_thread] = keys[i].index;
  }
  /* A function without a per-thread variant has the one. */
  return per_thread && best[1] >= 0 ? best[1] : best[0];
}

/* Is `symbol` `base`, or `base` with a version or stream suffix? */
static int has_base(const char *symbol, const char *base) {
  const size_t length = strlen(base);
  if (strncmp(symbol, base, length) != 0) return 0;
  const char *rest = symbol + length;
  if (rest[0] == '_' && rest[1] == 'v') {
    rest += 2;
    while (*rest >= '0' && *rest <= '9') ++rest;
  }
  return *rest == 0 || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
}

/* The symbol whose ELF address `address` is. Drivers let several symbols share
 * an address: then the key decides, and else a matching name. An address that
 * is shared by functions of unlike names (one stub for all that is no longer
 * supported) says nothing about the arguments. */
static int symbol_at(const struct heddle_driver *driver, const void *address,
                     const char *base, int key) {
  int found = -1;
  int i = heddle_driver_find(driver, address);
  for (; i >= 0 && i < driver->address_count &&
         driver->by_address[i].address == address;
       ++i) {
    const int index = driver->by_address[i].index;
    if (index == key) return key;
    if (has_base(heddle_symbols[index], base)) found = index;
  }
  return found;
}

/* What the program is given in place of `address`, which the driver returned
 * for this request. */
static void *substitute(void *address, const char *base, int version,
                        int per_thread) {
  const struct heddle_driver *driver = heddle_known_driver();
  if (!base || !driver || heddle_is_own_address(address)) return address;
  const int key = heddle_symbol_of_key(base, version, per_thread);
  const int elf = symbol_at(driver, address, base, key);
  if (elf >= 0) {
    heddle_count_route(elf, HEDDLE_ROUTE_PROC_ADDRESS);
    return (void *)heddle_wrappers[HEDDLE_FAMILY_ELF][elf];
  }
  if (heddle_driver_find(driver, address) >= 0 || key < 0 ||
      !heddle_set_proc_real(key, address)) {
    heddle_log(HEDDLE_LOG_DEBUG,
               "cuGetProcAddress(\"%s\", %d): left as the driver gave it", base,
               version);
    return address;
  }
  heddle_count_route(key, HEDDLE_ROUTE_PROC_ADDRESS);
  return (void *)heddle_wrappers[HEDDLE_FAMILY_PROC][key];
}

static int may_substitute(const void *caller) {
  return heddle_is_active() && !heddle_in_runtime() &&
         !heddle_is_driver_code(caller) && !heddle_is_runtime_code(caller);
}

/* One interceptor for each version and family. Wrappers jump, so the return
 * address is the program's. Out-parameters are read on success only. */
#define DEFINE_V1(name, family)                                          \
  static CUresult name(const char *symbol, void **pfn, int version,      \
                       cuuint64_t flags) {                               \
    const PFN_cuGetProcAddress_v11030 next =                             \
        (PFN_cuGetProcAddress_v11030)heddle_hook_or_real(                \
            family, HEDDLE_INDEX_cuGetProcAddress);                      \
    const CUresult result = next(symbol, pfn, version, flags);           \
    if (result == CUDA_SUCCESS && pfn && *pfn &&                         \
        may_substitute(__builtin_return_address(0))) {                   \
      *pfn = substitute(                                                 \
          *pfn, symbol, version,                                         \
          (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0); \
    }                                                                    \
    return result;                                                       \
  }

#define DEFINE_V2(name, family)                                          \
  static CUresult name(const char *symbol, void **pfn, int version,      \
                       cuuint64_t flags,                                 \
                       CUdriverProcAddressQueryResult *status) {         \
    const PFN_cuGetProcAddress_v12000 next =                             \
        (PFN_cuGetProcAddress_v12000)heddle_hook_or_real(                \
            family, HEDDLE_INDEX_cuGetProcAddress_v2);                   \
    const CUresult result = next(symbol, pfn, version, flags, status);   \
    if (result == CUDA_SUCCESS && pfn && *pfn &&                         \
        may_substitute(__builtin_return_address(0))) {                   \
      *pfn = substitute(                                                 \
          *pfn, symbol, version,                                         \
          (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0); \
    }                                                                    \
    return result;                                                       \
  }

DEFINE_V1(elf_v1, HEDDLE_FAMILY_ELF)
DEFINE_V1(proc_v1, HEDDLE_FAMILY_PROC)
DEFINE_V2(elf_v2, HEDDLE_FAMILY_ELF)
DEFINE_V2(proc_v2, HEDDLE_FAMILY_PROC)

void *heddle_interceptor(enum heddle_family family, int index) {
  const int elf = family == HEDDLE_FAMILY_ELF;
  if (index == HEDDLE_INDEX_cuGetProcAddress) {
    return elf ? (void *)&elf_v1 : (void *)&proc_v1;
  }
  if (index == HEDDLE_INDEX_cuGetProcAddress_v2) {
    return elf ? (void *)&elf_v2 : (void *)&proc_v2;
  }
  return NULL;
}
