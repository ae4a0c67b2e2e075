/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/run.h"

#include "sim/pattern.h"
#include "sim/run_watch.h"

#include <stdio.h>
#include <string.h>

typedef struct collective_run {
    const pod_run_collective_args *args;
    pod_net *net;
    pod_collective *coll;
    pod_pattern pattern;
    pod_run_watcher watcher;
    pod_time_ps last_ps;
    int32_t last_cell; /* of this rank, done at last_ps */
    int64_t wrong;
    int64_t checked;
} collective_run;

/* ---- the test data of one chip ---- */

/* Elements of the vector before part p: parts lie one after another. */
static int64_t part_first(const pod_coll_schedule *schedule, int32_t part)
{
    int64_t first = 0;
    for (int32_t i = 0; i < part; i++) {
        first += schedule->parts[i].elements;
    }
    return first;
}

typedef struct slot_run {
    int32_t part;
    int32_t slot; /* first slot */
    int32_t slots;
    int32_t block;  /* the first of the blocks whose elements they hold */
    int32_t source; /* rank whose contribution they hold; -1 = the sum of all */
} slot_run;

static int64_t block_first(const pod_coll_schedule *schedule, int32_t part, int32_t block)
{
    const int64_t elements = schedule->parts[part].elements;
    const int64_t blocks = schedule->parts[part].blocks;
    const int64_t rest = elements % blocks;
    return part_first(schedule, part) + block * (elements / blocks) + (block < rest ? block : rest);
}

static void run_fill(collective_run *run, int32_t chip, int32_t rank, const slot_run *slots)
{
    const pod_coll_schedule *schedule = run->args->schedule;
    int64_t offset = 0;
    int64_t elements = 0;
    pod_coll_slots(schedule, rank, slots->part, slots->slot, slots->slots, &offset, &elements);
    const void *table = pod_pattern_table(&run->pattern, slots->source);
    unsigned char *work = pod_collective_work(run->coll, chip, slots->part);
    pod_pattern_fill(&run->pattern, table, block_first(schedule, slots->part, slots->block),
                     elements, work + offset * pod_dtype_size(run->args->dtype));
}

static void run_check(collective_run *run, int32_t chip, int32_t rank, const slot_run *slots)
{
    const pod_coll_schedule *schedule = run->args->schedule;
    int64_t offset = 0;
    int64_t elements = 0;
    pod_coll_slots(schedule, rank, slots->part, slots->slot, slots->slots, &offset, &elements);
    const void *table = pod_pattern_table(&run->pattern, slots->source);
    const unsigned char *work = pod_collective_work(run->coll, chip, slots->part);
    run->wrong +=
        pod_pattern_wrong(&run->pattern, table, block_first(schedule, slots->part, slots->block),
                          elements, work + offset * pod_dtype_size(run->args->dtype));
    run->checked += elements;
}

typedef void slot_visitor(collective_run *run, int32_t chip, int32_t rank, const slot_run *slots);

/* Slots that hold data of rank's own before the collective starts. */
static void visit_start(collective_run *run, int32_t chip, int32_t rank, slot_visitor *visit)
{
    const pod_coll_schedule *schedule = run->args->schedule;
    for (int32_t part = 0; part < schedule->nparts; part++) {
        const int32_t blocks = schedule->parts[part].blocks;
        const int32_t own = pod_coll_own_slot(schedule, part, rank);
        const int32_t pieces = pod_coll_own_slots(schedule, part);
        slot_run slots = {.part = part, .slot = 0, .slots = blocks, .block = 0, .source = rank};
        switch (schedule->op) {
        case POD_ALL_GATHER:
            slots.slot = own;
            slots.block = own;
            slots.slots = pieces;
            break;
        case POD_BROADCAST:
            slots.slots = rank == schedule->root ? blocks : 0;
            break;
        case POD_ALL_TO_ALL:
            visit(run, chip, rank, &slots);
            slots = (slot_run){
                .part = part, .slot = blocks + own, .slots = pieces, .block = own, .source = rank};
            break;
        case POD_ALL_REDUCE:
        case POD_REDUCE_SCATTER:
        case POD_PERMUTE:
        case POD_COLL_OP_COUNT:
            break;
        }
        if (slots.slots > 0) {
            visit(run, chip, rank, &slots);
        }
    }
}

