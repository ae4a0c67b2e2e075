/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step_timeline.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Messages of one collective that left one link after another, with none of others between. */
typedef struct departures {
    pod_time_ps first_ps;
    pod_time_ps last_ps;
    int64_t count;
    int32_t watch;
    int32_t direction;
    int32_t stage;
    int32_t op;
} departures;

/* Items of one size that grow in number. */
typedef struct list {
    void *items;
    int64_t count;
    int64_t capacity;
} list;

struct pod_step_recorder {
    pod_step_observer observer;
    int32_t *chips;
    list ops;        /* pod_step_op_time */
    list links;      /* pod_step_link_time, without their owners */
    list departures; /* departures */
    /* latest[watch * POD_DIRECTIONS + direction]: its last departures, -1 = none */
    int64_t *latest;
    bool out_of_memory;
};

static void *list_add(pod_step_recorder *recorder, list *to, size_t size)
{
    if (to->count == to->capacity && !pod_grow(&to->items, &to->capacity, to->count + 1, size)) {
        recorder->out_of_memory = true;
        return NULL;
    }
    return (unsigned char *)to->items + (size_t)to->count++ * size;
}

static void list_free(list *of)
{
    free(of->items);
    *of = (list){0};
}

/* ---- the observer ---- */

static void note_op(void *context, int32_t watch, int32_t stage, int32_t op, pod_time_ps start_ps,
                    pod_time_ps end_ps)
{
    pod_step_recorder *recorder = context;
    pod_step_op_time *added = list_add(recorder, &recorder->ops, sizeof *added);
    if (added != NULL) {
        *added = (pod_step_op_time){start_ps, end_ps, watch, stage, op};
    }
}

static void note_busy(void *context, int32_t watch, int direction, pod_time_ps start_ps,
                      pod_time_ps end_ps)
{
    pod_step_recorder *recorder = context;
    pod_step_link_time *added = list_add(recorder, &recorder->links, sizeof *added);
    if (added != NULL) {
        *added = (pod_step_link_time){start_ps, end_ps, watch, direction, -1, POD_OP_NONE};
    }
}

static void note_left(void *context, int32_t watch, int direction, int32_t stage, int32_t op,
                      pod_time_ps now_ps)
{
    pod_step_recorder *recorder = context;
    int64_t *latest = &recorder->latest[watch * POD_DIRECTIONS + direction];
    if (*latest >= 0) {
        departures *last = (departures *)recorder->departures.items + *latest;
        if (last->stage == stage && last->op == op) {
            last->last_ps = now_ps;
            last->count++;
            return;
        }
    }
    departures *added = list_add(recorder, &recorder->departures, sizeof *added);
    if (added != NULL) {
        *added = (departures){now_ps, now_ps, 1, watch, direction, stage, op};
        *latest = recorder->departures.count - 1;
    }
}

