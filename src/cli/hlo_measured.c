/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo --measured: a profile of the program beside the prediction, operation by operation. */
#include "cli/hlo.h"
#include "experiment/hlo_ops.h"
#include "report/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One name, predicted and measured. */
typedef struct beside {
    char name[POD_HLO_CELL_MAX];
    pod_hlo_kind kind; /* POD_HLO_KINDS: only measured */
    int phase;         /* pod_hlo_pass; POD_HLO_PASSES: only measured */
    int64_t runs;
    double predicted_us;
    double measured_us;
    bool predicted;
    bool measured;
} beside;

/* The instruction at which the core spends an operation's part of the step: itself, or the done of what began. */
static uint32_t spent_at(const pod_hlo_program *program, const pod_experiment_hlo_op *op)
{
    const pod_hlo_analysis *analysis = program->analysis;
    const pod_hlo_collectives *all = &analysis->collectives;
    const uint32_t first = pod_experiment_hlo_sum(program, 0);
    uint32_t done = POD_HLO_NONE;
    if (op->sum >= first + all->count) {
        const uint32_t recv = all->transfer[op->sum - first - all->count].recv;
        done = recv == POD_HLO_NONE ? POD_HLO_NONE : analysis->partner[recv];
    } else if (op->sum >= first) {
        done = all->collective[op->sum - first].done;
    } else if (!op->core) {
        done = analysis->partner[op->instruction];
    }
    return done != POD_HLO_NONE ? done : op->instruction;
}

/* Microseconds, to the picosecond that times are counted in. */
static double us_of(double s)
{
    static const double ps_per_s = 1e12;
    static const double ps_per_us = 1e6;
    return round(s * ps_per_s) / ps_per_us;
}

static int beside_by_name(const void *a, const void *b)
{
    return strcmp(((const beside *)a)->name, ((const beside *)b)->name);
}

static double difference(const beside *row)
{
    return row->predicted_us - row->measured_us;
}

static int beside_by_difference(const void *a, const void *b)
{
    const double d[2] = {fabs(difference(a)), fabs(difference(b))};
    if (d[0] != d[1]) {
        return d[0] > d[1] ? -1 : 1;
    }
    return beside_by_name(a, b);
}

/* Rows of one name become one. @return how many */
static uint32_t besides_join(beside *rows, uint32_t count)
{
    uint32_t kept = 0;
    if (count > 0) {
        qsort(rows, count, sizeof *rows, beside_by_name);
    }
    for (uint32_t i = 0; i < count; i++) {
        beside *last = kept > 0 ? &rows[kept - 1] : NULL;
        if (last == NULL || strcmp(last->name, rows[i].name) != 0) {
            rows[kept++] = rows[i];
            continue;
        }
        last->kind = rows[i].kind < last->kind ? rows[i].kind : last->kind;
        last->phase = rows[i].phase < last->phase ? rows[i].phase : last->phase;
        last->runs = rows[i].runs > last->runs ? rows[i].runs : last->runs;
        last->predicted_us += rows[i].predicted_us;
        last->measured_us += rows[i].measured_us;
        last->predicted = last->predicted || rows[i].predicted;
        last->measured = last->measured || rows[i].measured;
    }
    if (kept > 0) {
        qsort(rows, kept, sizeof *rows, beside_by_difference);
    }
    return kept;
}

static uint32_t besides_collect(const pod_hlo_report *report, const pod_experiment_hlo_op *ops,
                                uint32_t nops, const pod_profile *profile, beside *rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nops; i++) {
        beside *row = &rows[count++];
        *row = (beside){.kind = ops[i].kind,
                        .phase = (int)report->text->pass[ops[i].instruction],
                        .runs = ops[i].runs,
                        .predicted_us = us_of(pod_experiment_hlo_part_s(&ops[i])),
                        .predicted = true};
        (void)pod_hlo_print_name(report->text->module, spent_at(report->outcome->program, &ops[i]),
                                 row->name, sizeof row->name);
    }
    for (int i = 0; i < profile->nops; i++) {
        beside *row = &rows[count++];
        *row = (beside){.kind = POD_HLO_KINDS,
                        .phase = POD_HLO_PASSES,
                        .runs = profile->op[i].runs,
                        .measured_us = (double)profile->op[i].time_ps / (double)POD_PS_PER_US,
                        .measured = true};
        (void)snprintf(row->name, sizeof row->name, "%.*s", (int)sizeof row->name - 1,
                       profile->op[i].name);
    }
    return besides_join(rows, count);
}