/* Slots that must hold the result at the end. */
static void visit_end(collective_run *run, int32_t chip, int32_t rank, slot_visitor *visit)
{
    const pod_coll_schedule *schedule = run->args->schedule;
    for (int32_t part = 0; part < schedule->nparts; part++) {
        const int32_t blocks = schedule->parts[part].blocks;
        slot_run slots = {.part = part, .slot = 0, .slots = blocks, .block = 0, .source = -1};
        switch (schedule->op) {
        case POD_REDUCE_SCATTER:
            slots.slot = pod_coll_own_slot(schedule, part, rank);
            slots.block = slots.slot;
            slots.slots = pod_coll_own_slots(schedule, part);
            break;
        case POD_BROADCAST:
            slots.source = schedule->root;
            break;
        case POD_PERMUTE:
            slots.slot = blocks;
            slots.source = run->args->source_of ? run->args->source_of[rank] : rank;
            slots.slots = slots.source >= 0 ? blocks : 0;
            break;
        case POD_ALL_GATHER:
        case POD_ALL_TO_ALL:
            for (int32_t other = 0; other < schedule->group->size; other++) {
                const int32_t theirs = pod_coll_own_slot(schedule, part, other);
                const bool exchange = schedule->op == POD_ALL_TO_ALL;
                slots = (slot_run){
                    .part = part,
                    .slot = exchange ? blocks + theirs : theirs,
                    .slots = pod_coll_own_slots(schedule, part),
                    .block = exchange ? pod_coll_own_slot(schedule, part, rank) : theirs,
                    .source = other,
                };
                visit(run, chip, rank, &slots);
            }
            slots.slots = 0;
            break;
        case POD_ALL_REDUCE:
        case POD_COLL_OP_COUNT:
            break;
        }
        if (slots.slots > 0) {
            visit(run, chip, rank, &slots);
        }
    }
}

/* ---- the net's calls ---- */

static void run_woke(void *context, int32_t chip, uint64_t argument)
{
    (void)argument;
    collective_run *run = context;
    pod_collective_start(run->coll, chip, 0);
}

static void run_arrived(void *context, int32_t chip, pod_net_tag tag, pod_payload *payload)
{
    collective_run *run = context;
    pod_collective_arrived(run->coll, chip, tag, payload);
}

static void run_sent(void *context, int32_t chip, pod_net_tag tag)
{
    collective_run *run = context;
    pod_collective_sent(run->coll, chip, tag);
}

static void run_freed(void *context, int32_t chip, int port)
{
    const collective_run *run = context;
    pod_collective_freed(run->coll, chip, port);
}

static void run_left(void *context, int32_t chip, int port, pod_net_tag tag, int32_t source,
                     pod_time_ps joined_ps)
{
    collective_run *run = context;
    pod_run_watcher_note(&run->watcher, chip, port, tag, source, joined_ps, pod_net_now(run->net));
}

static bool run_blocked(void *context, int32_t chip, char *text, size_t size)
{
    const collective_run *run = context;
    return pod_collective_blocked(run->coll, chip, text, size);
}

static void run_done(void *context, int32_t chip, uint32_t instance)
{
    (void)instance;
    collective_run *run = context;
    const pod_time_ps now = pod_net_now(run->net);
    if (now > run->last_ps || (now == run->last_ps && chip < run->last_cell)) {
        run->last_ps = now;
        run->last_cell = chip;
    }
}

static pod_status run_prepare(collective_run *run, pod_error *err)
{
    const pod_run_collective_args *args = run->args;
    const pod_coll_schedule *schedule = args->schedule;
    const pod_collective_options options = {
        .machine = args->machine,
        .net = run->net,
        .schedule = schedule,
        .dtype = args->dtype,
        .data = args->data,
        .done = run_done,
        .context = run,
    };
    pod_status st = pod_collective_new(&options, &run->coll, err);
    if (st == POD_OK) {
        pod_collective_near(run->coll);
    }
    if (st != POD_OK || !args->data) {
        return st;
    }
    const bool sums = schedule->op == POD_ALL_REDUCE || schedule->op == POD_REDUCE_SCATTER;
    st = pod_pattern_init(&run->pattern, args->dtype, args->seed, schedule->group->size, sums, err);
    if (st != POD_OK) {
        return st;
    }
    int32_t first = 0;
    const int32_t nlocal = pod_engine_cells(pod_net_engine(run->net), &first);
    for (int32_t chip = first; chip < first + nlocal; chip++) {
        visit_start(run, chip, pod_group_rank(schedule->group, chip), run_fill);
    }
    return POD_OK;
}

static void run_verify(collective_run *run)
{
    int32_t first = 0;
    const int32_t nlocal = pod_engine_cells(pod_net_engine(run->net), &first);
    for (int32_t chip = first; chip < first + nlocal; chip++) {
        visit_end(run, chip, pod_group_rank(run->args->schedule->group, chip), run_check);
    }
}

