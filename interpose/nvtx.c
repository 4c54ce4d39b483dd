/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX events of the program, for the runtime: InitializeInjectionNvtx2 is what
 * the NVTX headers in a program look for in the library that
 * NVTX_INJECTION64_PATH names. Every library that uses NVTX has its own
 * instance and calls it once. */

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "interpose/driver.h"
#include "interpose/log.h"
#include "interpose/runtime_loader.h"

enum { NAME_SIZE = 512 };

/* What nvtxDomainHandle_t points to; nvtxStringHandle_t points to the UTF-8
 * text itself. Never freed: an event may still come with a handle that another
 * thread has destroyed. */
struct domain {
  uint64_t id;
  struct domain *next;
  char name[];
};

/* Guards `domains`; never held while the runtime is called. */
static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
static struct domain *domains;
static uint64_t last_domain_id;

static _Atomic uint64_t last_range_id;

/* UTF-32 (wchar_t on Linux) to UTF-8, cut at the buffer's size. */
static void append_utf8(char *out, size_t *used, uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = '?';
  const int length = code < 0x80      ? 1
                     : code < 0x800   ? 2
                     : code < 0x10000 ? 3
                                      : 4;
  if (*used + (size_t)length >= NAME_SIZE) return;
  if (length == 1) {
    out[(*used)++] = (char)code;
    return;
  }
  static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (int i = 0; i < length; ++i) {
    const uint32_t bits = code >> (6 * (length - 1 - i));
    out[(*used)++] =
        (char)(i == 0 ? lead[length] | bits : 0x80 | (bits & 0x3f));
  }
}

static const char *to_utf8(const wchar_t *text, char buffer[NAME_SIZE]) {
  if (!text) return NULL;
  size_t used = 0;
  for (; *text; ++text) append_utf8(buffer, &used, (uint32_t)*text);
  buffer[used] = 0;
  return buffer;
}

static const char *message_of(const nvtxEventAttributes_t *event,
                              char buffer[NAME_SIZE]) {
  if (!event || event->size < offsetof(nvtxEventAttributes_t, message) +
                                  sizeof event->message) {
    return NULL;
  }
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return event->message.ascii;
    case NVTX_MESSAGE_TYPE_UNICODE:
      return to_utf8(event->message.unicode, buffer);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return (const char *)event->message.registered;
    default:
      return NULL;
  }
}

static uint64_t domain_id(nvtxDomainHandle_t domain) {
  return domain ? ((const struct domain *)domain)->id : 0;
}

/* This thread's open ranges in one domain. Those that were pushed before the
 * runtime attached are the lowest: the runtime must not see them popped. */
struct range_stack {
  int depth;
  int unseen;
};

struct thread_stacks {
  size_t count;
  struct range_stack *by_domain; /* by id */
};

static pthread_key_t stacks_key;
static pthread_once_t stacks_once = PTHREAD_ONCE_INIT;
static int stacks_usable;

static void free_stacks(void *data) {
  struct thread_stacks *stacks = data;
  free(stacks->by_domain);
  free(stacks);
}

static void make_stacks_key(void) {
  stacks_usable = pthread_key_create(&stacks_key, free_stacks) == 0;
}

static struct thread_stacks *own_stacks(void) {
  pthread_once(&stacks_once, make_stacks_key);
  if (!stacks_usable) return NULL;
  struct thread_stacks *stacks = pthread_getspecific(stacks_key);
  if (stacks) return stacks;
  stacks = calloc(1, sizeof *stacks);
  if (stacks && pthread_setspecific(stacks_key, stacks) != 0) {
    free(stacks);
    stacks = NULL;
  }
  return stacks;
}

