/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

/* How long a rank sleeps before it looks after MPI: at first, and at most. */
#define NAP_FIRST_NS INT64_C(2000000)
#define NAP_MAX_NS   INT64_C(50000000)

typedef struct gate_seat {
    sem_t wake;
    int64_t values[2][POD_GATE_VALUES];
    int64_t bound; /* for the next window */
    bool stay;
    bool due; /* takes part in it */
} gate_seat;

typedef struct gate_hall {
    atomic_int arrived;
    atomic_int working; /* ranks whose part of this window has not ended */
    int64_t window;     /* windows so far */
    int64_t first;      /* where this one begins */
    unsigned char bytes[2][POD_GATE_BYTES];
    gate_seat seats[]; /* seats[size], then senders */
} gate_hall;

enum { WORD_BITS = 64 };

struct pod_gate {
    gate_hall *hall;
    size_t hall_bytes;
    MPI_Comm comm; /* borrowed */
    int rank;
    int size;
    int set;        /* of the next meeting */
    int64_t window; /* the one this rank is in */
    int words;      /* of a bit per rank */
};

static int sender_words(int size)
{
    return (size + WORD_BITS - 1) / WORD_BITS;
}

static size_t hall_bytes(int size)
{
    return sizeof(gate_hall) + (size_t)size * sizeof(gate_seat)
           + 2 * (size_t)size * (size_t)sender_words(size) * sizeof(_Atomic uint64_t);
}

/* Bits of the ranks that have sent something to `rank` in a window: even and odd ones have their own. */
static _Atomic uint64_t *senders(const pod_gate *gate, int rank, int64_t window)
{
    _Atomic uint64_t *all = (_Atomic uint64_t *)(void *)&gate->hall->seats[gate->size];
    return all + ((size_t)rank * 2 + (size_t)(window % 2)) * (size_t)gate->words;
}

