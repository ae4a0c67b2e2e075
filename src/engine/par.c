/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/par.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/launcher.h"
#include "engine/par_mpi.h"

/* Tests of an unfinished request before the core is given away: with a core per rank, and without,
 * where a few tests still find what the gate has made sure of. */
enum { SPINS = 100, SPINS_CROWDED = 8 };

/* Times that the core is given away, a millisecond or two, before the rank sleeps between tests: what takes longer is
 * not a message but another rank's work, as a reference on one chip is. */
enum { YIELDS = 2000, NAP_NS = 100000 };

#define PIECE_BYTES ((size_t)1 << 30)

void pod_par_mpi_failed(int code, const char *call, const char *file, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    (void)fprintf(stderr, "podsim: error: %s:%d: %s: %s\n", file, line, call, text);
    pod_par_abort(pod_status_exit_code(POD_E_SYSTEM));
}

void pod_par_abort(int exit_code)
{
    (void)fflush(NULL);
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) {
        MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    _Exit(exit_code);
}

/* The handler of pod_panic. */
static void end_job(int exit_code)
{
    pod_par_abort(exit_code);
}

/* True if some launcher has started this process: Open MPI and PMIx, MPICH and its kin, Slurm. A process
 * on its own needs no MPI, whose start as a lone process costs more than most simulations. */
static bool was_launched(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",    "PMI_RANK",  "PMI_SIZE",
        "MPI_LOCALNRANKS",      "SLURM_PROCID", "PODSIM_MPI"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (getenv(names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Ranks on this node as the launcher says (Open MPI, MPICH); 0 = it doesn't. */
static int local_size_told(int size)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    int local = size == 1 ? 1 : 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && local == 0; i++) {
        const char *value = getenv(names[i]);
        long number = value != NULL ? strtol(value, NULL, 10) : 0;
        local = number > 0 && number <= size ? (int)number : 0;
    }
    return local;
}

/* Ask MPI, which costs more. */
static int local_size_asked(MPI_Comm comm)
{
    MPI_Comm node = MPI_COMM_NULL;
    int local = 0;
    POD_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    POD_MPI(MPI_Comm_size(node, &local));
    POD_MPI(MPI_Comm_free(&node));
    return local;
}

/* Find out whether ranks outnumber cores, and open the gate if they do so on one node, which the launcher must say. */
static void meet_others(pod_par *par, bool world)
{
    int local = world ? local_size_told(par->size) : 0; /* launchers speak of the world */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char name[POD_GATE_NAME] = "";
    if (par->rank == 0 && local == par->size && local > cores) {
        pod_gate_create(par->size, name);
    }
    POD_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, par->comm));
    if (name[0] != '\0') {
        par->gate = pod_gate_open(name, par->comm);
    }
    int facts[] = {local > 0, local <= cores ? 0 : (int)(cores - local), par->gate != NULL};
    POD_MPI(MPI_Allreduce(MPI_IN_PLACE, facts, 3, MPI_INT, MPI_MIN, par->comm));
    if (par->rank == 0 && name[0] != '\0') {
        pod_gate_unlink(name);
    }
    if (!facts[2]) {
        pod_gate_close(par->gate);
        par->gate = NULL;
    }
    par->beyond_cores = -facts[1];
    par->node_ranks = facts[0] ? local : local_size_asked(par->comm);
    if (!facts[0]) {
        int64_t beyond = par->node_ranks > cores ? par->node_ranks - cores : 0;
        pod_par_max_i64(par, &beyond, 1);
        par->beyond_cores = (int)beyond;
    }
}

/* Learn rank and size from MPI. */
static void attach(pod_par *par, MPI_Comm comm)
{
    POD_MPI(MPI_Comm_dup(comm, &par->comm));
    POD_MPI(MPI_Comm_set_errhandler(par->comm, MPI_ERRORS_RETURN));
    POD_MPI(MPI_Comm_rank(par->comm, &par->rank));
    POD_MPI(MPI_Comm_size(par->comm, &par->size));
}

/* Ranks that the launcher of some MPI says there are; 0 = none says so. */
static long size_told(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    long most = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        const long told = value != NULL ? strtol(value, NULL, 10) : 0;
        most = told > most ? told : most;
    }
    return most;
}