/* ---- output ---- */

static const char *beside_kind(const beside *row)
{
    return row->kind == POD_HLO_KINDS ? "only measured" : pod_hlo_kind_name(row->kind);
}

/* Sums of all operations of a kind or phase. The last two of kinds: only measured; and gaps beside idle time. */
enum { KIND_GAPS = POD_HLO_KINDS + 1, KIND_SUMS };

typedef struct kind_sum {
    const char *kind;
    double measured_us;
    double predicted_us;
    double ratio;
    double share_frac;
} kind_sum;

/* The ratio and the share of a sum. */
static void sum_finish(kind_sum *sum, double step_us)
{
    sum->ratio = sum->measured_us > 0 ? sum->predicted_us / sum->measured_us : (double)NAN;
    sum->share_frac = step_us > 0 ? sum->measured_us / step_us : 0;
}

static void kinds_sum(const beside *rows, uint32_t count, const beside *gaps, double step_us,
                      kind_sum sums[KIND_SUMS])
{
    for (int kind = 0; kind < KIND_SUMS; kind++) {
        sums[kind] =
            (kind_sum){.kind = kind == KIND_GAPS       ? "gaps"
                               : kind == POD_HLO_KINDS ? "only measured"
                                                       : pod_hlo_kind_name((pod_hlo_kind)kind)};
    }
    for (uint32_t i = 0; i < count; i++) {
        sums[rows[i].kind].measured_us += rows[i].measured_us;
        sums[rows[i].kind].predicted_us += rows[i].predicted_us;
    }
    sums[KIND_GAPS].measured_us = gaps->measured_us;
    sums[KIND_GAPS].predicted_us = gaps->predicted_us;
    for (int kind = 0; kind < KIND_SUMS; kind++) {
        sum_finish(&sums[kind], step_us);
    }
}

static void phases_sum(const beside *rows, uint32_t count, double step_us,
                       kind_sum sums[POD_HLO_PASSES + 1])
{
    for (int phase = 0; phase <= POD_HLO_PASSES; phase++) {
        sums[phase] =
            (kind_sum){.kind = phase < POD_HLO_PASSES ? pod_hlo_pass_name((pod_hlo_pass)phase)
                                                      : "only measured"};
    }
    for (uint32_t i = 0; i < count; i++) {
        sums[rows[i].phase].measured_us += rows[i].measured_us;
        sums[rows[i].phase].predicted_us += rows[i].predicted_us;
    }
    for (int phase = 0; phase <= POD_HLO_PASSES; phase++) {
        sum_finish(&sums[phase], step_us);
    }
}

static void sums_say(pod_findings *findings, const char *id, const char *what, const kind_sum *sums,
                     int count)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "kind", POD_FIELD(kind_sum, kind)},
        {.name = "measured_us", .title = "measured", .unit = "us", .decimals = 3, POD_FIELD(kind_sum, measured_us)},
        {.name = "predicted_us", .title = "predicted", .unit = "us", .decimals = 3, POD_FIELD(kind_sum, predicted_us)},
        {.name = "ratio", .decimals = 2, POD_FIELD(kind_sum, ratio)},
        {.name = "share_frac", .title = "share", .unit = "%", .decimals = 1, .percent = true,
         POD_FIELD(kind_sum, share_frac)},
    };
    /* clang-format on */
    pod_findings_table(findings, id, columns, sizeof columns / sizeof *columns,
                       "By %-15smeasured    predicted", what);
    for (int i = 0; i < count; i++) {
        if (sums[i].measured_us > 0 || sums[i].predicted_us > 0) {
            pod_findings_row(findings, &sums[i], "%-13s %12.3f %12.3f", sums[i].kind,
                             sums[i].measured_us, sums[i].predicted_us);
        }
    }
}

