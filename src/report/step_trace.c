/* SPDX-License-Identifier: Apache-2.0 */
#include "report/step_trace.h"

#include "program/memory.h"
#include "program/op_time.h"
#include "report/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MERGE_PS = 1000000,   /* stretches of a link less than 1 us apart are drawn as one */
    COUNTER_PS = 10000000 /* use of links that lasts less than 10 us is not counted */
};

/* One chip being drawn. */
typedef struct drawing {
    pod_trace *trace;
    const pod_step_trace_args *args;
    pod_timeline_chip chip;
    const pod_program *program;
    const pod_step_op_time *ops;
    int64_t nops;
    pod_trace_thread *thread; /* thread[op]: where it was drawn; process 0 = not */
    pod_time_ps *end_ps;      /* end_ps[op] */
} drawing;

const char *pod_step_trace_phase(const pod_op *op)
{
    static const char *const phases[][2] = {
        {"fwd.",   "forward" },
        {"bwd.",   "backward"},
        {"update", "update"  }
    };
    if (op->recomputed) {
        return "recompute";
    }
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strncmp(op->name, phases[i][0], strlen(phases[i][0])) == 0) {
            return phases[i][1];
        }
    }
    return "";
}

static int row_of(const drawing *d, const pod_op *op)
{
    switch (pod_op_row(op->kind)->resource) {
    case POD_ON_CORE:
        return POD_ROW_OPS;
    case POD_ON_LANE:
        return op->lane == POD_LANE_SPARSE ? POD_ROW_SPARSECORE : POD_ROW_COPIES;
    case POD_ON_HOST:
    case POD_ON_NOTHING:
        return POD_ROW_HOST;
    case POD_ON_SEND:
    case POD_ON_RECV:
        return POD_ROW_ASYNC;
    case POD_ON_LINKS:
        break;
    }
    return pod_program_group_slices(&d->args->programs->groups[op->group]) > 1 ? POD_ROW_DCN
                                                                               : POD_ROW_ASYNC;
}

/* Whether ops are those of a model and a mesh, whose names tell their phase; else those of a compiled text. */
static bool has_phases(const drawing *d)
{
    return d->args->part == NULL;
}

static void describe_collective(const drawing *d, const pod_op *op, const pod_op_record *record,
                                pod_trace_args *args)
{
    const pod_program_group *group = &d->args->programs->groups[op->group];
    pod_trace_args_i64(args, "group", group->group.size);
    pod_trace_args_text(args, has_phases(d) ? "mesh_axis" : "physical_axes", group->axes);
    pod_trace_args_i64(args, "bytes", op->bytes);
    if (record->algorithm[0] != '\0') {
        pod_trace_args_text(args, "algorithm", record->algorithm);
    }
    if (record->bound_ps > 0) {
        pod_trace_args_us(args, "bound_us", record->bound_ps);
    }
}

static void describe_matmul(const pod_op *op, pod_trace_args *args)
{
    pod_trace_args_i64(args, "m", op->m);
    pod_trace_args_i64(args, "k", op->k);
    pod_trace_args_i64(args, "n", op->n);
    if (op->count > 1) {
        pod_trace_args_i64(args, "count", op->count);
    }
    pod_trace_args_double(args, "model_flops", pod_op_mxu_flops(op));
}

static void describe(const drawing *d, const pod_op *op, int32_t number, pod_trace_args *args)
{
    const pod_op_record *record = &d->args->result->ops[d->program->stage][number];
    pod_trace_args_text(args, "hlo_category",
                        pod_op_is_collective(op) ? pod_coll_op_name(op->op)
                                                 : pod_op_row(op->kind)->name);
    const char *phase = has_phases(d) ? pod_step_trace_phase(op) : "";
    if (phase[0] != '\0') {
        pod_trace_args_text(args, "phase", phase);
    }
    if (op->layer >= 0) {
        pod_trace_args_i64(args, "layer", op->layer);
    }
    if (op->m > 0) {
        describe_matmul(op, args);
    }
    if (op->hbm_bytes > 0) {
        pod_trace_args_i64(args, "bytes_accessed", op->hbm_bytes);
    }
    if (pod_op_is_collective(op)) {
        describe_collective(d, op, record, args);
    } else if (op->bytes > 0) {
        pod_trace_args_i64(args, "bytes", op->bytes);
    }
    if (record->chips > 0 && record->exposed_ps > 0) {
        pod_trace_args_us(args, "exposed_us", record->exposed_ps / record->chips);
    }
    if (d->args->describe != NULL) {
        d->args->describe(d->args->context, d->program->stage, number, args);
    }
}

