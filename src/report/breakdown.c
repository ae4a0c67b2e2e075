/* SPDX-License-Identifier: Apache-2.0 */
#include "report/breakdown.h"

#include "base/grow.h"
#include "base/hash.h"
#include "program/op_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double mean_s(int64_t sum_ps, int64_t cells)
{
    return cells > 0 ? pod_time_to_s(sum_ps) / (double)cells : 0;
}

static void axis_add(pod_breakdown *breakdown, const char *axes, double exposed_s)
{
    int i = 0;
    while (i < breakdown->naxes && strcmp(breakdown->axis[i].axes, axes) != 0) {
        i++;
    }
    if (i == breakdown->naxes) {
        if (i == POD_BREAKDOWN_AXES_MAX) {
            return;
        }
        breakdown->naxes++;
        (void)snprintf(breakdown->axis[i].axes, sizeof breakdown->axis[i].axes, "%s", axes);
    }
    breakdown->axis[i].exposed_s += exposed_s;
}

/* Insertion keeps the order of axes that are the same. */
static void axes_sort(pod_breakdown *breakdown)
{
    for (int i = 1; i < breakdown->naxes; i++) {
        const pod_axis_exposure moved = breakdown->axis[i];
        int j = i;
        for (; j > 0 && breakdown->axis[j - 1].exposed_s < moved.exposed_s; j--) {
            breakdown->axis[j] = breakdown->axis[j - 1];
        }
        breakdown->axis[j] = moved;
    }
}

void pod_breakdown_get(const pod_programs *programs, const pod_step_result *result,
                       double peak_ops_per_s, pod_breakdown *breakdown)
{
    const int64_t cells = result->cells;
    *breakdown = (pod_breakdown){
        .step_s = pod_time_to_s(result->time_ps),
        .compute_s = mean_s(result->compute_ps, cells),
        .hbm_bound_s = mean_s(result->hbm_bound_ps, cells),
        .exposed_ici_s = mean_s(result->exposed_ici_ps, cells),
        .exposed_dcn_s = mean_s(result->exposed_dcn_ps, cells),
        .slowest_s = mean_s(result->slowest_ps, cells),
        .exposed_host_s = mean_s(result->exposed_host_ps, cells),
        .idle_s = mean_s(result->idle_ps, cells),
    };
    double flops = 0; /* of all cells */
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            const pod_op_record *record = &result->ops[s][i];
            const char *axes = pod_programs_axes(programs, op);
            const pod_op_unit unit = pod_op_row(op->kind)->unit;
            if (unit == POD_UNIT_MXU) {
                breakdown->matmul_s += mean_s(record->time_ps, cells);
                flops += pod_op_mxu_flops(op) * (double)record->chips;
            } else if (unit == POD_UNIT_VPU) {
                breakdown->vector_s += mean_s(record->time_ps, cells);
            } else if (axes != NULL && record->exposed_ps > 0) {
                axis_add(breakdown, axes, mean_s(record->exposed_ps, cells));
            }
        }
    }
    axes_sort(breakdown);
    const double possible = peak_ops_per_s * breakdown->step_s * (double)cells;
    breakdown->mxu_frac = possible > 0 ? flops / possible : 0;
}

/* What a part is longer than `healthy_s` moves from it to *wait_s. */
static void move_wait(double *part_s, double healthy_s, double *wait_s)
{
    const double longer_s = *part_s > healthy_s ? *part_s - healthy_s : 0;
    *part_s -= longer_s;
    *wait_s += longer_s;
}