static gate_hall *map(int file, int size)
{
    void *memory = mmap(NULL, hall_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void pod_gate_create(int size, char name[POD_GATE_NAME])
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(name, POD_GATE_NAME, "/podsim-%ld-%ld", (long)getpid(), now.tv_nsec);
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    gate_hall *made = NULL;
    if (file >= 0 && ftruncate(file, (off_t)hall_bytes(size)) == 0) {
        made = map(file, size);
    }
    bool good = made != NULL;
    for (int rank = 0; good && rank < size; rank++) {
        good = sem_init(&made->seats[rank].wake, 1, 0) == 0;
    }
    if (good) {
        atomic_store(&made->working, size);
    }
    if (made != NULL) {
        (void)munmap(made, hall_bytes(size));
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (!good) {
        (void)shm_unlink(name);
        name[0] = '\0';
    }
}

pod_gate *pod_gate_open(const char *name, MPI_Comm comm)
{
    pod_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL) {
        return NULL;
    }
    gate->comm = comm;
    (void)MPI_Comm_rank(comm, &gate->rank);
    (void)MPI_Comm_size(comm, &gate->size);
    gate->words = sender_words(gate->size);
    int file = shm_open(name, O_RDWR, 0);
    if (file >= 0) {
        gate->hall = map(file, gate->size);
        (void)close(file);
    }
    if (gate->hall == NULL) {
        free(gate);
        return NULL;
    }
    return gate;
}

void pod_gate_unlink(const char *name)
{
    (void)shm_unlink(name);
}

void pod_gate_close(pod_gate *gate)
{
    if (gate != NULL) {
        (void)munmap(gate->hall, hall_bytes(gate->size));
        free(gate);
    }
}

/* Sleep until the last rank has come. */
static void sleep_until_woken(pod_gate *gate)
{
    sem_t *wake = &gate->hall->seats[gate->rank].wake;
    int64_t nap_ns = NAP_FIRST_NS;
    for (;;) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        int64_t ns = until.tv_nsec + nap_ns;
        until.tv_sec += (time_t)(ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
        if (sem_timedwait(wake, &until) == 0) {
            return;
        }
        POD_ASSERT(errno == ETIMEDOUT || errno == EINTR);
        int flag = 0;
        (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, gate->comm, &flag, MPI_STATUS_IGNORE);
        nap_ns = nap_ns * 2 < NAP_MAX_NS ? nap_ns * 2 : NAP_MAX_NS;
    }
}

/* Wait for all ranks. @return the set of numbers that this meeting has filled */
static int meet(pod_gate *gate)
{
    gate_hall *hall = gate->hall;
    if (atomic_fetch_add(&hall->arrived, 1) == gate->size - 1) {
        atomic_store(&hall->arrived, 0);
        for (int rank = 0; rank < gate->size; rank++) {
            if (rank != gate->rank) {
                POD_ASSERT(sem_post(&hall->seats[rank].wake) == 0);
            }
        }
    } else {
        sleep_until_woken(gate);
    }
    int set = gate->set;
    gate->set = 1 - set;
    return set;
}

void pod_gate_reduce(pod_gate *gate, int64_t *values, int count, pod_gate_op op)
{
    POD_ASSERT(count <= POD_GATE_VALUES);
    gate_seat *seats = gate->hall->seats;
    memcpy(seats[gate->rank].values[gate->set], values, (size_t)count * sizeof *values);
    int set = meet(gate);
    for (int rank = 0; rank < gate->size; rank++) {
        const int64_t *theirs = seats[rank].values[set];
        for (int i = 0; rank != gate->rank && i < count; i++) {
            switch (op) {
            case POD_GATE_SUM:
                values[i] += theirs[i];
                break;
            case POD_GATE_MAX:
                values[i] = theirs[i] > values[i] ? theirs[i] : values[i];
                break;
            case POD_GATE_MIN:
                values[i] = theirs[i] < values[i] ? theirs[i] : values[i];
                break;
            }
        }
    }
}

void pod_gate_bcast(pod_gate *gate, int root, void *data, size_t size)
{
    POD_ASSERT(size <= POD_GATE_BYTES);
    if (gate->rank == root) {
        memcpy(gate->hall->bytes[gate->set], data, size);
    }
    int set = meet(gate);
    if (gate->rank != root) {
        memcpy(data, gate->hall->bytes[set], size);
    }
}

void pod_gate_send(pod_gate *gate, int to)
{
    _Atomic uint64_t *word = senders(gate, to, gate->window) + gate->rank / WORD_BITS;
    (void)atomic_fetch_or(word, UINT64_C(1) << (gate->rank % WORD_BITS));
}

int pod_gate_sender(pod_gate *gate, int from)
{
    _Atomic uint64_t *words = senders(gate, gate->rank, gate->window - 1);
    for (int word = from / WORD_BITS; from < gate->size && word < gate->words; word++) {
        const uint64_t bits = atomic_load(&words[word]);
        if (bits != 0) {
            atomic_store(&words[word], bits & (bits - 1));
            return word * WORD_BITS + __builtin_ctzll(bits);
        }
    }
    return -1;
}

static bool has_sender(const pod_gate *gate, int rank)
{
    const _Atomic uint64_t *words = senders(gate, rank, gate->window);
    bool has = false;
    for (int word = 0; !has && word < gate->words; word++) {
        has = atomic_load(&words[word]) != 0;
    }
    return has;
}

/* All that work in this window have come: begin the next. Nobody is awake but this rank. @return who is due in it */
static int window_begin(pod_gate *gate, int64_t width)
{
    gate_hall *hall = gate->hall;
    int64_t first = INT64_MAX;
    for (int rank = 0; rank < gate->size; rank++) {
        first = hall->seats[rank].bound < first ? hall->seats[rank].bound : first;
    }
    const bool all = first < 0 || first == INT64_MAX;
    int due = 0;
    for (int rank = 0; rank < gate->size; rank++) {
        gate_seat *seat = &hall->seats[rank];
        seat->due = all || seat->stay || seat->bound - first < width || has_sender(gate, rank);
        due += seat->due;
    }
    hall->first = first;
    hall->window++;
    atomic_store(&hall->working, due);
    return due;
}

int64_t pod_gate_window(pod_gate *gate, int64_t bound, int64_t width, bool stay, int64_t *passed)
{
    gate_hall *hall = gate->hall;
    gate_seat *own = &hall->seats[gate->rank];
    own->bound = bound;
    own->stay = stay;
    bool awake = false;
    if (atomic_fetch_sub(&hall->working, 1) == 1) {
        int due = window_begin(gate, width);
        awake = own->due;
        due -= awake;
        for (int rank = 0; due > 0;
             rank++) { /* when the last is woken the next window may have begun */
            if (rank != gate->rank && hall->seats[rank].due) {
                due--;
                POD_ASSERT(sem_post(&hall->seats[rank].wake) == 0);
            }
        }
    }
    if (!awake) {
        sleep_until_woken(gate);
    }
    *passed = hall->window - gate->window;
    gate->window = hall->window;
    return hall->first;
}