static void draw_ops(drawing *d)
{
    pod_trace_args args = {0};
    for (int64_t i = 0; i < d->nops; i++) {
        const pod_step_op_time *time = &d->ops[i];
        const pod_op *op = &d->program->ops[time->op];
        describe(d, op, time->op, &args);
        d->thread[time->op] = pod_timeline_slice(d->trace, &d->chip, row_of(d, op), op->name,
                                                 time->start_ps, time->end_ps, &args);
        d->end_ps[time->op] = time->end_ps;
    }
    pod_trace_args_free(&args);
}

/* From the end of what is not the core's to the core op that waits for it. */
static void draw_arrows(drawing *d)
{
    for (int64_t i = 0; i < d->nops; i++) {
        const pod_step_op_time *time = &d->ops[i];
        const pod_op *op = &d->program->ops[time->op];
        for (int32_t j = 0; pod_op_is_core(op) && j < op->ndeps; j++) {
            const int32_t dep = d->program->deps[op->first_dep + j];
            if (!pod_op_is_core(&d->program->ops[dep]) && d->thread[dep].process > 0) {
                pod_trace_arrow(d->trace, d->thread[dep], d->end_ps[dep], d->thread[time->op],
                                time->start_ps);
            }
        }
    }
}

/* ---- Framework Ops ---- */

/* A slice of Framework Ops that is not over yet. */
typedef struct open_phase {
    const char *name; /* NULL: none */
    int32_t layer;
    pod_time_ps start_ps;
    pod_time_ps end_ps;
} open_phase;

static void phase_close(drawing *d, pod_trace_thread thread, bool layers, open_phase *open)
{
    char text[24];
    (void)snprintf(text, sizeof text, "layer %" PRId32, open->layer);
    if (open->name != NULL && (!layers || open->layer >= 0)) {
        pod_trace_slice(d->trace, thread, layers ? text : open->name, open->start_ps, open->end_ps,
                        NULL);
    }
    open->name = NULL;
}

/* Core ops in a row of one phase are a slice, or of one phase and one layer. Casts and the like belong to what is
 * around them. */
static void draw_phases(drawing *d, pod_trace_thread thread, bool layers)
{
    open_phase open = {.name = NULL};
    for (int64_t i = 0; i < d->nops; i++) {
        const pod_op *op = &d->program->ops[d->ops[i].op];
        const char *phase = pod_op_is_core(op) ? pod_step_trace_phase(op) : "";
        if (phase[0] == '\0') {
            continue;
        }
        if (open.name != NULL
            && (strcmp(open.name, phase) != 0 || (layers && open.layer != op->layer))) {
            phase_close(d, thread, layers, &open);
        }
        if (open.name == NULL) {
            open = (open_phase){phase, op->layer, d->ops[i].start_ps, 0};
        }
        open.end_ps = d->ops[i].end_ps;
    }
    phase_close(d, thread, layers, &open);
}

enum { PART_LEVELS = 4, PART_NAME_MAX = 96 };

/* The op's parts from the outermost to `level`, as one text. */
static bool path_of(const drawing *d, int32_t number, int level, char *path, size_t size)
{
    size_t used = 0;
    for (int i = 0; i <= level; i++) {
        char name[PART_NAME_MAX];
        if (!d->args->part(d->args->context, d->program->stage, number, i, name, sizeof name)) {
            return false;
        }
        const int more = snprintf(path + used, size - used, "/%s", name);
        used += more > 0 && (size_t)more < size - used ? (size_t)more : 0;
    }
    return true;
}

