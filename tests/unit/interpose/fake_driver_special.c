/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the fake driver that do something. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/interpose/fake_driver.h"
#include "tests/unit/interpose/fake_driver_record.h"

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  DRIVER_VERSION = 13000,
  FOUND = 0,
  NOT_FOUND = 1,
  VERSION_NOT_SUFFICIENT = 2,
  PER_THREAD = 2
};

static const struct key {
  const char *base;
  int version;
  int per_thread;
  int index;
} keys[] = {
#define HEDDLE_KEY(base, version, per_thread, symbol, index, type) \
  {base, version, per_thread, index},
#include "interpose/keys.inc"
#undef HEDDLE_KEY
};

static int is_on(const char *variable) {
  const char *value = getenv(variable);
  return value && strcmp(value, "1") == 0;
}

static void record(int family, int index, const void *a, const void *b) {
  fake_record(family, index, (unsigned long)a, (unsigned long)b, 0, 0, 0, 0, 0,
              0, 0, 0, 0);
}

/* The newest version that is not newer than the one asked for; the per-thread
 * variant if asked for and existing. */
static const struct key *find(const char *base, int version, int per_thread,
                              int *status) {
  const struct key *best[2] = {NULL, NULL};
  *status = NOT_FOUND;
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
    if (strcmp(keys[i].base, base) != 0) continue;
    if (*status == NOT_FOUND) *status = VERSION_NOT_SUFFICIENT;
    if (keys[i].version > version) continue;
    const struct key **slot = &best[keys[i].per_thread];
    if (!*slot || (*slot)->version < keys[i].version) *slot = &keys[i];
    *status = FOUND;
  }
  return per_thread && best[1] ? best[1] : best[0];
}

static void *function_of(int index);

static int get_proc_address(const char *symbol, void **pfn, int version,
                            unsigned long flags, int *status) {
  /* A failure leaves every out-parameter as it was. */
  if (!symbol || !pfn || version > DRIVER_VERSION) return INVALID_VALUE;
  int found;
  const struct key *key =
      find(symbol, version, (flags & PER_THREAD) != 0, &found);
  if (status) *status = key ? FOUND : found;
  *pfn = key ? function_of(key->index) : NULL;
  /* One body for two unlike functions, as drivers have for what they no longer
   * support. */
  if (is_on("FAKE_SHARED") && strcmp(symbol, "cuParamSetSize") == 0) {
    *pfn = fake_functions[FAKE_FAMILY_ELF][FAKE_INDEX_cuCtxAttach];
  }
  return SUCCESS;
}

/* The exported one, and one that only cuGetProcAddress returns. */
#define DEFINE_GET_PROC_ADDRESS(name, family)                                  \
  int name(const char *symbol, void **pfn, int version, unsigned long flags) { \
    record(family, FAKE_INDEX_cuGetProcAddress, symbol, pfn);                  \
    return get_proc_address(symbol, pfn, version, flags, NULL);                \
  }
#define DEFINE_GET_PROC_ADDRESS_V2(name, family)                             \
  int name(const char *symbol, void **pfn, int version, unsigned long flags, \
           int *status) {                                                    \
    record(family, FAKE_INDEX_cuGetProcAddress_v2, symbol, pfn);             \
    return get_proc_address(symbol, pfn, version, flags, status);            \
  }

int cuGetProcAddress(const char *symbol, void **pfn, int version,
                     unsigned long flags);
int cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
                        unsigned long flags, int *status);
DEFINE_GET_PROC_ADDRESS(cuGetProcAddress, FAKE_FAMILY_ELF)
DEFINE_GET_PROC_ADDRESS_V2(cuGetProcAddress_v2, FAKE_FAMILY_ELF)
static DEFINE_GET_PROC_ADDRESS(
    proc_v1,
    FAKE_FAMILY_PROC) static DEFINE_GET_PROC_ADDRESS_V2(proc_v2,
                                                        FAKE_FAMILY_PROC)

    static void *function_of(int index) {
  if (!is_on("FAKE_PROC_ALIAS") || index == FAKE_INDEX_cuGetExportTable ||
      index == FAKE_INDEX_cuParamSetf || index == FAKE_INDEX_cuInit) {
    return fake_functions[FAKE_FAMILY_ELF][index];
  }
  if (index == FAKE_INDEX_cuGetProcAddress) return (void *)proc_v1;
  if (index == FAKE_INDEX_cuGetProcAddress_v2) return (void *)proc_v2;
  return fake_functions[FAKE_FAMILY_PROC][index];
}

static const void *const private_table[] = {(void *)(3 * sizeof(void *)),
                                            private_table, private_table};

int cuGetExportTable(const void **table, const void *uuid);
int cuGetExportTable(const void **table, const void *uuid) {
  record(FAKE_FAMILY_ELF, FAKE_INDEX_cuGetExportTable, table, uuid);
  if (!table || !uuid) return INVALID_VALUE;
  *table = private_table;
  return SUCCESS;
}

static float last_float;
float fake_driver_last_float(void) { return last_float; }

int cuParamSetf(void *function, int offset, float value);
int cuParamSetf(void *function, int offset, float value) {
  record(FAKE_FAMILY_ELF, FAKE_INDEX_cuParamSetf, function,
         (void *)(long)offset);
  last_float = value;
  return SUCCESS;
}

static void inject(void) {
  static int done;
  const char *path = getenv("CUDA_INJECTION64_PATH");
  if (!path || done) return;
  done = 1;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *entry = handle ? dlsym(handle, "InitializeInjection") : NULL;
  if (entry) ((int (*)(void))entry)();
}

int cuInit(unsigned int flags);
int cuInit(unsigned int flags) {
  static _Thread_local int inside;
  record(FAKE_FAMILY_ELF, FAKE_INDEX_cuInit, (void *)(unsigned long)flags,
         NULL);
  inject();
  if (is_on("FAKE_WSL") && !inside) {
    inside = 1;
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned int) =
        handle ? (int (*)(unsigned int))dlsym(handle, "cuInit") : NULL;
    const int result = init == cuInit ? init(flags) : INVALID_VALUE;
    inside = 0;
    return result;
  }
  return SUCCESS;
}
