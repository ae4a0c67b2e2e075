/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo --by: what takes the time, by source line and the like. */
#include "cli/hlo.h"
#include "experiment/hlo_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pod_hlo_by_names[POD_HLO_BYS] = {"source", "op_name", "kind", "phase"};
typedef enum by_what { BY_SOURCE, BY_OP_NAME, BY_KIND, BY_PHASE } by_what;

/* Operations of the same source line, kind, … */
typedef struct share {
    char key[POD_HLO_CELL_MAX];
    uint32_t first; /* place among the operations, which are longest first */
    int64_t runs;
    double compute_s;
    double exposed_s;
    double flops;
    double hbm_bytes;
} share;

static void key_print(const pod_hlo_report *report, const pod_experiment_hlo_op *op, char *key,
                      size_t size)
{
    char text[POD_HLO_CELL_MAX];
    const pod_hlo_module *module = report->text->module;
    switch ((by_what)report->by) {
    case BY_SOURCE:
        (void)pod_hlo_print_source(module, op->instruction, text, sizeof text);
        (void)snprintf(key, size, "%s", text[0] != '\0' ? text : "-");
        break;
    case BY_OP_NAME:
        (void)pod_hlo_print_op_name(module, op->instruction, text, sizeof text);
        (void)snprintf(key, size, "%s", text[0] != '\0' ? text : "-");
        break;
    case BY_KIND:
        (void)snprintf(key, size, "%s", pod_hlo_kind_name(op->kind));
        break;
    case BY_PHASE:
        (void)snprintf(key, size, "%s", pod_hlo_pass_name(report->text->pass[op->instruction]));
        break;
    }
}

static int key_compare(const void *a, const void *b)
{
    const share *one = a;
    const share *two = b;
    const int keys = strcmp(one->key, two->key);
    return keys != 0 ? keys : (one->first > two->first) - (one->first < two->first);
}

static int share_compare(const void *a, const void *b)
{
    const share *one = a;
    const share *two = b;
    const double s[2] = {one->compute_s + one->exposed_s, two->compute_s + two->exposed_s};
    if (s[0] != s[1]) {
        return s[0] > s[1] ? -1 : 1;
    }
    return strcmp(one->key, two->key);
}

static share share_of(const pod_hlo_report *report, const pod_experiment_hlo_op *op, uint32_t place)
{
    share made = {.first = place,
                  .runs = op->runs,
                  .compute_s = op->core ? op->time_s : 0,
                  .exposed_s = op->core ? 0 : op->exposed_s};
    key_print(report, op, made.key, sizeof made.key);
    if (op->cost != POD_HLO_NONE) {
        const pod_hlo_cost *cost = pod_hlo_planned_cost(report->outcome->program, op->cost);
        const pod_hlo_traffic *traffic = &cost->work.traffic;
        made.flops = (double)cost->flops * (double)op->runs;
        made.hbm_bytes =
            ((double)traffic->hbm_read + (double)traffic->hbm_write) * (double)op->runs;
    }
    return made;
}

/* Equal keys become one, in place. @return how many are left */
static uint32_t shares_join(share *shares, uint32_t count)
{
    uint32_t kept = 0;
    qsort(shares, count, sizeof *shares, key_compare);
    for (uint32_t i = 0; i < count; i++) {
        share *last = kept > 0 ? &shares[kept - 1] : NULL;
        if (last == NULL || strcmp(last->key, shares[i].key) != 0) {
            shares[kept++] = shares[i];
            continue;
        }
        last->runs += shares[i].runs;
        last->compute_s += shares[i].compute_s;
        last->exposed_s += shares[i].exposed_s;
        last->flops += shares[i].flops;
        last->hbm_bytes += shares[i].hbm_bytes;
    }
    qsort(shares, kept, sizeof *shares, share_compare);
    return kept;
}

static pod_status shares_print(pod_cli *cli, const pod_hlo_report *report, const share *shares,
                               uint32_t count, pod_error *err)
{
    /* clang-format off */
    const pod_emit_column columns[] = {
        {.name = pod_hlo_by_names[report->by]},
        {.name = "runs"},
        {.name = "time_s", .title = "time", .unit = "s", .decimals = 6},
        {.name = "share_frac", .title = "share", .unit = "%", .decimals = 1, .percent = true},
        {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6},
        {.name = "exposed_s", .title = "exposed", .unit = "s", .decimals = 6},
        {.name = "flops", .title = "FLOPs"},
        {.name = "hbm_bytes", .title = "HBM", .unit = "B"},
    };
    /* clang-format on */
    pod_emit *emit = NULL;
    const bool table = cli->common.format == POD_FORMAT_TABLE;
    const double step_s = pod_time_to_s(report->outcome->result.time_ps);
    POD_TRY(pod_emit_new(cli->common.format, "hlo", columns, sizeof columns / sizeof columns[0],
                         &emit, err));
    const double idle_s =
        pod_experiment_hlo_mean_s(report->outcome, report->outcome->result.idle_ps);
    char text[2][POD_FORMAT_MAX];
    pod_emit_heading(
        emit, "podsim hlo: %s, %s, a step of %s, %s of it idle, by %s", report->setup->slice.name,
        report->module, pod_format_time(step_s, text[0], sizeof text[0]),
        pod_format_time(idle_s, text[1], sizeof text[1]), pod_hlo_by_names[report->by]);
    const uint32_t shown = table && (uint32_t)report->top < count ? (uint32_t)report->top : count;
    for (uint32_t i = 0; i < shown; i++) {
        const double time_s = shares[i].compute_s + shares[i].exposed_s;
        pod_emit_text(emit, shares[i].key);
        pod_emit_i64(emit, shares[i].runs);
        pod_emit_double(emit, time_s);
        pod_emit_double(emit, step_s > 0 ? time_s / step_s : 0);
        pod_emit_double(emit, shares[i].compute_s);
        pod_emit_double(emit, shares[i].exposed_s);
        pod_emit_double(emit, shares[i].flops);
        pod_emit_double(emit, shares[i].hbm_bytes);
    }
    if (shown < count) {
        pod_emit_note(emit, "%u more; --top N shows more of them", count - shown);
    }
    const pod_status finished = pod_cli_finish(cli, emit, err);
    pod_emit_free(emit);
    return finished;
}

pod_status pod_hlo_by(pod_cli *cli, const pod_hlo_report *report, pod_error *err)
{
    pod_experiment_hlo_op *ops = NULL;
    uint32_t count = 0;
    pod_status st = pod_experiment_hlo_ops(report->outcome, &ops, &count, err);
    share *shares = st == POD_OK ? calloc((size_t)count + 1, sizeof *shares) : NULL;
    if (st == POD_OK && shares == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the output");
    }
    for (uint32_t i = 0; st == POD_OK && i < count; i++) {
        shares[i] = share_of(report, &ops[i], i);
    }
    POD_THEN(st, shares_print(cli, report, shares, shares_join(shares, count), err));
    free(shares);
    free(ops);
    return st;
}
