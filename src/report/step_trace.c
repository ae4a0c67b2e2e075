/* SPDX-License-Identifier: Apache-2.0 */
#include "report/step_trace.h"

#include "program/memory.h"
#include "report/timeline.h"

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
        {"fwd.",   "forward"  },
        {"again.", "recompute"},
        {"bwd.",   "backward" },
        {"update", "update"   }
    };
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strncmp(op->name, phases[i][0], strlen(phases[i][0])) == 0) {
            return phases[i][1];
        }
    }
    return "";
}

static bool is_core(const pod_op *op)
{
    return op->kind == POD_OP_MATMUL || op->kind == POD_OP_VECTOR || op->kind == POD_OP_ATTENTION
           || op->kind == POD_OP_COMPUTE;
}

static int row_of(const drawing *d, const pod_op *op)
{
    switch (op->kind) {
    case POD_OP_MATMUL:
    case POD_OP_VECTOR:
    case POD_OP_ATTENTION:
    case POD_OP_COMPUTE:
        return POD_ROW_OPS;
    case POD_OP_COPY:
        return op->lane == POD_LANE_SPARSE ? POD_ROW_SPARSECORE : POD_ROW_COPIES;
    case POD_OP_HOST:
        return POD_ROW_HOST;
    case POD_OP_SEND:
    case POD_OP_RECV:
        return POD_ROW_ASYNC;
    case POD_OP_COLLECTIVE:
        break;
    }
    return pod_program_group_slices(&d->args->programs->groups[op->group]) > 1 ? POD_ROW_DCN
                                                                               : POD_ROW_ASYNC;
}

static void describe_collective(const drawing *d, const pod_op *op, int32_t number,
                                pod_trace_args *args)
{
    const pod_program_group *group = &d->args->programs->groups[op->group];
    const pod_op_record *record = &d->args->result->ops[d->program->stage][number];
    char text[96];
    (void)snprintf(text, sizeof text, "%d chips over %s", (int)group->group.size, group->axes);
    pod_trace_args_text(args, "group", text);
    pod_trace_args_i64(args, "bytes", op->bytes);
    if (record->algorithm[0] != '\0') {
        pod_trace_args_text(args, "algorithm", record->algorithm);
    }
    const pod_time_ps bound = d->args->bound_ps != NULL
                                  ? d->args->bound_ps(d->args->context, d->program->stage, number)
                                  : 0;
    if (bound > 0) {
        pod_trace_args_double(args, "bound_us", pod_time_to_s(bound) * 1e6);
    }
}

static void describe(const drawing *d, const pod_op *op, int32_t number, pod_trace_args *args)
{
    const pod_op_record *record = &d->args->result->ops[d->program->stage][number];
    const char *phase = pod_step_trace_phase(op);
    pod_trace_args_text(args, "hlo_category",
                        op->kind == POD_OP_COLLECTIVE ? pod_coll_op_name(op->op)
                                                      : pod_op_kind_name(op->kind));
    if (phase[0] != '\0') {
        pod_trace_args_text(args, "phase", phase);
    }
    if (op->layer >= 0) {
        pod_trace_args_i64(args, "layer", op->layer);
    }
    if (op->kind == POD_OP_MATMUL) {
        char shape[96];
        (void)snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)op->m, (long long)op->k,
                       (long long)op->n);
        pod_trace_args_text(args, "m x k x n", shape);
        pod_trace_args_double(args, "model_flops",
                              2.0 * (double)op->m * (double)op->k * (double)op->n
                                  * (double)op->count);
    }
    if (op->hbm_bytes > 0) {
        pod_trace_args_i64(args, "bytes_accessed", op->hbm_bytes);
    }
    if (op->kind == POD_OP_COLLECTIVE) {
        describe_collective(d, op, number, args);
    } else if (op->bytes > 0) {
        pod_trace_args_i64(args, "bytes", op->bytes);
    }
    if (record->chips > 0 && record->exposed_ps > 0) {
        pod_trace_args_double(args, "exposed_us",
                              pod_time_to_s(record->exposed_ps) * 1e6 / (double)record->chips);
    }
    if (d->args->describe != NULL) {
        d->args->describe(d->args->context, d->program->stage, number, args);
    }
}

static void draw_ops(drawing *d)
{
    for (int64_t i = 0; i < d->nops; i++) {
        const pod_step_op_time *time = &d->ops[i];
        const pod_op *op = &d->program->ops[time->op];
        pod_trace_args args = {0};
        describe(d, op, time->op, &args);
        d->thread[time->op] = pod_timeline_slice(d->trace, &d->chip, row_of(d, op), op->name,
                                                 time->start_ps, time->end_ps, &args);
        d->end_ps[time->op] = time->end_ps;
    }
}