static void measured_say(pod_findings *findings, const pod_hlo_report *report,
                         const kind_sum sums[KIND_SUMS], const kind_sum phases[POD_HLO_PASSES + 1],
                         const pod_profile *profile)
{
    const double predicted_s = pod_time_to_s(report->outcome->result.time_ps);
    const double measured_s = pod_time_to_s(profile->step_ps);
    const double whole_us = us_of(predicted_s - measured_s);
    static const double small =
        0.005; /* of the step: not worth a cause, and what cancels is many times as large */
    const bool apart = fabs(predicted_s - measured_s) > small * measured_s;
    int most = 0;
    double part = 0; /* of the difference */
    for (int kind = 0; kind < KIND_SUMS && apart; kind++) {
        const double own = (sums[kind].predicted_us - sums[kind].measured_us) / whole_us;
        most = own > part ? kind : most;
        part = own > part ? own : part;
    }
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim hlo: %s on %s beside step %s of %s in %s", report->module,
                     report->setup->slice.name, profile->step, profile->device,
                     report->texts->measured);
    char lies[96] = "";
    if (part > 0) {
        (void)snprintf(lies, sizeof lies, "; of the difference %.0f %% lies in %s", part * 100,
                       sums[most].kind);
    }
    char text[2][POD_FORMAT_MAX];
    pod_findings_say(findings, POD_FINDING_ABOVE, "measured",
                     "predicted %s, measured %s (%+.1f %%)%s",
                     pod_format_time(predicted_s, text[0], sizeof text[0]),
                     pod_format_time(measured_s, text[1], sizeof text[1]),
                     measured_s > 0 ? (predicted_s / measured_s - 1) * 100 : 0, lies);
    sums_say(findings, "measured_kinds", "kind (us):", sums, KIND_SUMS);
    sums_say(findings, "measured_phases", "phase (us):", phases, POD_HLO_PASSES + 1);
}

/* --calibrate: by kind, predicted over measured of the operations that both sides have. */
static pod_status calibrate(const char *path, const beside *rows, uint32_t count, pod_error *err)
{
    static const pod_emit_column columns[] = {{.name = "pattern"}, {.name = "factor"}};
    double predicted_us[POD_HLO_KINDS] = {0};
    double measured_us[POD_HLO_KINDS] = {0};
    pod_emit *emit = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].predicted && rows[i].measured) {
            predicted_us[rows[i].kind] += rows[i].predicted_us;
            measured_us[rows[i].kind] += rows[i].measured_us;
        }
    }
    pod_status st = pod_emit_new(POD_FORMAT_CSV, "calibrate", columns,
                                 sizeof columns / sizeof *columns, &emit, err);
    for (int kind = 0; kind < POD_HLO_KINDS && st == POD_OK; kind++) {
        if (measured_us[kind] > 0 && predicted_us[kind] > 0) {
            char pattern[64];
            (void)snprintf(pattern, sizeof pattern, "kind:%s",
                           pod_hlo_kind_name((pod_hlo_kind)kind));
            pod_emit_text(emit, pattern);
            pod_emit_double(emit, predicted_us[kind] / measured_us[kind]);
        }
    }
    POD_THEN(st, pod_emit_write(emit, path, err));
    pod_emit_free(emit);
    return st;
}

static void beside_emit(pod_emit *emit, const beside *row, double step_us)
{
    pod_emit_text(emit, row->name);
    pod_emit_text(emit, beside_kind(row));
    pod_emit_i64(emit, row->runs);
    if (row->measured) {
        pod_emit_double(emit, row->measured_us);
    } else {
        pod_emit_none(emit);
    }
    if (row->predicted) {
        pod_emit_double(emit, row->predicted_us);
    } else {
        pod_emit_none(emit);
    }
    if (row->measured && row->predicted && row->measured_us > 0) {
        pod_emit_double(emit, row->predicted_us / row->measured_us);
    } else {
        pod_emit_none(emit);
    }
    pod_emit_double(emit, step_us > 0 ? row->measured_us / step_us : 0);
}

