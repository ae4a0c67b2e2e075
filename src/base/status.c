/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local void (*panic_handler)(int exit_code);

const char *pod_status_text(pod_status status)
{
#define STATUS_TEXT(name, text, exit_code) [name] = (text),
    static const char *const texts[] = {POD_STATUS_LIST(STATUS_TEXT)};
#undef STATUS_TEXT
    _Static_assert(sizeof texts / sizeof texts[0] == POD_STATUS_COUNT, "one text per status");
    POD_ASSERT((unsigned)status < POD_STATUS_COUNT);
    return texts[status];
}

int pod_status_exit_code(pod_status status)
{
#define STATUS_EXIT_CODE(name, text, exit_code) [name] = (exit_code),
    static const int codes[] = {POD_STATUS_LIST(STATUS_EXIT_CODE)};
#undef STATUS_EXIT_CODE
    _Static_assert(sizeof codes / sizeof codes[0] == POD_STATUS_COUNT, "one code per status");
    POD_ASSERT((unsigned)status < POD_STATUS_COUNT);
    return codes[status];
}

/* An error is one line: what a user wrote may hold line ends, and is quoted in it. */
static void make_one_line(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r') {
            *c = ' ';
        }
    }
}

__attribute__((format(printf, 6, 0))) static pod_status record(pod_error *err, pod_status status,
                                                               const char *file, int line,
                                                               int column, const char *format,
                                                               va_list args)
{
    POD_ASSERT(status != POD_OK);
    if (err == NULL || err->status != POD_OK) {
        return status;
    }
    err->status = status;
    err->line = line;
    err->column = column;
    (void)snprintf(err->file, sizeof err->file, "%s", file);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    make_one_line(err->text);
    return status;
}

/* The analyzer sees macros of these names. */
#undef pod_fail
#undef pod_fail_at

pod_status pod_fail(pod_error *err, pod_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)record(err, status, "", 0, 0, format, args);
    va_end(args);
    return status;
}

pod_status pod_fail_at(pod_error *err, pod_status status, const char *file, int line, int column,
                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)record(err, status, file, line, column, format, args);
    va_end(args);
    return status;
}

void pod_error_clear(pod_error *err)
{
    if (err != NULL) {
        *err = (pod_error){.status = POD_OK};
    }
}

void pod_panic(const char *file, int line, const char *text)
{
    (void)fprintf(stderr, "podsim: internal error: %s:%d: %s\n", file, line, text);
    (void)fflush(stderr);
    if (panic_handler != NULL) {
        panic_handler(pod_status_exit_code(POD_E_INTERNAL));
    }
    abort();
}

void pod_out_of_memory(const char *what)
{
    const int exit_code = pod_status_exit_code(POD_E_NOMEM);
    (void)fprintf(stderr,
                  "podsim: error: no memory for %s; use fewer chips, or more ranks on more hosts\n",
                  what);
    (void)fflush(stderr);
    if (panic_handler != NULL) {
        panic_handler(exit_code);
    }
    exit(exit_code);
}

void pod_panic_handler_set(void (*handler)(int exit_code))
{
    panic_handler = handler;
}