void pod_breakdown_wait(pod_breakdown *breakdown, const pod_breakdown *healthy)
{
    for (int i = 0; i < breakdown->naxes; i++) {
        double healthy_s = 0;
        for (int j = 0; j < healthy->naxes; j++) {
            if (strcmp(healthy->axis[j].axes, breakdown->axis[i].axes) == 0) {
                healthy_s = healthy->axis[j].exposed_s;
            }
        }
        move_wait(&breakdown->axis[i].exposed_s, healthy_s, &breakdown->wait_s);
    }
    move_wait(&breakdown->exposed_host_s, healthy->exposed_host_s, &breakdown->wait_s);
    move_wait(&breakdown->idle_s, healthy->idle_s, &breakdown->wait_s);
    axes_sort(breakdown);
}

/* ---- collectives ---- */

static bool line_is_of(const pod_collective_line *line, const char *name, const char *op,
                       const char *axes, int32_t group, int64_t bytes)
{
    return strcmp(line->name, name) == 0 && strcmp(line->op, op) == 0
           && strcmp(line->axes, axes) == 0 && line->group == group && line->bytes == bytes;
}

typedef struct line_list {
    pod_collective_line *lines;
    int count;
    int64_t room;
    int32_t *slot; /* slot[nslots]: line + 1, by the hash of what tells lines apart; 0 = none */
    int64_t nslots;
    int64_t *ops; /* ops[line], where chips have programs of their own, */
    int64_t ops_room;
    bool *counted; /* and counted[meeting] */
} line_list;

static void lists_fini(line_list *list)
{
    free(list->ops);
    free(list->slot);
    free(list->counted);
}

static uint64_t line_hash(const char *name, const char *axes, int32_t group, int64_t bytes)
{
    uint64_t hash = pod_hash_mix(pod_hash(name, strlen(name)), pod_hash(axes, strlen(axes)));
    hash = pod_hash_mix(hash, (uint64_t)group);
    return pod_hash_mix(hash, (uint64_t)bytes);
}

/* Room for one more line among the slots; at most half of them are taken. */
static bool slots_grow(line_list *list)
{
    enum { FIRST = 64 };
    if (2 * (list->count + 1) <= list->nslots) {
        return true;
    }
    free(list->slot);
    list->nslots = list->nslots == 0 ? FIRST : 2 * list->nslots;
    list->slot = calloc((size_t)list->nslots, sizeof *list->slot);
    for (int i = 0; list->slot != NULL && i < list->count; i++) {
        const pod_collective_line *line = &list->lines[i];
        uint64_t at = line_hash(line->name, line->axes, line->group, line->bytes);
        while (list->slot[at % (uint64_t)list->nslots] != 0) {
            at++;
        }
        list->slot[at % (uint64_t)list->nslots] = i + 1;
    }
    return list->slot != NULL;
}

/* The line of an op, new if need be; NULL when memory is out. */
static pod_collective_line *line_of(line_list *list, const pod_programs *programs, const pod_op *op)
{
    const bool message = pod_op_receives(op);
    const char *name = op->name;
    const char *what = pod_coll_op_name(message ? POD_PERMUTE : op->op);
    const char *axes = pod_programs_axes(programs, op);
    int32_t group = programs->ready_order ? 2 : programs->nstages;
    if (!message) {
        group = programs->groups[op->group].group.size;
    }
    char cut[POD_ROW_NAME_MAX];
    (void)snprintf(cut, sizeof cut, "%s", name);
    if (!slots_grow(list)) {
        return NULL;
    }
    uint64_t at = line_hash(cut, axes, group, op->bytes);
    int32_t *slot = &list->slot[at % (uint64_t)list->nslots];
    for (; *slot != 0; slot = &list->slot[++at % (uint64_t)list->nslots]) {
        if (line_is_of(&list->lines[*slot - 1], cut, what, axes, group, op->bytes)) {
            return &list->lines[*slot - 1];
        }
    }
    if (!POD_GROW(list->lines, list->room, list->count + 1)
        || !POD_GROW(list->ops, list->ops_room, list->count + 1)) {
        return NULL;
    }
    list->ops[list->count] = 0;
    *slot = list->count + 1;
    pod_collective_line *line = &list->lines[list->count++];
    *line = (pod_collective_line){.op = what, .group = group, .bytes = op->bytes};
    memcpy(line->name, cut, sizeof cut);
    (void)snprintf(line->axes, sizeof line->axes, "%s", axes);
    return line;
}

