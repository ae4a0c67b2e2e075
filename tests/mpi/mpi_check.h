/* SPDX-License-Identifier: Apache-2.0 */
/** @file mpi_check.h  What launched tests are made of.
 *
 *  Model: a test is a plain program: mpi_check_begin, a list of cases, mpi_check_end. No
 *  Criterion, which runs each test in a new process, where mpirun accepts one client per rank.
 *  A failed check prints rank, place and values, and ends the whole job at once with MPI_Abort:
 *  after a failure on one rank the others may wait for it for ever.
 *
 *      int main(int argc, char **argv)
 *      {
 *          mpi_check_begin(&argc, &argv);
 *          windows_agree_on_the_earliest_time();
 *          return mpi_check_end();
 *      }
 */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static inline int mpi_check_rank(void)
{
    int rank = 0;
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static inline int mpi_check_size(void)
{
    int size = 1;
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/** Collective. */
static inline void mpi_check_begin(int *argc, char ***argv)
{
    if (MPI_Init(argc, argv) != MPI_SUCCESS) {
        (void)fprintf(stderr, "MPI_Init failed\n");
        exit(1);
    }
}

/** Collective: returns 0, the exit code, once every rank has come through all its checks. */
static inline int mpi_check_end(void)
{
    (void)MPI_Barrier(MPI_COMM_WORLD);
    (void)MPI_Finalize();
    return 0;
}

_Noreturn static inline void mpi_check_fail(const char *file, int line, const char *text)
{
    (void)fprintf(stderr, "[rank %d of %d] %s:%d: %s\n", mpi_check_rank(), mpi_check_size(), file,
                  line, text);
    (void)fflush(stderr);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static inline void mpi_check_i64(const char *file, int line, const char *what, int64_t got,
                                 int64_t expected)
{
    if (got != expected) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s is %" PRId64 "; expected %" PRId64, what, got,
                       expected);
        mpi_check_fail(file, line, text);
    }
}

static inline void mpi_check_text(const char *file, int line, const char *what, const char *got,
                                  const char *expected)
{
    if (strcmp(got, expected) != 0) {
        char text[2048];
        (void)snprintf(text, sizeof text, "%s is '%s'; expected '%s'", what, got, expected);
        mpi_check_fail(file, line, text);
    }
}

/* Local checks, on whatever ranks call them. */
#define MPI_CHECK(condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            mpi_check_fail(__FILE__, __LINE__, "check failed: " #condition);                       \
        }                                                                                          \
    } while (0)
#define MPI_CHECK_I64(got, expected)  mpi_check_i64(__FILE__, __LINE__, #got, (got), (expected))
#define MPI_CHECK_TEXT(got, expected) mpi_check_text(__FILE__, __LINE__, #got, (got), (expected))

/** Collective: the value is the same on every rank. */
#define MPI_CHECK_SAME_I64(value)                                                                  \
    do {                                                                                           \
        const int64_t mine_ = (value);                                                             \
        int64_t root_ = mine_;                                                                     \
        (void)MPI_Bcast(&root_, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);                                \
        mpi_check_i64(__FILE__, __LINE__, #value " (against rank 0)", mine_, root_);               \
    } while (0)