/* Core ops in a row that belong to the same are one slice. */
static void draw_parts(drawing *d, pod_trace_thread thread, int level)
{
    char open[PART_LEVELS * PART_NAME_MAX] = "";
    char path[PART_LEVELS * PART_NAME_MAX];
    pod_time_ps start = 0;
    pod_time_ps end = 0;
    for (int64_t i = 0; i <= d->nops; i++) {
        const bool over = i == d->nops;
        const bool core = !over && pod_op_is_core(&d->program->ops[d->ops[i].op]);
        if (!over && !core) {
            continue;
        }
        const bool has = core && path_of(d, d->ops[i].op, level, path, sizeof path);
        if (open[0] != '\0' && (!has || strcmp(open, path) != 0)) {
            pod_trace_slice(d->trace, thread, strrchr(open, '/') + 1, start, end, NULL);
            open[0] = '\0';
        }
        if (has) {
            start = open[0] == '\0' ? d->ops[i].start_ps : start;
            memcpy(open, path, sizeof open);
            end = d->ops[i].end_ps;
        }
    }
}

static void draw_framework(drawing *d)
{
    const pod_trace_thread thread =
        pod_trace_lane(d->trace, &d->chip.row[POD_ROW_FRAMEWORK], 0, d->args->timeline->end_ps);
    if (has_phases(d)) {
        draw_phases(d, thread, false);
        draw_phases(d, thread, true);
        return;
    }
    for (int level = 0; level < PART_LEVELS; level++) {
        draw_parts(d, thread, level);
    }
}

/* ---- links ---- */

static const char *owner_name(const drawing *d, const pod_step_link_time *stretch)
{
    if (stretch->op < 0 || stretch->stage < 0) {
        return "messages between stages";
    }
    return d->args->programs->stages[stretch->stage].ops[stretch->op].name;
}

/* All stretches of a chip, in order of direction and start; those that nearly touch become one. */
static void draw_links(drawing *d, const pod_step_link_time *links, int64_t nlinks)
{
    int64_t i = 0;
    while (i < nlinks) {
        const pod_step_link_time *first = &links[i];
        const char *name = owner_name(d, first);
        pod_time_ps end = first->end_ps;
        for (i++;
             i < nlinks && links[i].direction == first->direction
             && links[i].start_ps - end < MERGE_PS && strcmp(owner_name(d, &links[i]), name) == 0;
             i++) {
            end = links[i].end_ps > end ? links[i].end_ps : end;
        }
        (void)pod_timeline_slice(d->trace, &d->chip, POD_ROW_LINKS + first->direction, name,
                                 first->start_ps, end, NULL);
    }
}

/* ---- counters ---- */

static pod_status draw_memory(drawing *d, pod_error *err)
{
    pod_liveness live;
    const pod_status status = pod_liveness_find(d->program, &live, err);
    int64_t shown = -1;
    for (int64_t i = 0; status == POD_OK && i < d->nops; i++) {
        const int32_t op = d->ops[i].op;
        if (pod_op_is_core(&d->program->ops[op]) && live.bytes[op] != shown) {
            shown = live.bytes[op];
            pod_trace_counter(d->trace, d->chip.process, "HBM bytes", d->ops[i].start_ps,
                              (double)shown);
        }
    }
    pod_liveness_fini(&live);
    return status;
}

static int links_of(const pod_slice *slice, int32_t chip)
{
    int count = 0;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        count += pod_slice_neighbor(slice, chip % slice->nchips, direction) >= 0 ? 1 : 0;
    }
    return count;
}

/* The stretches of one direction, walked through from one change to the next. */
typedef struct link_walk {
    const pod_step_link_time *next;
    const pod_step_link_time *last; /* after all of them */
    pod_time_ps change_ps; /* when it becomes busy, or idle if it is busy; INT64_MAX = never */
    pod_time_ps end_ps;    /* of the stretch that begins next */
    bool busy;
} link_walk;