/* Both steps as a whole, the gaps of one and the idle time of the other, then operations by their difference. */
static pod_status measured_print(pod_cli *cli, const pod_hlo_report *report, const beside *rows,
                                 uint32_t count, const pod_profile *profile, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "name"},
        {.name = "kind"},
        {.name = "runs"},
        {.name = "measured_us", .title = "measured", .unit = "us", .decimals = 3},
        {.name = "predicted_us", .title = "predicted", .unit = "us", .decimals = 3},
        {.name = "ratio", .decimals = 2},
        {.name = "share_frac", .title = "share", .unit = "%", .decimals = 1, .percent = true},
    };
    /* clang-format on */
    pod_emit *emit = NULL;
    pod_findings findings = {0};
    kind_sum sums[KIND_SUMS];
    kind_sum phases[POD_HLO_PASSES + 1];
    const bool table = cli->common.format == POD_FORMAT_TABLE;
    const double step_us = (double)profile->step_ps / (double)POD_PS_PER_US;
    const pod_experiment_hlo_outcome *outcome = report->outcome;
    const beside whole[2] = {
        {.name = "step",
         .kind = POD_HLO_KIND_ENTER,
         .runs = 1,
         .predicted_us = us_of(pod_time_to_s(outcome->result.time_ps)),
         .measured_us = step_us,
         .predicted = true,
         .measured = true},
        { .name = "gaps",
         .kind = POD_HLO_KIND_NOTHING,
         .runs = 1,
         .predicted_us = us_of(pod_experiment_hlo_mean_s(outcome, outcome->result.idle_ps)),
         .measured_us = (double)profile->gaps_ps / (double)POD_PS_PER_US,
         .predicted = true,
         .measured = true}
    };
    const pod_status st = pod_emit_new(cli->common.format, "hlo", columns,
                                       sizeof columns / sizeof columns[0], &emit, err);
    if (st != POD_OK) {
        return st;
    }
    beside_emit(emit, &whole[0], step_us);
    beside_emit(emit, &whole[1], step_us);
    const uint32_t shown = table && (uint32_t)report->top < count ? (uint32_t)report->top : count;
    for (uint32_t i = 0; i < shown; i++) {
        beside_emit(emit, &rows[i], step_us);
    }
    if (shown < count) {
        pod_emit_note(emit, "%u more; --top N shows more of them", count - shown);
    }
    kinds_sum(rows, count, &whole[1], step_us, sums);
    phases_sum(rows, count, step_us, phases);
    measured_say(&findings, report, sums, phases, profile);
    pod_status finished = pod_cli_report(cli, emit, &findings, err);
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    if (finished == POD_OK && report->texts->calibrate != NULL) {
        finished = calibrate(report->texts->calibrate, rows, count, err);
    }
    return finished;
}

pod_status pod_hlo_max_error(const char *text, double *part, pod_error *err)
{
    char *end = NULL;
    const double percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 1000)) {
        return pod_fail(err, POD_E_USAGE, "--max-error '%s' isn't a part of the step, as 10%%",
                        text);
    }
    *part = percent / 100;
    return POD_OK;
}

static pod_status error_check(const pod_hlo_report *report, const pod_profile *profile,
                              pod_error *err)
{
    double most = 0;
    if (report->texts->max_error == NULL) {
        return POD_OK;
    }
    const pod_status st = pod_hlo_max_error(report->texts->max_error, &most, err);
    const double ratio = (double)report->outcome->result.time_ps
                         / (double)(profile->step_ps + (profile->step_ps == 0));
    if (st != POD_OK || fabs(ratio - 1) <= most) {
        return st;
    }
    return pod_fail(err, POD_E_CHECK,
                    "the predicted step is %+.1f %% off the measured one; --max-error is %s",
                    (ratio - 1) * 100, report->texts->max_error);
}

/* Rank 0 reads and prints. */
static pod_status measured_answer(pod_cli *cli, const pod_hlo_report *report, pod_error *err)
{
    const pod_hlo_texts *texts = report->texts;
    pod_profile profile = {.nops = 0};
    pod_experiment_hlo_op *ops = NULL;
    uint32_t nops = 0;
    pod_status st = pod_cli_read_check(cli, texts->measured, err);
    POD_THEN(st, pod_profile_read(texts->measured, (int)texts->measured_chip, texts->measured_step,
                                  &profile, err));
    if (st == POD_OK) {
        st = pod_experiment_hlo_ops(report->outcome, &ops, &nops, err);
    }
    beside *rows =
        st == POD_OK ? calloc((size_t)nops + (size_t)profile.nops + 1, sizeof *rows) : NULL;
    if (st == POD_OK && rows == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the output");
    }
    if (st == POD_OK) {
        const uint32_t count = besides_collect(report, ops, nops, &profile, rows);
        st = measured_print(cli, report, rows, count, &profile, err);
    }
    if (st == POD_OK) {
        st = error_check(report, &profile, err);
    }
    free(rows);
    free(ops);
    pod_profile_free(&profile);
    return st;
}

pod_status pod_hlo_measured(pod_cli *cli, const pod_hlo_report *report, pod_error *err)
{
    const pod_status st = pod_par_rank(cli->par) == 0 ? measured_answer(cli, report, err) : POD_OK;
    return pod_par_agree(cli->par, st, err);
}