/* NULL if memory is short. */
static struct range_stack *stack_in(uint64_t domain) {
  struct thread_stacks *stacks = own_stacks();
  if (!stacks) return NULL;
  if (domain >= stacks->count) {
    const size_t count = (size_t)domain + 8;
    struct range_stack *grown =
        realloc(stacks->by_domain, count * sizeof *grown);
    if (!grown) return NULL;
    memset(grown + stacks->count, 0, (count - stacks->count) * sizeof *grown);
    stacks->by_domain = grown;
    stacks->count = count;
  }
  return &stacks->by_domain[domain];
}

/* Returns the level of the new range, from 0. */
static int push(uint64_t domain, const char *name) {
  struct range_stack *stack = stack_in(domain);
  if (!stack) return NVTX_NO_PUSH_POP_TRACKING;
  const HeddleRuntime *runtime = heddle_runtime();
  if (!runtime) stack->unseen = stack->depth + 1;
  if (runtime && runtime->nvtx_push) runtime->nvtx_push(domain, name);
  return stack->depth++;
}

/* Returns the level of the range that ends. */
static int pop(uint64_t domain) {
  struct range_stack *stack = stack_in(domain);
  if (!stack || stack->depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  const int level = --stack->depth;
  const HeddleRuntime *runtime = heddle_runtime();
  if (level < stack->unseen) {
    stack->unseen = level;
  } else if (runtime && runtime->nvtx_pop) {
    runtime->nvtx_pop(domain);
  }
  return level;
}

/* In the id of a range whose start the runtime has not seen. */
static const nvtxRangeId_t kUnseen = 1ULL << 63;

static nvtxRangeId_t start(uint64_t domain, const char *name) {
  const uint64_t id = atomic_fetch_add(&last_range_id, 1) + 1;
  const HeddleRuntime *runtime = heddle_runtime();
  if (!runtime) return id | kUnseen;
  if (runtime->nvtx_start) runtime->nvtx_start(domain, id, name);
  return id;
}

static void end(uint64_t domain, nvtxRangeId_t id) {
  const HeddleRuntime *runtime = heddle_runtime();
  if (!(id & kUnseen) && runtime && runtime->nvtx_end) {
    runtime->nvtx_end(domain, id);
  }
}

static void mark(uint64_t domain, const char *name) {
  const HeddleRuntime *runtime = heddle_runtime();
  if (runtime && runtime->nvtx_mark) runtime->nvtx_mark(domain, name);
}

static void mark_ex(const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  mark(0, message_of(event, buffer));
}
static void mark_a(const char *name) { mark(0, name); }
static void mark_w(const wchar_t *name) {
  char buffer[NAME_SIZE];
  mark(0, to_utf8(name, buffer));
}
static nvtxRangeId_t start_ex(const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  return start(0, message_of(event, buffer));
}
static nvtxRangeId_t start_a(const char *name) { return start(0, name); }
static nvtxRangeId_t start_w(const wchar_t *name) {
  char buffer[NAME_SIZE];
  return start(0, to_utf8(name, buffer));
}
static void end_default(nvtxRangeId_t id) { end(0, id); }
static int push_ex(const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  return push(0, message_of(event, buffer));
}
static int push_a(const char *name) { return push(0, name); }
static int push_w(const wchar_t *name) {
  char buffer[NAME_SIZE];
  return push(0, to_utf8(name, buffer));
}
static int pop_default(void) { return pop(0); }

static void domain_mark_ex(nvtxDomainHandle_t domain,
                           const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  mark(domain_id(domain), message_of(event, buffer));
}
static nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t domain,
                                     const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  return start(domain_id(domain), message_of(event, buffer));
}
static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  end(domain_id(domain), id);
}
static int domain_push_ex(nvtxDomainHandle_t domain,
                          const nvtxEventAttributes_t *event) {
  char buffer[NAME_SIZE];
  return push(domain_id(domain), message_of(event, buffer));
}
static int domain_pop(nvtxDomainHandle_t domain) {
  return pop(domain_id(domain));
}

