/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/status.h  How functions say that they failed.
 *
 *  Model: every fallible function returns a pod_status. Detail (one line that says what is wrong
 *  and what would be right, and where in which file) goes to an optional pod_error of the caller.
 *  Local functions never print, exit or communicate; only src/cli turns a status into an exit code.
 *
 *  Ownership: pod_error is plain storage of the caller. Threads: none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** name, text, exit code of `podsim` */
#define POD_STATUS_LIST(X)                                                                         \
    X(POD_OK, "ok", 0)                                                                             \
    X(POD_E_CHECK, "a check failed", 1)                                                            \
    X(POD_E_USAGE, "usage", 2)                                                                     \
    X(POD_E_INVALID, "the request can't be met", 3)                                                \
    X(POD_E_RANGE, "out of range", 3)                                                              \
    X(POD_E_TABLE, "bad table", 3)                                                                 \
    X(POD_E_NOFIT, "does not fit memory", 3)                                                       \
    X(POD_E_IO, "input or output failed", 4)                                                       \
    X(POD_E_NOMEM, "out of host memory", 4)                                                        \
    X(POD_E_SYSTEM, "system error", 4)                                                             \
    X(POD_E_INTERNAL, "internal error", 70)

#define POD_STATUS_ENUM(name, text, exit_code) name,
typedef enum pod_status { POD_STATUS_LIST(POD_STATUS_ENUM) POD_STATUS_COUNT } pod_status;
#undef POD_STATUS_ENUM

enum { POD_ERROR_FILE_MAX = 256, POD_ERROR_TEXT_MAX = 768 };

/** What went wrong and where. `line` and `column` count from 1; 0 means no position. */
typedef struct pod_error {
    pod_status status;
    char file[POD_ERROR_FILE_MAX]; /**< "" when the error has no file */
    int line;
    int column;
    char text[POD_ERROR_TEXT_MAX]; /**< "what is wrong; what would be right", no newline */
} pod_error;

/** Text of a status, static. Not collective. */
const char *pod_status_text(pod_status status);

/** Exit code of a status (0, 1, 2, 3, 4 or 70). Not collective. */
int pod_status_exit_code(pod_status status);

/** Record an error and return its status, so that callers write `return pod_fail(…)`.
 *  Keeps the first error: an err that already holds one is left alone. Not collective.
 *  @param err     may be NULL
 *  @param status  any but POD_OK
 *  @param format  printf format of "what is wrong; what would be right" */
__attribute__((format(printf, 3, 4))) pod_status pod_fail(pod_error *err, pod_status status,
                                                          const char *format, ...);

/** Same with a position in a file or table. @param line, column  from 1; 0 = none. */
__attribute__((format(printf, 6, 7))) pod_status pod_fail_at(pod_error *err, pod_status status,
                                                             const char *file, int line, int column,
                                                             const char *format, ...);

#ifdef __clang_analyzer__ /* it reads one file at a time, and takes them to return any status */
#define pod_fail(err, status, ...)    (pod_fail((err), (status), __VA_ARGS__), (status))
#define pod_fail_at(err, status, ...) (pod_fail_at((err), (status), __VA_ARGS__), (status))
#endif

/** Return from the function around it if a call fails. */
#define POD_TRY(...)                                                                               \
    do {                                                                                           \
        const pod_status tried_ = (__VA_ARGS__);                                                   \
        if (tried_ != POD_OK) {                                                                    \
            return tried_;                                                                         \
        }                                                                                          \
    } while (0)
/** Call, unless `status` says that something failed before; it then says how the call ended. */
#define POD_THEN(status, ...)                                                                      \
    do {                                                                                           \
        if ((status) == POD_OK) {                                                                  \
            (status) = (__VA_ARGS__);                                                              \
        }                                                                                          \
    } while (0)

/** Forget a recorded error (status POD_OK). @param err may be NULL. Not collective. */
void pod_error_clear(pod_error *err);

/** Called when an invariant is broken: prints file, line and text, then ends the whole job with
 *  exit code 70 through the handler set by the engine (MPI_Abort), else abort(). */
_Noreturn void pod_panic(const char *file, int line, const char *text);

/** Called when memory runs out in the middle of what can't be taken back (the links of a running simulation):
 *  prints one line, then ends the whole job with exit code 4, as pod_panic does with 70.
 *  @param what  "links", "messages": what there is no memory for */
_Noreturn void pod_out_of_memory(const char *what);

/** Memory that must be there in such a place. */
#define POD_NEED(pointer, what)                                                                    \
    do {                                                                                           \
        if ((pointer) == NULL) {                                                                   \
            pod_out_of_memory(what);                                                               \
        }                                                                                          \
    } while (0)

/** Set what the two call to end the job; NULL restores abort() and exit(). Each thread has its own. */
void pod_panic_handler_set(void (*handler)(int exit_code));

#define POD_ASSERT(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            pod_panic(__FILE__, __LINE__, "assertion failed: " #condition);                        \
        }                                                                                          \
    } while (0)

#ifdef NDEBUG
#define POD_DASSERT(condition) ((void)0)
#else
#define POD_DASSERT(condition) POD_ASSERT(condition)
#endif
