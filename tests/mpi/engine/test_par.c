/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement, broadcast, sums and gathering of engine/par.h on any number of ranks. */
#include "engine/par.h"

#include "engine/par_mpi.h"
#include "mpi_check.h"

static void agree_when_all_is_well(pod_par *par)
{
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_agree(par, POD_OK, &err), POD_OK);
    MPI_CHECK_I64(err.status, POD_OK);
    MPI_CHECK_I64(pod_par_agree(par, POD_OK, NULL), POD_OK);
}

/* One rank fails: everybody gets its words and its place. */
static void agree_on_the_error_of(pod_par *par, int failing)
{
    pod_error err = {0};
    pod_status status = POD_OK;
    char text[64];
    (void)snprintf(text, sizeof text, "rank %d can't; another could", failing);
    if (par->rank == failing) {
        status = pod_fail_at(&err, POD_E_TABLE, "chips.csv", 7, 3, "%s", text);
    }
    MPI_CHECK_I64(pod_par_agree(par, status, &err), POD_E_TABLE);
    MPI_CHECK_I64(err.status, POD_E_TABLE);
    MPI_CHECK_TEXT(err.text, text);
    MPI_CHECK_TEXT(err.file, "chips.csv");
    MPI_CHECK_I64(err.line, 7);
    MPI_CHECK_I64(err.column, 3);
}

/* All fail alike: the lowest rank speaks. */
static void agree_on_the_lowest_rank(pod_par *par)
{
    pod_error err = {0};
    pod_status status = pod_fail(&err, POD_E_USAGE, "rank %d", par->rank);
    MPI_CHECK_I64(pod_par_agree(par, status, &err), POD_E_USAGE);
    MPI_CHECK_TEXT(err.text, "rank 0");
}

/* A higher exit code beats a lower rank: 70 before 2. */
static void agree_on_the_worst(pod_par *par)
{
    pod_error err = {0};
    pod_status status = POD_OK;
    if (par->rank == par->size - 1) {
        status = pod_fail(&err, POD_E_INTERNAL, "the last");
    } else if (par->rank == 0) {
        status = pod_fail(&err, POD_E_USAGE, "the first");
    }
    MPI_CHECK_I64(pod_par_agree(par, status, &err), POD_E_INTERNAL);
    MPI_CHECK_TEXT(err.text, "the last");
}

/* Without a pod_error the status still arrives, with its general text. */
static void agree_without_words(pod_par *par)
{
    pod_error err = {0};
    bool mine = par->rank == par->size - 1;
    pod_status agreed = pod_par_agree(par, mine ? POD_E_NOMEM : POD_OK, mine ? NULL : &err);
    MPI_CHECK_I64(agreed, POD_E_NOMEM);
    if (!mine) {
        MPI_CHECK_TEXT(err.text, pod_status_text(POD_E_NOMEM));
    }
}

/* Also more values than the gate takes at once. */
static void reductions(pod_par *par)
{
    for (int count = 1; count <= 20; count += 19) {
        int64_t sums[20];
        int64_t least[20];
        int64_t most[20];
        for (int i = 0; i < count; i++) {
            sums[i] = par->rank + i;
            least[i] = par->rank - (INT64_C(1) << 40) * i;
            most[i] = -par->rank + i;
        }
        pod_par_sum_i64(par, sums, count);
        pod_par_min_i64(par, least, count);
        pod_par_max_i64(par, most, count);
        int64_t size = par->size;
        for (int i = 0; i < count; i++) {
            MPI_CHECK_I64(sums[i], size * (size - 1) / 2 + size * i);
            MPI_CHECK_I64(least[i], -(INT64_C(1) << 40) * i);
            MPI_CHECK_I64(most[i], i);
        }
    }
}

/* Sizes around what one piece and the gate take. */
static void broadcast(pod_par *par)
{
    static const size_t sizes[] = {1, 1999, 2000, 2001, 2048, 2049, 10000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        unsigned char data[10000];
        for (size_t i = 0; i < sizes[k]; i++) {
            data[i] = par->rank == 0 ? (unsigned char)(i * 31 + k) : 0;
        }
        pod_par_bcast(par, data, sizes[k]);
        for (size_t i = 0; i < sizes[k]; i++) {
            MPI_CHECK_I64(data[i], (unsigned char)(i * 31 + k));
        }
    }
}

static void broadcast_blobs(pod_par *par)
{
    static const size_t sizes[] = {0, 1, 5000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        char *data = NULL;
        size_t size = 0;
        if (par->rank == 0) {
            size = sizes[k];
            data = malloc(size + 1);
            MPI_CHECK(data != NULL);
            memset(data, 'a' + (int)k, size);
        }
        pod_error err = {0};
        MPI_CHECK_I64(pod_par_bcast_blob(par, &data, &size, &err), POD_OK);
        MPI_CHECK_I64((int64_t)size, (int64_t)sizes[k]);
        for (size_t i = 0; i < size; i++) {
            MPI_CHECK_I64(data[i], 'a' + (int)k);
        }
        free(data);
    }
}

/* Rank r gives 700 r bytes of value r, so that rank 0 gives none and pieces don't fit. */
static void gather(pod_par *par)
{
    static unsigned char mine[700 * 64];
    size_t size = 700 * (size_t)par->rank;
    memset(mine, par->rank, size);
    void *all = NULL;
    size_t total = 0;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_gather(par, mine, size, &all, &total, &err), POD_OK);
    MPI_CHECK_I64((int64_t)total, (int64_t)350 * par->size * (par->size - 1));
    MPI_CHECK(par->rank == 0 || all == NULL);
    const unsigned char *bytes = all;
    size_t at = 0;
    for (int rank = 0; par->rank == 0 && rank < par->size; rank++) {
        for (int i = 0; i < 700 * rank; i++) {
            MPI_CHECK_I64(bytes[at++], rank);
        }
    }
    free(all);
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_start(&argc, &argv, &par, &err), POD_OK);
    MPI_CHECK_I64(pod_par_rank(par), mpi_check_rank());
    MPI_CHECK_I64(pod_par_size(par), mpi_check_size());
    MPI_CHECK_SAME_I64(pod_par_oversubscribed(par));
    par->piece_bytes = 1000;
    /* Twice: with the gate, if this job has one, and without. */
    pod_gate *gate = par->gate;
    for (int pass = 0; pass < 2; pass++) {
        agree_when_all_is_well(par);
        for (int rank = 0; rank < par->size; rank++) {
            agree_on_the_error_of(par, rank);
        }
        agree_on_the_lowest_rank(par);
        agree_on_the_worst(par);
        agree_without_words(par);
        reductions(par);
        broadcast(par);
        broadcast_blobs(par);
        gather(par);
        par->gate = NULL;
    }
    par->gate = gate;
    pod_par_stop(par);
    return mpi_check_end();
}