pod_status pod_step_recorder_new(int32_t nchips, const int32_t *chips, pod_step_recorder **out,
                                 pod_error *err)
{
    pod_step_recorder *recorder = calloc(1, sizeof *recorder);
    *out = recorder;
    if (recorder != NULL) {
        recorder->chips = malloc(((size_t)nchips + 1) * sizeof *recorder->chips);
        recorder->latest = malloc(((size_t)nchips * POD_DIRECTIONS + 1) * sizeof *recorder->latest);
    }
    if (recorder == NULL || recorder->chips == NULL || recorder->latest == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    memcpy(recorder->chips, chips, (size_t)nchips * sizeof *chips);
    for (int32_t i = 0; i < nchips * POD_DIRECTIONS; i++) {
        recorder->latest[i] = -1;
    }
    recorder->observer = (pod_step_observer){.context = recorder,
                                             .nchips = nchips,
                                             .chips = recorder->chips,
                                             .op = note_op,
                                             .busy = note_busy,
                                             .left = note_left};
    return POD_OK;
}

void pod_step_recorder_free(pod_step_recorder *recorder)
{
    if (recorder == NULL) {
        return;
    }
    list_free(&recorder->ops);
    list_free(&recorder->links);
    list_free(&recorder->departures);
    free(recorder->chips);
    free(recorder->latest);
    free(recorder);
}

const pod_step_observer *pod_step_recorder_observer(const pod_step_recorder *recorder)
{
    return &recorder->observer;
}

/* ---- all ranks together ---- */

static int compare_keys(const int64_t *a, const int64_t *b, int count)
{
    for (int i = 0; i < count; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_ops(const void *left, const void *right)
{
    const pod_step_op_time *a = left;
    const pod_step_op_time *b = right;
    if (a->watch != b->watch) {
        return a->watch < b->watch ? -1 : 1;
    }
    if (a->start_ps != b->start_ps) {
        return a->start_ps < b->start_ps ? -1 : 1;
    }
    return a->op < b->op ? -1 : a->op > b->op;
}

static int compare_links(const void *left, const void *right)
{
    const pod_step_link_time *a = left;
    const pod_step_link_time *b = right;
    if (a->watch != b->watch) {
        return a->watch < b->watch ? -1 : 1;
    }
    if (a->direction != b->direction) {
        return a->direction < b->direction ? -1 : 1;
    }
    return a->start_ps < b->start_ps ? -1 : a->start_ps > b->start_ps;
}

static int compare_departures(const void *left, const void *right)
{
    const departures *a = left;
    const departures *b = right;
    return compare_keys((const int64_t[]){a->watch, a->direction, a->first_ps, a->stage, a->op},
                        (const int64_t[]){b->watch, b->direction, b->first_ps, b->stage, b->op}, 5);
}

/* Sort, and leave out what stands there twice: cells that every rank simulated for itself. */
static int64_t sort_once(void *items, int64_t count, size_t size,
                         int (*compare)(const void *, const void *))
{
    unsigned char *at = items;
    int64_t kept = 0;
    if (count > 0) {
        qsort(items, (size_t)count, size, compare);
    }
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *item = at + (size_t)i * size;
        if (kept == 0 || compare(at + (size_t)(kept - 1) * size, item) != 0) {
            memmove(at + (size_t)kept * size, item, size);
            kept++;
        }
    }
    return kept;
}

static pod_status gather(pod_par *par, list *from, size_t size,
                         int (*compare)(const void *, const void *), void **items, int64_t *count,
                         pod_error *err)
{
    size_t bytes = 0;
    *items = NULL;
    *count = 0;
    const pod_status status =
        pod_par_gather(par, from->items, (size_t)from->count * size, items, &bytes, err);
    if (status == POD_OK && *items != NULL) {
        *count = sort_once(*items, (int64_t)(bytes / size), size, compare);
    }
    list_free(from);
    return status;
}

/* Messages of a run that left in the stretch, if they left evenly. */
static double share_of(const departures *run, const pod_step_link_time *stretch)
{
    const pod_time_ps first =
        run->first_ps > stretch->start_ps ? run->first_ps : stretch->start_ps + 1;
    const pod_time_ps last = run->last_ps < stretch->end_ps ? run->last_ps : stretch->end_ps;
    if (last < first) {
        return 0;
    }
    return (double)run->count * (double)(last - first + 1)
           / (double)(run->last_ps - run->first_ps + 1);
}

static bool of_link_before(const departures *run, const pod_step_link_time *stretch)
{
    const int64_t a[] = {run->watch, run->direction, run->last_ps};
    const int64_t b[] = {stretch->watch, stretch->direction, stretch->start_ps + 1};
    return compare_keys(a, b, 3) < 0;
}

static bool of_link_within(const departures *run, const pod_step_link_time *stretch)
{
    return run->watch == stretch->watch && run->direction == stretch->direction
           && run->first_ps <= stretch->end_ps;
}

/* Each stretch goes to the collective of which most messages left in it. Both lists are sorted. */
static void name_owners(pod_step_timeline *timeline, const departures *runs, int64_t nruns)
{
    int64_t from = 0;
    for (int64_t i = 0; i < timeline->nlinks; i++) {
        pod_step_link_time *stretch = &timeline->links[i];
        while (from < nruns && of_link_before(&runs[from], stretch)) {
            from++;
        }
        double most = 0;
        for (int64_t j = from; j < nruns && of_link_within(&runs[j], stretch); j++) {
            const double share = share_of(&runs[j], stretch);
            if (share > most) {
                most = share;
                stretch->stage = runs[j].stage;
                stretch->op = runs[j].op;
            }
        }
    }
}

static pod_status chips_copy(const pod_step_recorder *recorder, pod_step_timeline *timeline,
                             pod_error *err)
{
    const size_t bytes = (size_t)recorder->observer.nchips * sizeof *timeline->chips;
    timeline->nchips = recorder->observer.nchips;
    timeline->chips = malloc(bytes + 1);
    if (timeline->chips == NULL || recorder->out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    memcpy(timeline->chips, recorder->chips, bytes);
    return POD_OK;
}

pod_status pod_step_recorder_finish(pod_step_recorder *recorder, pod_par *par, pod_time_ps end_ps,
                                    pod_step_timeline *timeline, pod_error *err)
{
    void *ops = NULL;
    void *links = NULL;
    void *runs = NULL;
    int64_t nruns = 0;
    *timeline = (pod_step_timeline){.end_ps = end_ps};
    pod_status status = pod_par_agree(par, chips_copy(recorder, timeline, err), err);
    if (status == POD_OK) {
        status = gather(par, &recorder->ops, sizeof(pod_step_op_time), compare_ops, &ops,
                        &timeline->nops, err);
        timeline->ops = ops;
    }
    if (status == POD_OK) {
        status = gather(par, &recorder->links, sizeof(pod_step_link_time), compare_links, &links,
                        &timeline->nlinks, err);
        timeline->links = links;
    }
    POD_THEN(status, gather(par, &recorder->departures, sizeof(departures), compare_departures,
                            &runs, &nruns, err));
    if (status == POD_OK) {
        name_owners(timeline, runs, nruns);
    }
    free(runs);
    for (int32_t i = 0; i < recorder->observer.nchips * POD_DIRECTIONS; i++) {
        recorder->latest[i] = -1;
    }
    return status;
}

void pod_step_timeline_fini(pod_step_timeline *timeline)
{
    free(timeline->chips);
    free(timeline->ops);
    free(timeline->links);
    *timeline = (pod_step_timeline){0};
}