pod_status pod_par_start(int *argc, char ***argv, pod_par **par, pod_error *err)
{
    pod_par *started = NULL;
    POD_TRY(was_launched() ? pod_launcher_limits_check(err) : POD_OK);
    POD_TRY(pod_par_self_new(&started, err));
    pod_panic_handler_set(end_job);
    int initialized = 0;
    POD_MPI(MPI_Initialized(&initialized));
    if (initialized == 0 && was_launched()) {
        POD_MPI(MPI_Init(argc, argv));
        started->finalize = true;
    }
    if (initialized != 0 || started->finalize) {
        attach(started, MPI_COMM_WORLD);
    }
    const long told = size_told();
    if (initialized == 0 && started->size == 1 && told > 1) {
        pod_par_stop(started);
        return pod_fail(
            err, POD_E_IO,
            "a launcher started %ld ranks, but this one sees none of the others: it belongs to "
            "another MPI; use the mpirun of the MPI that podsim was built with",
            told);
    }
    if (started->size > 1) {
        meet_others(started, true);
    }
    *par = started;
    return POD_OK;
}

pod_status pod_par_over(MPI_Comm comm, pod_par **par, pod_error *err)
{
    POD_TRY(pod_par_self_new(par, err));
    pod_panic_handler_set(end_job);
    attach(*par, comm);
    if ((*par)->size > 1) {
        meet_others(*par, false);
    }
    return POD_OK;
}

void pod_par_stop(pod_par *par)
{
    if (par == NULL) {
        return;
    }
    bool finalize = par->finalize;
    pod_gate_close(par->gate);
    if (par->comm != MPI_COMM_NULL) {
        POD_MPI(MPI_Comm_free(&par->comm));
    }
    pod_panic_handler_set(NULL);
    free(par);
    if (finalize) {
        POD_MPI(MPI_Finalize());
    }
}

pod_status pod_par_self_new(pod_par **self, pod_error *err)
{
    *self = calloc(1, sizeof **self);
    if (*self == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a job of one rank");
    }
    **self =
        (pod_par){.comm = MPI_COMM_NULL, .size = 1, .node_ranks = 1, .piece_bytes = PIECE_BYTES};
    return POD_OK;
}

void pod_par_self_free(pod_par *self)
{
    free(self);
}

int pod_par_rank(const pod_par *par)
{
    return par->rank;
}

int pod_par_size(const pod_par *par)
{
    return par->size;
}

bool pod_par_oversubscribed(const pod_par *par)
{
    return par->beyond_cores > 0;
}

int pod_par_ranks_beyond_cores(const pod_par *par)
{
    return par->beyond_cores;
}

void pod_par_wait(const pod_par *par, MPI_Request *requests, int count)
{
    const int64_t spins = par->beyond_cores > 0 ? SPINS_CROWDED : SPINS;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    int done = 0;
    for (int64_t tests = 0; !done; tests++) {
        if (tests > spins + YIELDS) {
            (void)nanosleep(&nap, NULL);
        } else if (tests > spins) {
            sched_yield();
        }
        POD_MPI(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE));
    }
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it doesn't see that pod_par_wait waits. */
static void reduce_i64(pod_par *par, int64_t *values, int count, pod_gate_op op)
{
    static const MPI_Op mpi_ops[] = {
        [POD_GATE_SUM] = MPI_SUM, [POD_GATE_MAX] = MPI_MAX, [POD_GATE_MIN] = MPI_MIN};
    if (par->size == 1) {
        return;
    }
    if (par->gate != NULL && count <= POD_GATE_VALUES) {
        pod_gate_reduce(par->gate, values, count, op);
        return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    POD_MPI(
        MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, mpi_ops[op], par->comm, &request));
    pod_par_wait(par, &request, 1);
}

void pod_par_sum_i64(pod_par *par, int64_t *values, int count)
{
    reduce_i64(par, values, count, POD_GATE_SUM);
}

void pod_par_max_i64(pod_par *par, int64_t *values, int count)
{
    reduce_i64(par, values, count, POD_GATE_MAX);
}

void pod_par_min_i64(pod_par *par, int64_t *values, int count)
{
    reduce_i64(par, values, count, POD_GATE_MIN);
}

