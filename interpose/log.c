/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int log_level(void) {
  static const char *const names[] = {"error", "warn", "info", "debug"};
  const char *value = secure_getenv("HEDDLE_LOG");
  for (int level = HEDDLE_LOG_WARN; value && level <= HEDDLE_LOG_DEBUG;
       ++level) {
    if (strcmp(value, names[level]) == 0) return level;
  }
  return HEDDLE_LOG_ERROR;
}

static const char *rank(void) {
  static const char *const variables[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                          "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i) {
    const char *value = getenv(variables[i]);
    if (value && *value) return value;
  }
  return "0";
}

/* Expands %p, %h and %r. Returns 0 if the result does not fit. */
static int expand(const char *pattern, char *path, size_t size) {
  size_t used = 0;
  for (const char *p = pattern; *p; ++p) {
    char text[256] = {p[0], 0};
    if (p[0] == '%' && p[1] == 'p') {
      snprintf(text, sizeof text, "%ld", (long)getpid());
    } else if (p[0] == '%' && p[1] == 'h') {
      if (gethostname(text, sizeof text - 1) != 0) strcpy(text, "localhost");
    } else if (p[0] == '%' && p[1] == 'r') {
      snprintf(text, sizeof text, "%s", rank());
    }
    if (p[0] == '%' && p[1] && strchr("phr", p[1])) ++p;
    const size_t length = strlen(text);
    if (used + length >= size) return 0;
    memcpy(path + used, text, length);
    used += length;
  }
  path[used] = 0;
  return 1;
}

/* Opened anew for each message: messages are rare, and a descriptor kept open
 * could be closed, or taken for its own, by the program. */
static void write_message(const char *message, size_t length) {
  const char *pattern = secure_getenv("HEDDLE_LOG_FILE");
  char path[PATH_MAX];
  int file = STDERR_FILENO;
  if (pattern && *pattern && expand(pattern, path, sizeof path)) {
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) file = STDERR_FILENO;
  }
  ssize_t written;
  do {
    written = write(file, message, length);
  } while (written < 0 && errno == EINTR);
  if (file != STDERR_FILENO) close(file);
}

void heddle_log(enum heddle_log_level level, const char *format, ...) {
  if ((int)level > log_level()) return;
  const int saved_errno = errno;
  char message[1024] = "heddle: ";
  const size_t prefix = strlen(message);
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(message + prefix, sizeof message - prefix - 1,
                               format, arguments);
  va_end(arguments);
  size_t total = prefix + (length > 0 ? (size_t)length : 0);
  if (total > sizeof message - 2) total = sizeof message - 2;
  message[total++] = '\n';
  write_message(message, total);
  errno = saved_errno;
}
