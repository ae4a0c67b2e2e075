/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* No more than that is kept. */
static const int64_t replays_bytes_max = INT64_C(64) << 20;

static int64_t bytes_of(const pod_replay *replay)
{
    const int64_t begins = (int64_t)replay->nops * replay->cells;
    return (int64_t)sizeof *replay + replay->nops * (int64_t)sizeof *replay->ops
           + begins * (int64_t)(2 * sizeof(pod_time_ps) + sizeof *replay->turn)
           + replay->cells * (int64_t)(POD_DIRECTIONS * sizeof *replay->links);
}

pod_status pod_replay_new(int32_t nops, int32_t cells, pod_replay **replay, pod_error *err)
{
    pod_replay *made = calloc(1, sizeof *made);
    const size_t begins = (size_t)nops * (size_t)cells;
    *replay = NULL;
    if (made == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a record of collectives");
    }
    made->nops = nops;
    made->cells = cells;
    made->ops = calloc((size_t)nops + 1, sizeof *made->ops);
    made->begin_ps = calloc(begins + 1, sizeof *made->begin_ps);
    made->end_ps = calloc(begins + 1, sizeof *made->end_ps);
    made->turn = calloc(begins + 1, sizeof *made->turn);
    made->links = calloc((size_t)cells * POD_DIRECTIONS + 1, sizeof *made->links);
    if (made->ops == NULL || made->begin_ps == NULL || made->end_ps == NULL || made->turn == NULL
        || made->links == NULL) {
        pod_replay_free(made);
        return pod_fail(err, POD_E_NOMEM, "no memory for a record of collectives");
    }
    *replay = made;
    return POD_OK;
}

void pod_replay_free(pod_replay *replay)
{
    if (replay != NULL) {
        free(replay->ops);
        free(replay->begin_ps);
        free(replay->end_ps);
        free(replay->turn);
        free(replay->links);
        free(replay);
    }
}

/* The same ops from the same place on, begun at the same times. */
static bool is_same(const pod_replay *a, const pod_replay *b)
{
    const size_t begins = (size_t)a->nops * (size_t)a->cells;
    return a->nops == b->nops && a->cells == b->cells && a->from_front == b->from_front
           && a->from_back == b->from_back
           && memcmp(a->ops, b->ops, (size_t)a->nops * sizeof *a->ops) == 0
           && memcmp(a->begin_ps, b->begin_ps, begins * sizeof *a->begin_ps) == 0
           && memcmp(a->turn, b->turn, begins * sizeof *a->turn) == 0;
}

void pod_replay_add(pod_replay_list *list, pod_replay *replay)
{
    bool known = false;
    for (int64_t i = 0; i < list->count && !known; i++) {
        known = is_same(list->record[i], replay);
    }
    if (known || list->bytes + bytes_of(replay) > replays_bytes_max
        || !POD_GROW(list->record, list->room, list->count + 1)) {
        pod_replay_free(replay);
        return;
    }
    replay->run = list->run;
    list->bytes += bytes_of(replay);
    list->record[list->count++] = replay;
}

void pod_replay_bar(pod_replay_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        list->record[i]->barred = list->record[i]->barred || list->record[i]->run != list->run;
    }
}

void pod_replay_list_fini(pod_replay_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        pod_replay_free(list->record[i]);
    }
    free(list->record);
    *list = (pod_replay_list){.record = NULL};
}
