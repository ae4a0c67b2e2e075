/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/experiment.h"

#include "engine/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All chips together may hold this much before numbers are left out by default. */
static const int64_t DATA_BY_SIZE_MAX_BYTES = INT64_C(1) << 30;

enum { BYTES_PER_MIB = 1 << 20 };
static const double HELD_AND_MOVED = 1.5;
static const double MEMORY_FRAC = 0.8;

void pod_experiment_note(const pod_experiment *experiment, const char *format, ...)
{
    const pod_experiment_listener *listener = &experiment->listener;
    if (listener->note != NULL) {
        char text[POD_EXPERIMENT_TEXT_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        listener->note(listener->context, text);
    }
}

void pod_experiment_progress(void *experiment, pod_time_ps now_ps, int64_t events)
{
    const pod_experiment *own = experiment;
    if (own->listener.progress != NULL) {
        char what[64];
        (void)snprintf(what, sizeof what, "events, %.3f ms simulated",
                       pod_time_to_us(now_ps) / 1e3);
        own->listener.progress(own->listener.context, events, 0, what);
    }
}

void pod_experiment_progress_end(const pod_experiment *experiment)
{
    if (experiment->listener.progress != NULL) {
        experiment->listener.progress(experiment->listener.context, 0, 0, NULL);
    }
}

bool pod_experiment_data_fits(int64_t bytes)
{
    return bytes <= DATA_BY_SIZE_MAX_BYTES;
}

double pod_experiment_room_bytes(const pod_experiment *experiment)
{
    const int64_t free_bytes = pod_memory_free_bytes(experiment->par);
    return experiment->force || free_bytes == INT64_MAX ? (double)INFINITY
                                                        : (double)free_bytes * MEMORY_FRAC;
}

pod_status pod_experiment_room_fail(const char *what, double needed, double room,
                                    const char *remedies, pod_error *err)
{
    const double there = room / MEMORY_FRAC;
    char needs[POD_FORMAT_MAX];
    char has[POD_FORMAT_MAX];
    return pod_fail(
        err, POD_E_NOFIT,
        "%s need %s GiB, and this machine has %s GiB free, of which 80 %% are used at "
        "most; %s, more machines, or --force",
        what, pod_format_rounded(needed / (double)POD_BYTES_PER_GIB, 3, needs, sizeof needs),
        pod_format_rounded(there / (double)POD_BYTES_PER_GIB, 3, has, sizeof has), remedies);
}

pod_status pod_experiment_memory_check(const pod_experiment *experiment, int64_t bytes,
                                       int64_t buffer, const char *option, pod_error *err)
{
    const double room = pod_experiment_room_bytes(experiment);
    const double needed = (double)bytes * HELD_AND_MOVED;
    if (needed <= room) {
        return POD_OK;
    }
    char remedies[POD_FORMAT_MAX + 64] = "use --data none, fewer chips";
    int64_t fits = 1;
    while (fits <= buffer / 2 && needed * 2 * (double)fits / (double)buffer <= room) {
        fits *= 2;
    }
    if (buffer > 0 && needed * (double)fits / (double)buffer <= room) {
        const bool mib = fits >= BYTES_PER_MIB;
        (void)snprintf(remedies, sizeof remedies,
                       mib ? "use --data none, %s %lldMiB" : "use --data none, %s %lld", option,
                       (long long)(mib ? fits / BYTES_PER_MIB : fits));
    }
    return pod_experiment_room_fail("real numbers of all chips", needed, room, remedies, err);
}

const char *pod_experiment_data_text(bool real, int64_t bytes, char *text, size_t size)
{
    char needed[POD_FORMAT_MAX];
    (void)snprintf(text, size, "--data %s, as all chips together need %s (limit 1 GiB)",
                   real ? "real" : "none",
                   bytes == INT64_MAX ? "too much"
                                      : pod_format_bytes(bytes, needed, sizeof needed));
    return text;
}

/* Items that lie on different ranks. */
typedef struct shares {
    unsigned char *items;
    size_t item_size;
    int count;
    int ranks;
    const int32_t *owner; /* owner[item]; NULL: ranks in turn */
} shares;

/* The items of a rank, one after another in `packed`. @return their number */
static int copy_share(const shares *s, int rank, unsigned char *packed, bool pack)
{
    int taken = 0;
    for (int i = 0; i < s->count; i++) {
        if ((s->owner != NULL ? s->owner[i] : i % s->ranks) != rank) {
            continue;
        }
        const size_t item_size = s->item_size;
        unsigned char *item = s->items + (size_t)i * item_size;
        unsigned char *place = packed + (size_t)taken++ * item_size;
        memcpy(pack ? place : item, pack ? item : place, item_size);
    }
    return taken;
}

pod_status pod_experiment_share(pod_par *par, void *items, int count, size_t item_size,
                                const int32_t *owner, pod_error *err)
{
    const int ranks = pod_par_size(par);
    const shares s = {
        .items = items, .item_size = item_size, .count = count, .ranks = ranks, .owner = owner};
    if (ranks == 1 || count == 0) {
        return POD_OK;
    }
    unsigned char *own = malloc((size_t)count * item_size);
    pod_status st =
        own != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for %d results", count);
    st = pod_par_agree(par, st, err);
    void *all = NULL;
    size_t total = 0;
    if (st == POD_OK) {
        const int share = copy_share(&s, pod_par_rank(par), own, true);
        st = pod_par_gather(par, own, (size_t)share * item_size, &all, &total, err);
        st = pod_par_agree(par, st, err);
    }
    if (st == POD_OK && pod_par_rank(par) == 0) {
        unsigned char *next = all;
        for (int rank = 0; rank < ranks; rank++) {
            const int share = copy_share(&s, rank, next, false);
            next += (size_t)share * item_size;
        }
    }
    if (st == POD_OK) {
        pod_par_bcast(par, items, (size_t)count * item_size);
    }
    free(all);
    free(own);
    return st;
}