static pod_status run_machine(const pod_run_collective_args *args, pod_run_result *result,
                              pod_error *err)
{
    pod_par *par = args->machine->par;
    POD_ASSERT(!args->data || pod_machine_cells(args->machine) == pod_machine_chips(args->machine));
    collective_run run = {.args = args, .last_cell = INT32_MAX};
    const pod_net_client client = {.context = &run,
                                   .arrived = run_arrived,
                                   .sent = run_sent,
                                   .woke = run_woke,
                                   .freed = run_freed,
                                   .blocked = run_blocked,
                                   .left = args->watch != NULL ? run_left : NULL};
    pod_machine machine = *args->machine;
    machine.circuits = args->schedule->circuits;
    const pod_coll_schedule *schedule = args->schedule;
    const int64_t exclusive_bytes = schedule->exclusive && args->watch == NULL
                                        ? schedule->least_elements * pod_dtype_size(args->dtype)
                                        : -1;
    POD_TRY(pod_machine_net(&machine, &client, exclusive_bytes, &run.net, err));
    run.watcher =
        (pod_run_watcher){.watch = args->watch, .schedule = args->schedule, .dtype = args->dtype};
    pod_status st = pod_par_agree(par, run_prepare(&run, err), err);
    if (st == POD_OK) {
        int32_t first = 0;
        const int32_t nlocal = pod_engine_cells(pod_net_engine(run.net), &first);
        for (int32_t chip = first; chip < first + nlocal; chip++) {
            pod_net_wake(run.net, chip, args->machine->launch_ps, 0);
        }
        st = pod_net_run(run.net, err);
    }
    if (st == POD_OK && args->data) {
        run_verify(&run);
    }
    if (st == POD_OK && args->watch != NULL) {
        st = pod_run_watcher_finish(&run.watcher, par, err);
    }
    POD_THEN(st, pod_machine_links(args->machine, run.net, &result->links, err));
    if (st == POD_OK) {
        int64_t sums[2] = {run.wrong, run.checked};
        pod_par_sum_i64(par, sums, 2);
        int64_t last = run.last_ps;
        pod_par_max_i64(par, &last, 1);
        int64_t cell = last == run.last_ps ? run.last_cell : INT32_MAX;
        pod_par_min_i64(par, &cell, 1);
        result->time_ps = last;
        result->last_chip = cell < INT32_MAX ? pod_machine_chip(args->machine, (int32_t)cell) : 0;
        result->wrong = sums[0];
        result->checked = sums[1];
    }
    pod_run_watcher_fini(&run.watcher);
    pod_pattern_fini(&run.pattern);
    pod_collective_free(run.coll);
    pod_net_free(run.net);
    return st;
}

/* Slices consist of whole servers that do the same. */
static bool servers_repeat(const pod_machine *machine)
{
    for (int axis = 0; machine->dcn != NULL && axis < POD_AXES; axis++) {
        if (machine->dcn->nfaults > 0
            || machine->slice->dims[axis] % machine->dcn->options.server_dims[axis] != 0) {
            return false;
        }
    }
    return true;
}

bool pod_run_folds(const pod_run_collective_args *args)
{
    return args->fold && args->watch == NULL && args->schedule->uniform && !args->data
           && args->machine->slice->nfaults == 0 && servers_repeat(args->machine);
}

pod_status pod_run_collective(const pod_run_collective_args *args, pod_run_result *result,
                              pod_error *err)
{
    if (!pod_run_folds(args)) {
        return run_machine(args, result, err);
    }
    pod_par *self = NULL;
    pod_status st = pod_par_agree(args->machine->par, pod_par_self_new(&self, err), err);
    if (st == POD_OK) {
        pod_machine one = *args->machine;
        pod_run_collective_args own = *args;
        one.par = self;
        own.machine = &one;
        one.fold_slices = one.dcn != NULL;
        for (int axis = 0; axis < POD_AXES; axis++) { /* whole hosts, whose NICs keep their rates */
            one.period[axis] = one.dcn != NULL ? one.dcn->options.server_dims[axis] : 1;
        }
        st = pod_par_agree(args->machine->par, run_machine(&own, result, err), err);
    }
    pod_par_self_free(self);
    return st;
}

int64_t pod_run_data_bytes(const pod_coll_schedule *schedule, const pod_slice *slice,
                           pod_dtype dtype)
{
    int64_t total = 0;
    const pod_group *group = schedule->group;
    const int64_t groups =
        group->slices > 1 ? group->count : (int64_t)group->count * slice->nslices;
    for (int32_t rank = 0; rank < group->size; rank++) {
        for (int32_t part = 0; part < schedule->nparts; part++) {
            const int64_t elements = pod_coll_work_elements(schedule, rank, part);
            int64_t bytes = 0;
            if (!pod_mul_i64(elements, pod_dtype_size(dtype) * groups, &bytes)
                || !pod_add_i64(total, bytes, &total)) {
                return INT64_MAX;
            }
        }
    }
    return total;
}