/* The next stretch, with those that overlap or touch it. */
static void walk_stretch(link_walk *walk)
{
    walk->busy = false;
    if (walk->next == walk->last) {
        walk->change_ps = INT64_MAX;
        return;
    }
    walk->change_ps = walk->next->start_ps;
    walk->end_ps = walk->next->end_ps;
    for (walk->next++; walk->next < walk->last && walk->next->start_ps <= walk->end_ps;
         walk->next++) {
        walk->end_ps = walk->next->end_ps > walk->end_ps ? walk->next->end_ps : walk->end_ps;
    }
}

static void walk_on(link_walk *walk)
{
    if (walk->busy) {
        walk_stretch(walk);
    } else {
        walk->busy = true;
        walk->change_ps = walk->end_ps;
    }
}

static link_walk *walk_first(link_walk walks[POD_DIRECTIONS])
{
    link_walk *first = &walks[0];
    for (int direction = 1; direction < POD_DIRECTIONS; direction++) {
        first = walks[direction].change_ps < first->change_ps ? &walks[direction] : first;
    }
    return first;
}

/* Stretches stand in order of direction and start. */
static void draw_link_use(drawing *d, int32_t chip, const pod_step_link_time *links, int64_t nlinks)
{
    link_walk walks[POD_DIRECTIONS];
    const int all = links_of(d->args->slice, chip);
    int64_t at = 0;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        walks[direction].next = links + at;
        while (at < nlinks && links[at].direction == direction) {
            at++;
        }
        walks[direction].last = links + at;
        walk_stretch(&walks[direction]);
    }
    int busy = 0;
    int shown = -1;
    for (link_walk *walk = walk_first(walks); walk->change_ps < INT64_MAX && all > 0;) {
        const pod_time_ps now = walk->change_ps;
        busy += walk->busy ? -1 : 1;
        walk_on(walk);
        walk = walk_first(walks);
        if (walk->change_ps - now >= COUNTER_PS && busy != shown) {
            shown = busy;
            pod_trace_counter(d->trace, d->chip.process, "links busy (part)", now,
                              (double)busy / all);
        }
    }
}

/* ---- a chip, and all ---- */

static pod_status draw_chip(drawing *d, int32_t watch, const pod_step_link_time *links,
                            int64_t nlinks, pod_error *err)
{
    const int32_t chip = d->args->timeline->chips[watch];
    d->program = &d->args->programs->stages[d->ops[0].stage];
    d->thread = calloc((size_t)d->program->nops + 1, sizeof *d->thread);
    d->end_ps = calloc((size_t)d->program->nops + 1, sizeof *d->end_ps);
    pod_status status = d->thread != NULL && d->end_ps != NULL
                            ? POD_OK
                            : pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    if (status == POD_OK) {
        pod_timeline_chip_init(d->trace, d->args->slice, chip, chip, &d->chip);
        (void)pod_timeline_slice(d->trace, &d->chip, POD_ROW_STEPS, d->args->title, 0,
                                 d->args->timeline->end_ps, NULL);
        draw_ops(d);
        draw_arrows(d);
        draw_framework(d);
        draw_links(d, links, nlinks);
        draw_link_use(d, chip, links, nlinks);
        status = draw_memory(d, err);
    }
    free(d->thread);
    free(d->end_ps);
    return status;
}

pod_status pod_step_trace_add(pod_trace *trace, const pod_step_trace_args *args, pod_error *err)
{
    const pod_step_timeline *timeline = args->timeline;
    int64_t op = 0;
    int64_t link = 0;
    pod_status status = POD_OK;
    while (status == POD_OK && op < timeline->nops) {
        const int32_t watch = timeline->ops[op].watch;
        drawing d = {.trace = trace, .args = args, .ops = timeline->ops + op};
        const pod_step_link_time *links = timeline->links + link;
        int64_t nlinks = 0;
        for (; op < timeline->nops && timeline->ops[op].watch == watch; op++) {
            d.nops++;
        }
        for (; link < timeline->nlinks && timeline->links[link].watch <= watch; link++) {
            nlinks++;
        }
        status = draw_chip(&d, watch, links, nlinks, err);
    }
    return status;
}