/* The wait for the slowest slice; false when memory is out. */
static bool slowest_add(line_list *list, const pod_step_result *result)
{
    if (!POD_GROW(list->lines, list->room, list->count + 1)) {
        return false;
    }
    const double wait_s = mean_s(result->slowest_ps, result->cells);
    list->lines[list->count++] = (pod_collective_line){.name = POD_SLOWEST_SLICE,
                                                       .op = "wait",
                                                       .axes = "dcn",
                                                       .group = result->slowest_of,
                                                       .count = 1,
                                                       .time_s = wait_s,
                                                       .exposed_s = wait_s};
    return true;
}

/* An op that ran, into its line: a collective of chips with programs of their own is counted once. */
static void line_count(line_list *list, pod_collective_line *line, const pod_op *op,
                       const pod_op_record *record)
{
    const bool meets = op->meeting != POD_OP_NONE;
    line->time_s += mean_s(record->time_ps, record->chips);
    list->ops[line - list->lines] += meets;
    if (!meets) {
        line->count++;
    } else if (!list->counted[op->meeting]) {
        list->counted[op->meeting] = true;
        line->count++;
    }
}

/* Times of those are means over chips, too. */
static void lines_mean(line_list *list)
{
    for (int i = 0; i < list->count; i++) {
        if (list->ops[i] > 0) {
            list->lines[i].time_s *= (double)list->lines[i].count / (double)list->ops[i];
        }
    }
}

/* What a line is of: of a message, which has two ops, the one that receives it. */
static const pod_op *line_op(const pod_programs *programs, int32_t stage, const pod_op *op)
{
    return pod_op_sends(op) ? pod_programs_receiver(programs, stage, op) : op;
}

pod_status pod_collective_lines(const pod_programs *programs, const pod_step_result *result,
                                pod_collective_line **lines, int *count, pod_error *err)
{
    line_list list = {.counted = calloc((size_t)programs->nmeetings + 1, sizeof *list.counted)};
    bool good = list.counted != NULL;
    *lines = NULL;
    *count = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops && good; i++) {
            const pod_op *op = &program->ops[i];
            const pod_op_record *record = &result->ops[s][i];
            const bool sent = pod_op_sends(op);
            if (pod_programs_axes(programs, op) == NULL || (sent && record->exposed_ps == 0)) {
                continue;
            }
            pod_collective_line *line = line_of(&list, programs, line_op(programs, s, op));
            if (line == NULL) {
                good = false;
                break;
            }
            if (line->count == 0) {
                memcpy(line->algorithm, record->algorithm, sizeof line->algorithm);
            }
            if (!sent) {
                line_count(&list, line, op, record);
            }
            line->exposed_s += mean_s(record->exposed_ps, result->cells);
        }
    }
    lines_mean(&list);
    good = good && (result->slowest_of == 0 || slowest_add(&list, result));
    lists_fini(&list);
    if (!good) {
        free(list.lines);
        return pod_fail(err, POD_E_NOMEM, "out of memory for the list of collectives");
    }
    *lines = list.lines;
    *count = list.count;
    return POD_OK;
}

static bool line_goes_before(const pod_collective_line *a, const pod_collective_line *b)
{
    return a->exposed_s != b->exposed_s ? a->exposed_s > b->exposed_s : a->time_s > b->time_s;
}

void pod_collective_lines_sort(pod_collective_line *lines, int count)
{
    for (int i = 1; i < count; i++) {
        const pod_collective_line moved = lines[i];
        int j = i;
        for (; j > 0 && line_goes_before(&moved, &lines[j - 1]); j--) {
            lines[j] = lines[j - 1];
        }
        lines[j] = moved;
    }
}