/* From the end of what is not the core's to the core op that waits for it. */
static void draw_arrows(drawing *d)
{
    for (int64_t i = 0; i < d->nops; i++) {
        const pod_step_op_time *time = &d->ops[i];
        const pod_op *op = &d->program->ops[time->op];
        for (int32_t j = 0; is_core(op) && j < op->ndeps; j++) {
            const int32_t dep = d->program->deps[op->first_dep + j];
            if (!is_core(&d->program->ops[dep]) && d->thread[dep].process > 0) {
                pod_trace_arrow(d->trace, d->thread[dep], d->end_ps[dep], d->thread[time->op],
                                time->start_ps);
            }
        }
    }
}

enum { PART_LEVELS = 4, PART_NAME_MAX = 96 };

/* What a core op belongs to: its phase, and in it its layer. Casts and the like belong to what is around them. */
static bool part_of(const drawing *d, int32_t number, int level, char *name, size_t size)
{
    const pod_op *op = &d->program->ops[number];
    const char *phase = pod_step_trace_phase(op);
    if (d->args->part != NULL) {
        return d->args->part(d->args->context, d->program->stage, number, level, name, size);
    }
    if (level == 0) {
        (void)snprintf(name, size, "%s", phase);
    } else {
        (void)snprintf(name, size, "layer %d", (int)op->layer);
    }
    return phase[0] != '\0' && (level == 0 || (level == 1 && op->layer >= 0));
}

/* The op's parts from the outermost to `level`, as one text. */
static bool path_of(const drawing *d, int32_t number, int level, char *path, size_t size)
{
    size_t used = 0;
    for (int i = 0; i <= level; i++) {
        char name[PART_NAME_MAX];
        if (!part_of(d, number, i, name, sizeof name)) {
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
        const bool core = !over && is_core(&d->program->ops[d->ops[i].op]);
        if (!over && !core) {
            continue;
        }
        const bool has = core && path_of(d, d->ops[i].op, level, path, sizeof path);
        if (!over && !has && d->args->part == NULL) {
            continue;
        }
        if (open[0] != '\0' && (over || !has || strcmp(open, path) != 0)) {
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
    int64_t *live = NULL;
    const pod_status status = pod_program_memory_live(d->program, &live, err);
    int64_t shown = -1;
    for (int64_t i = 0; status == POD_OK && i < d->nops; i++) {
        const int32_t op = d->ops[i].op;
        if (is_core(&d->program->ops[op]) && live[op] != shown) {
            shown = live[op];
            pod_trace_counter(d->trace, d->chip.process, "HBM bytes", d->ops[i].start_ps,
                              (double)shown);
        }
    }
    free(live);
    return status;
}

typedef struct change {
    pod_time_ps time_ps;
    int64_t links; /* that become busy, or idle if negative */
} change;

static int by_time(const void *left, const void *right)
{
    const pod_time_ps a = ((const change *)left)->time_ps;
    const pod_time_ps b = ((const change *)right)->time_ps;
    return a < b ? -1 : a > b;
}

static int links_of(const pod_slice *slice, int32_t chip)
{
    int count = 0;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        count += pod_slice_neighbor(slice, chip % slice->nchips, direction) >= 0 ? 1 : 0;
    }
    return count;
}

static pod_status draw_link_use(drawing *d, int32_t chip, const pod_step_link_time *links,
                                int64_t nlinks, pod_error *err)
{
    const int all = links_of(d->args->slice, chip);
    change *changes = malloc(((size_t)nlinks * 2 + 1) * sizeof *changes);
    if (changes == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    for (int64_t i = 0; i < nlinks; i++) {
        changes[2 * i] = (change){links[i].start_ps, 1};
        changes[2 * i + 1] = (change){links[i].end_ps, -1};
    }
    qsort(changes, (size_t)nlinks * 2, sizeof *changes, by_time);
    int64_t busy = 0;
    int64_t shown = -1;
    for (int64_t i = 0; i < 2 * nlinks; i++) {
        busy += changes[i].links;
        const bool last =
            i + 1 == 2 * nlinks || changes[i + 1].time_ps >= changes[i].time_ps + COUNTER_PS;
        if (last && busy != shown && all > 0) {
            shown = busy;
            pod_trace_counter(d->trace, d->chip.process, "links busy (part)", changes[i].time_ps,
                              (double)busy / all);
        }
    }
    free(changes);
    return POD_OK;
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
        status = draw_memory(d, err);
    }
    if (status == POD_OK) {
        status = draw_link_use(d, chip, links, nlinks, err);
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