static void bcast_from(pod_par *par, int root, void *data, size_t size)
{
    if (par->gate != NULL && size <= POD_GATE_BYTES) {
        pod_gate_bcast(par->gate, root, data, size);
        return;
    }
    unsigned char *bytes = data;
    for (size_t at = 0; at < size && par->size > 1; at += par->piece_bytes) {
        MPI_Request request = MPI_REQUEST_NULL;
        POD_MPI(MPI_Ibcast(bytes + at, pod_par_piece(par, size - at), MPI_BYTE, root, par->comm,
                           &request));
        pod_par_wait(par, &request, 1);
    }
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

void pod_par_bcast(pod_par *par, void *data, size_t size)
{
    bcast_from(par, 0, data, size);
}

#undef pod_par_agree /* which the analyzer sees */

/* One number decides: the exit code first, then the lowest rank. */
pod_status pod_par_agree(pod_par *par, pod_status status, pod_error *err)
{
    if (par->size == 1) {
        return status;
    }
    int64_t vote = 0;
    if (status != POD_OK) {
        vote = (int64_t)pod_status_exit_code(status) * par->size + (par->size - par->rank);
    }
    pod_par_max_i64(par, &vote, 1);
    if (vote == 0) {
        return POD_OK;
    }
    int winner = par->size - 1 - (int)((vote - 1) % par->size);
    pod_error agreed = {.status = POD_OK};
    if (winner == par->rank) {
        if (err != NULL && err->status == status) {
            agreed = *err;
        } else {
            (void)pod_fail(&agreed, status, "%s", pod_status_text(status));
        }
    }
    bcast_from(par, winner, &agreed, sizeof agreed);
    if (err != NULL) {
        *err = agreed;
    }
    return agreed.status;
}

pod_status pod_par_bcast_blob(pod_par *par, char **data, size_t *size, pod_error *err)
{
    pod_par_bcast(par, size, sizeof *size);
    pod_status status = POD_OK;
    if (par->rank != 0) {
        *data = malloc(*size + 1);
        if (*data == NULL) {
            status = pod_fail(err, POD_E_NOMEM, "no memory for %zu bytes from rank 0", *size);
        }
    }
    status = pod_par_agree(par, status, err);
    if (status != POD_OK) {
        if (par->rank != 0) {
            free(*data);
            *data = NULL;
        }
        return status;
    }
    POD_ASSERT(*data != NULL);
    pod_par_bcast(par, *data, *size);
    if (par->rank != 0) {
        (*data)[*size] = '\0';
    }
    return POD_OK;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): as above. */
static void send_to_0(pod_par *par, const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += par->piece_bytes) {
        MPI_Request request = MPI_REQUEST_NULL;
        POD_MPI(MPI_Isend(bytes + at, pod_par_piece(par, size - at), MPI_BYTE, 0, 0, par->comm,
                          &request));
        pod_par_wait(par, &request, 1);
    }
}

static void receive_from(pod_par *par, int rank, unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += par->piece_bytes) {
        MPI_Request request = MPI_REQUEST_NULL;
        POD_MPI(MPI_Irecv(bytes + at, pod_par_piece(par, size - at), MPI_BYTE, rank, 0, par->comm,
                          &request));
        pod_par_wait(par, &request, 1);
    }
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* sizes[size] of what each rank gives, on every rank; heap memory of the caller. */
static pod_status gather_sizes(pod_par *par, size_t size, int64_t **out, pod_error *err)
{
    int64_t *sizes = calloc((size_t)par->size, sizeof *sizes);
    pod_status status = POD_OK;
    if (sizes == NULL) {
        status = pod_fail(err, POD_E_NOMEM, "no memory for the sizes of %d ranks", par->size);
    }
    status = pod_par_agree(par, status, err);
    if (status != POD_OK) {
        free(sizes);
        return status;
    }
    POD_ASSERT(sizes != NULL);
    sizes[par->rank] = (int64_t)size;
    pod_par_sum_i64(par, sizes, par->size);
    *out = sizes;
    return POD_OK;
}

/* Rank 0's part: its own bytes, then those of the others as they are sent. */
static void collect(pod_par *par, const void *data, const int64_t *sizes, unsigned char *bytes)
{
    size_t at = (size_t)sizes[0];
    if (at > 0) {
        memcpy(bytes, data, at);
    }
    for (int rank = 1; rank < par->size; rank++) {
        receive_from(par, rank, bytes + at, (size_t)sizes[rank]);
        at += (size_t)sizes[rank];
    }
}

pod_status pod_par_gather(pod_par *par, const void *data, size_t size, void **all, size_t *total,
                          pod_error *err)
{
    *all = NULL;
    *total = 0;
    int64_t *sizes = NULL;
    pod_status status = gather_sizes(par, size, &sizes, err);
    if (status != POD_OK) {
        return status;
    }
    POD_ASSERT(sizes != NULL);
    for (int rank = 0; rank < par->size; rank++) {
        *total += (size_t)sizes[rank];
    }
    unsigned char *bytes = par->rank == 0 ? malloc(*total + 1) : NULL;
    if (par->rank == 0 && bytes == NULL) {
        status = pod_fail(err, POD_E_NOMEM, "no memory to gather %zu bytes", *total);
    }
    status = pod_par_agree(par, status, err);
    if (status == POD_OK && par->rank != 0) {
        send_to_0(par, data, size);
    } else if (status == POD_OK) {
        POD_ASSERT(bytes != NULL);
        collect(par, data, sizes, bytes);
        *all = bytes;
        bytes = NULL;
    }
    free(bytes);
    free(sizes);
    return status;
}
