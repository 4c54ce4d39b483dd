/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_INTERPOSE_LOG_H_
#define HEDDLE_INTERPOSE_LOG_H_

enum heddle_log_level {
  HEDDLE_LOG_ERROR = 0, /* the default */
  HEDDLE_LOG_WARN = 1,
  HEDDLE_LOG_INFO = 2,
  HEDDLE_LOG_DEBUG = 3
};

/* Writes "heddle: <message>\n" in one write() if HEDDLE_LOG (error, warn, info,
 * debug) allows it: to the file HEDDLE_LOG_FILE (appended to; %p is the process
 * id, %h the host name, %r the rank), or to standard error. Keeps errno. Any
 * thread. */
void heddle_log(enum heddle_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* HEDDLE_INTERPOSE_LOG_H_ */