/* One handle for each name, whoever creates it. */
static nvtxDomainHandle_t domain_create_a(const char *name) {
  if (!name) return NULL;
  pthread_mutex_lock(&domains_lock);
  struct domain *domain = domains;
  while (domain && strcmp(domain->name, name) != 0) domain = domain->next;
  if (!domain) {
    domain = malloc(sizeof *domain + strlen(name) + 1);
    if (domain) {
      strcpy(domain->name, name);
      domain->id = ++last_domain_id;
      domain->next = domains;
      domains = domain;
    }
  }
  pthread_mutex_unlock(&domains_lock);
  return (nvtxDomainHandle_t)domain;
}
static nvtxDomainHandle_t domain_create_w(const wchar_t *name) {
  char buffer[NAME_SIZE];
  return domain_create_a(to_utf8(name, buffer));
}
static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain,
                                     const char *text) {
  (void)domain;
  return (nvtxStringHandle_t)(text ? strdup(text) : NULL);
}
static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain,
                                     const wchar_t *text) {
  char buffer[NAME_SIZE];
  return register_a(domain, to_utf8(text, buffer));
}

/* The types of nvtxTypes.h check that each callback fits its entry. */
#define CALLBACK(module, entry, function)                                    \
  {                                                                          \
    NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##entry,                   \
        (NvtxFunctionPointer)(1 ? (function) : (nvtx##entry##_impl_fntype)0) \
  }

static const struct callback {
  NvtxCallbackModule module;
  unsigned id;
  NvtxFunctionPointer function;
} callbacks[] = {
    CALLBACK(CORE, MarkEx, mark_ex),
    CALLBACK(CORE, MarkA, mark_a),
    CALLBACK(CORE, MarkW, mark_w),
    CALLBACK(CORE, RangeStartEx, start_ex),
    CALLBACK(CORE, RangeStartA, start_a),
    CALLBACK(CORE, RangeStartW, start_w),
    CALLBACK(CORE, RangeEnd, end_default),
    CALLBACK(CORE, RangePushEx, push_ex),
    CALLBACK(CORE, RangePushA, push_a),
    CALLBACK(CORE, RangePushW, push_w),
    CALLBACK(CORE, RangePop, pop_default),
    CALLBACK(CORE2, DomainMarkEx, domain_mark_ex),
    CALLBACK(CORE2, DomainRangeStartEx, domain_start_ex),
    CALLBACK(CORE2, DomainRangeEnd, domain_end),
    CALLBACK(CORE2, DomainRangePushEx, domain_push_ex),
    CALLBACK(CORE2, DomainRangePop, domain_pop),
    CALLBACK(CORE2, DomainRegisterStringA, register_a),
    CALLBACK(CORE2, DomainRegisterStringW, register_w),
    CALLBACK(CORE2, DomainCreateA, domain_create_a),
    CALLBACK(CORE2, DomainCreateW, domain_create_w),
};

static int take_over(NvtxGetExportTableFunc_t get_export_table) {
  const NvtxExportTableCallbacks *table = get_export_table(NVTX_ETID_CALLBACKS);
  if (!table || table->struct_size < sizeof *table) {
    heddle_log(HEDDLE_LOG_WARN, "NVTX of an unknown version: ranges not seen");
    return 0;
  }
  for (size_t i = 0; i < sizeof callbacks / sizeof callbacks[0]; ++i) {
    NvtxFunctionTable functions = NULL;
    unsigned count = 0;
    if (table->GetModuleFunctionTable(callbacks[i].module, &functions,
                                      &count) &&
        functions && callbacks[i].id < count) {
      *functions[callbacks[i].id] = callbacks[i].function;
    }
  }
  return 1;
}

/* Returns 1 if this instance of NVTX was taken over; with 0 it turns itself
 * off. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  if (!heddle_is_active()) return 0;
  /* A range may begin before the first CUDA call. But a process that has no
   * driver may never want one: there the runtime waits for that call. */
  if (heddle_driver(NULL, 0)) heddle_start_runtime();
  if (heddle_runtime_is_settled() && !heddle_runtime()) return 0;
  return take_over(get_export_table);
}
