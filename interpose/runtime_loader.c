/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/runtime_loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interpose/dispatch.h"
#include "interpose/dlsym.h"
#include "interpose/log.h"
#include "interpose/self_path.h"

enum { NOT_STARTED = 0, STARTING = 1, SETTLED = 2 };

static atomic_int state = NOT_STARTED;
static atomic_int attached;
static HeddleRuntime runtime;
static const void *_Atomic runtime_base;

/* initial-exec: no allocation on first use, and room for it is small. */
static _Thread_local int loading __attribute__((tls_model("initial-exec")));

/* secure_getenv: a privileged program must not load what its user names. */
static int is_set(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value;
}

static int is_one(const char *name) {
  const char *value = secure_getenv(name);
  return value && strcmp(value, "1") == 0;
}

static int is_requested(void) {
  enum { UNKNOWN = 0, NO = 1, YES = 2 };
  static atomic_int answer;
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known == UNKNOWN) {
    const int asked = is_set("HEDDLE_TRACE") || is_set("HEDDLE_OPT") ||
                      is_set("HEDDLE_PLAN") || is_set("HEDDLE_DOCTOR") ||
                      is_one("HEDDLE_RUNTIME");
    known = asked && !is_one("HEDDLE_DISABLE") ? YES : NO;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == YES;
}

int heddle_is_active(void) { return is_requested() && !heddle_is_stopped(); }

int heddle_in_runtime(void) { return loading != 0; }

int heddle_runtime_is_settled(void) {
  return atomic_load_explicit(&state, memory_order_acquire) == SETTLED;
}

const HeddleRuntime *heddle_runtime(void) {
  return atomic_load_explicit(&attached, memory_order_acquire) ? &runtime
                                                               : NULL;
}

int heddle_is_runtime_code(const void *address) {
  const void *base = atomic_load_explicit(&runtime_base, memory_order_acquire);
  Dl_info info;
  return base && dladdr(address, &info) && info.dli_fbase == base;
}

static void before_fork(void) {
  const HeddleRuntime *active = heddle_runtime();
  if (active && active->before_fork) active->before_fork();
  heddle_dispatch_before_fork();
}

static void after_fork_parent(void) {
  heddle_dispatch_after_fork();
  const HeddleRuntime *active = heddle_runtime();
  if (active && active->after_fork_parent) active->after_fork_parent();
}

static void after_fork_child(void) {
  heddle_dispatch_after_fork();
  const HeddleRuntime *active = heddle_runtime();
  if (active && active->after_fork_child) active->after_fork_child();
}

/* Registered after the runtime was loaded, hence run before its static objects
 * are destroyed. What the program still calls afterwards must not meet them. */
static void at_exit(void) {
  if (runtime.at_exit) runtime.at_exit();
  atomic_store_explicit(&attached, 0, memory_order_release);
  heddle_stop();
}

/* The runtime lies beside this library in the build folder and one folder up
 * when installed (lib/heddle/libheddle_preload.so). */
static void *open_runtime(void) {
  const char *override = secure_getenv("HEDDLE_RUNTIME_LIBRARY");
  if (override && *override) {
    void *handle = dlopen(override, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      heddle_log(HEDDLE_LOG_ERROR, "the program runs on without heddle: %s",
                 dlerror());
    }
    return handle;
  }
  char folder[PATH_MAX];
  if (!heddle_own_folder(folder, sizeof folder)) {
    heddle_log(HEDDLE_LOG_ERROR,
               "the program runs on without heddle: cannot tell where "
               "libheddle_preload.so lies");
    return NULL;
  }
  static const char *const places[] = {"", "../"};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%slibheddle_runtime.so", folder, places[i]);
    if (access(path, F_OK) != 0) continue;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      heddle_log(HEDDLE_LOG_ERROR, "the program runs on without heddle: %s",
                 dlerror());
    }
    return handle;
  }
  heddle_log(HEDDLE_LOG_ERROR,
             "the program runs on without heddle: no libheddle_runtime.so in "
             "%s or the folder above",
             folder);
  return NULL;
}

/* Returns whether the runtime is active. */
static int attach(void) {
  void *handle = open_runtime();
  if (!handle) return 0;
  void *entry = heddle_real_dlsym()(handle, HEDDLE_RUNTIME_ATTACH_SYMBOL);
  if (!entry) {
    heddle_log(HEDDLE_LOG_ERROR,
               "the program runs on without heddle: the runtime has "
               "no " HEDDLE_RUNTIME_ATTACH_SYMBOL);
    return 0;
  }
  Dl_info info;
  if (dladdr(entry, &info)) {
    atomic_store_explicit(&runtime_base, info.dli_fbase, memory_order_release);
  }
  runtime.abi_version = HEDDLE_HOOK_ABI_VERSION;
  runtime.struct_size = sizeof runtime;
  if (((HeddleRuntimeAttachFn)entry)(&heddle_interposer, &runtime) != 0) {
    return 0;
  }
  atexit(at_exit);
  atomic_store_explicit(&attached, 1, memory_order_release);
  heddle_log(HEDDLE_LOG_INFO, "runtime attached");
  return 1;
}

/* Waiting has an end, for a thread that was caught here while it holds the
 * dynamic linker's lock (a library's constructor that calls CUDA): the loading
 * thread needs that lock. Or the loading thread is not there: this is the child
 * of a fork(). */
static void wait_until_settled(void) {
  enum { STEPS = 50 * 1000 };
  const struct timespec step = {0, 200 * 1000};
  static atomic_int gave_up;
  for (int i = 0; i < STEPS && !atomic_load(&gave_up); ++i) {
    if (heddle_runtime_is_settled()) return;
    nanosleep(&step, NULL);
  }
  if (atomic_exchange(&gave_up, 1)) return;
  heddle_log(HEDDLE_LOG_WARN,
             "a CUDA call went past while the runtime was being loaded");
}

void heddle_start_runtime(void) {
  if (heddle_runtime_is_settled() || loading) return;
  int expected = NOT_STARTED;
  if (!atomic_compare_exchange_strong(&state, &expected, STARTING)) {
    wait_until_settled();
    return;
  }
  ++loading;
  pthread_atfork(before_fork, after_fork_parent, after_fork_child);
  const int active = heddle_is_active() && attach();
  --loading;
  atomic_store_explicit(&state, SETTLED, memory_order_release);
  if (!active) heddle_stop();
}
