/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "interpose/driver.h"
#include "interpose/elf_imports.h"
#include "interpose/log.h"
#include "interpose/proc_address.h"
#include "interpose/runtime_loader.h"

static _Atomic(void *) hooks[HEDDLE_SYMBOL_COUNT];
static _Atomic(void *) proc_real[HEDDLE_SYMBOL_COUNT];
static _Atomic uint64_t call_counts[HEDDLE_SYMBOL_COUNT];
static _Atomic uint64_t route_counts[HEDDLE_SYMBOL_COUNT][HEDDLE_ROUTE_COUNT];
static atomic_int counting;
static atomic_int stopped;

/* Orders the writers of heddle_targets: a target is worked out from several
 * variables and must not be overwritten by an older result. Nothing is called
 * under it, least of all the dynamic linker, whose lock a caller of ours may
 * hold. */
static pthread_mutex_t targets_lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes any arguments: both ABIs leave them to the caller. */
static int symbol_missing(void) {
  enum { kCudaErrorNotFound = 500 };
  return kCudaErrorNotFound;
}

static void *driver_function(enum heddle_family family, int index) {
  if (family == HEDDLE_FAMILY_PROC) {
    void *address = atomic_load(&proc_real[index]);
    if (address) return address;
  }
  const struct heddle_driver *driver = heddle_known_driver();
  return driver ? driver->real[index] : NULL;
}

int heddle_is_stopped(void) {
  return atomic_load_explicit(&stopped, memory_order_acquire);
}

void *heddle_hook_or_real(enum heddle_family family, int index) {
  void *hook = heddle_is_stopped() ? NULL : atomic_load(&hooks[index]);
  if (hook) return hook;
  void *real = driver_function(family, index);
  return real ? real : (void *)&symbol_missing;
}

static void *destination(enum heddle_family family, int index) {
  void *interceptor =
      heddle_is_active() ? heddle_interceptor(family, index) : NULL;
  return interceptor ? interceptor : heddle_hook_or_real(family, index);
}

/* With targets_lock held. */
static void publish(enum heddle_family family, int index) {
  const int slow = !heddle_known_driver() || !heddle_runtime_is_settled() ||
                   (atomic_load(&counting) && !heddle_is_stopped());
  void *target = slow ? (void *)heddle_slow_stubs[family][index]
                      : destination(family, index);
  atomic_store_explicit(&heddle_targets[family][index], target,
                        memory_order_release);
}

static void publish_both(int index) {
  publish(HEDDLE_FAMILY_ELF, index);
  publish(HEDDLE_FAMILY_PROC, index);
}

static void publish_all(void) {
  pthread_mutex_lock(&targets_lock);
  for (int i = 0; i < HEDDLE_SYMBOL_COUNT; ++i) publish_both(i);
  pthread_mutex_unlock(&targets_lock);
}

void *heddle_slow_call(enum heddle_family family, int index) {
  const int saved_errno = errno;
  heddle_driver(NULL, 1);
  heddle_start_runtime();
  if (atomic_load_explicit(&counting, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&call_counts[index], 1, memory_order_relaxed);
  } else {
    pthread_mutex_lock(&targets_lock);
    publish(family, index);
    pthread_mutex_unlock(&targets_lock);
  }
  errno = saved_errno;
  return destination(family, index);
}

int heddle_set_proc_real(int index, void *address) {
  void *expected = NULL;
  return atomic_compare_exchange_strong(&proc_real[index], &expected,
                                        address) ||
         expected == address;
}

void heddle_count_route(int index, int route) {
  atomic_fetch_add_explicit(&route_counts[index][route], 1,
                            memory_order_relaxed);
}

void heddle_stop(void) {
  atomic_store(&stopped, 1);
  publish_all();
}

void heddle_dispatch_before_fork(void) { pthread_mutex_lock(&targets_lock); }
void heddle_dispatch_after_fork(void) { pthread_mutex_unlock(&targets_lock); }

/* HeddleInterposer. */

static void *real(const char *symbol) {
  const int index = heddle_symbol_index(symbol);
  if (index < 0) return NULL;
  heddle_driver(NULL, 1);
  void *address = driver_function(HEDDLE_FAMILY_ELF, index);
  return address ? address : driver_function(HEDDLE_FAMILY_PROC, index);
}

static int set_hook(const char *symbol, void *replacement) {
  const int index = heddle_symbol_index(symbol);
  if (index < 0) return -1;
  pthread_mutex_lock(&targets_lock);
  atomic_store(&hooks[index], replacement);
  publish_both(index);
  pthread_mutex_unlock(&targets_lock);
  return 0;
}

static void enable_counting(int on) {
  atomic_store(&counting, on != 0);
  publish_all();
}

static uint64_t calls(uint32_t index) {
  return index < HEDDLE_SYMBOL_COUNT ? atomic_load(&call_counts[index]) : 0;
}

static uint64_t route_calls(uint32_t index, int route) {
  if (index >= HEDDLE_SYMBOL_COUNT || route < 0 ||
      route >= HEDDLE_ROUTE_COUNT) {
    return 0;
  }
  /* Nobody asks us when the dynamic linker binds an import: they are counted
   * where they lie. */
  return route == HEDDLE_ROUTE_ELF ? heddle_count_elf_imports((int)index)
                                   : atomic_load(&route_counts[index][route]);
}

static void disable(const char *reason) {
  static atomic_int printed;
  heddle_stop();
  if (!atomic_exchange(&printed, 1)) {
    heddle_log(HEDDLE_LOG_ERROR, "disabled: %s", reason ? reason : "");
  }
}

const HeddleInterposer heddle_interposer = {
    .abi_version = HEDDLE_HOOK_ABI_VERSION,
    .struct_size = sizeof(HeddleInterposer),
    .symbol_count = HEDDLE_SYMBOL_COUNT,
    .symbols = heddle_symbols,
    .real = real,
    .set_hook = set_hook,
    .enable_counting = enable_counting,
    .calls = calls,
    .route_calls = route_calls,
    .disable = disable,
};
