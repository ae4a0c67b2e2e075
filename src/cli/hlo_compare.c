/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo A B: two programs, and the operations between which the difference lies. */
#include "cli/hlo.h"
#include "experiment/hlo_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_SIZE = 160, COMPARE_TOP = 20 };

/* Operations of one scope, kind and shape: of A (0) and of B (1). */
typedef struct pairing {
    char scope[POD_HLO_CELL_MAX];
    char shape[2][SHAPE_SIZE];
    pod_hlo_kind kind;
    int64_t runs[2];
    double time_s[2]; /* parts of the step */
} pairing;

typedef struct pairings {
    pairing *pair;
    uint32_t count;
    uint32_t capacity;
} pairings;

/* What one program comes to. */
typedef struct side {
    int which;
    pairings *all;
    double step_s;
    double idle_s;
    char slice[64];
    char module[POD_HLO_CELL_MAX];
} side;

/* ---- names ---- */

static void shape_print(const pod_hlo_module *module, const pod_hlo_shape *shape, char *text,
                        size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    if (shape->dtype == POD_HLO_TYPE_TUPLE) {
        const pod_hlo_shape *first =
            shape->count > 0 ? &module->shapes.shape[pod_hlo_member(module, shape, 0)] : shape;
        (void)snprintf(text, size, "(%u)", shape->count);
        if (first->dtype != POD_HLO_TYPE_TUPLE) {
            shape_print(module, first, text + 1, size - 1);
            const size_t used = strlen(text);
            (void)snprintf(text + used, size - used, shape->count > 1 ? ",...%u)" : ")",
                           shape->count);
        }
        return;
    }
    at += (size_t)snprintf(text, size, "%s[", pod_hlo_dtype_name((pod_hlo_dtype)shape->dtype));
    for (uint32_t i = 0; i < shape->count && at + 24 < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i > 0 ? "," : "",
                               (long long)pod_hlo_dims(module, shape)[i]);
    }
    (void)snprintf(text + at, size - at, "]");
}

/* The op_name; without one the name but for its numbers, "copy" of "copy.12.clone.1". */
static void scope_print(const pod_hlo_module *module, uint32_t instruction, char *text, size_t size)
{
    (void)pod_hlo_print_op_name(module, instruction, text, size);
    if (text[0] == '\0') {
        (void)pod_hlo_print_name(module, instruction, text, size);
        text[strcspn(text, ".")] = '\0';
    }
}

/* ---- pairs ---- */

static int pairing_compare(const void *a, const void *b)
{
    const pairing *one = a;
    const pairing *two = b;
    const int scopes = strcmp(one->scope, two->scope);
    if (scopes != 0) {
        return scopes;
    }
    if (one->kind != two->kind) {
        return one->kind < two->kind ? -1 : 1;
    }
    const char *shapes[2] = {one->runs[0] > 0 ? one->shape[0] : one->shape[1],
                             two->runs[0] > 0 ? two->shape[0] : two->shape[1]};
    return strcmp(shapes[0], shapes[1]);
}

static pod_status pairing_add(const side *s, const pod_hlo_module *module,
                              const pod_experiment_hlo_op *op, pod_error *err)
{
    pairings *all = s->all;
    POD_TRY(pod_hlo_reserve(&all->pair, &all->capacity, (uint64_t)all->count + 1, sizeof *all->pair,
                            err));
    pairing *made = &all->pair[all->count++];
    *made = (pairing){.kind = op->kind};
    made->runs[s->which] = op->runs;
    made->time_s[s->which] = pod_experiment_hlo_part_s(op);
    scope_print(module, op->instruction, made->scope, sizeof made->scope);
    shape_print(module, pod_hlo_shape_of(module, &module->instruction[op->instruction]),
                made->shape[s->which], SHAPE_SIZE);
    return POD_OK;
}

static void pairing_join(pairing *to, const pairing *more)
{
    for (int which = 0; which < 2; which++) {
        if (more->runs[which] > 0) {
            memcpy(to->shape[which], more->shape[which], SHAPE_SIZE);
        }
        to->runs[which] += more->runs[which];
        to->time_s[which] += more->time_s[which];
    }
}

/* Those of one scope, kind and shape become one. */
static void pairings_match(pairings *all)
{
    uint32_t kept = 0;
    if (all->count > 0) {
        qsort(all->pair, all->count, sizeof *all->pair, pairing_compare);
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (kept > 0 && pairing_compare(&all->pair[kept - 1], &all->pair[i]) == 0) {
            pairing_join(&all->pair[kept - 1], &all->pair[i]);
        } else {
            all->pair[kept++] = all->pair[i];
        }
    }
    all->count = kept;
}

static bool is_of_one(const pairing *pair, int which)
{
    return pair->runs[which] > 0 && pair->runs[1 - which] == 0;
}

/* What is left in both programs, of one scope and kind, has changed its shape; in the order of shapes. */
static void pairings_match_shapes(pairings *all)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        bool joined = false;
        for (uint32_t k = kept; k-- > 0 && !joined;) {
            pairing *before = &all->pair[k];
            if (strcmp(before->scope, all->pair[i].scope) != 0
                || before->kind != all->pair[i].kind) {
                break;
            }
            joined = (is_of_one(before, 0) && is_of_one(&all->pair[i], 1))
                     || (is_of_one(before, 1) && is_of_one(&all->pair[i], 0));
            if (joined) {
                pairing_join(before, &all->pair[i]);
            }
        }
        if (!joined) {
            all->pair[kept++] = all->pair[i];
        }
    }
    all->count = kept;
}

static int by_delta(const void *a, const void *b)
{
    const pairing *one = a;
    const pairing *two = b;
    const double d[2] = {fabs(one->time_s[1] - one->time_s[0]),
                         fabs(two->time_s[1] - two->time_s[0])};
    if (d[0] != d[1]) {
        return d[0] > d[1] ? -1 : 1;
    }
    return pairing_compare(a, b);
}

static const char *change_of(const pairing *pair)
{
    if (pair->runs[0] == 0) {
        return "appeared";
    }
    if (pair->runs[1] == 0) {
        return "vanished";
    }
    const bool same = pair->runs[0] == pair->runs[1] && pair->time_s[0] == pair->time_s[1]
                      && strcmp(pair->shape[0], pair->shape[1]) == 0;
    return same ? "same" : "changed";
}

/* ---- running ---- */

static pod_status collect(pod_cli *cli, const pod_hlo_asked *asked, void *context, pod_error *err)
{
    side *s = context;
    pod_experiment_hlo_outcome outcome;
    pod_experiment_hlo_op *ops = NULL;
    uint32_t count = 0;
    const pod_hlo_module *module = asked->request->text->module;
    pod_status st = pod_experiment_hlo(&cli->experiment, asked->request,
                                       &asked->request->setup->chip, &outcome, err);
    if (st == POD_OK) {
        s->step_s = pod_time_to_s(outcome.result.time_ps);
        s->idle_s = pod_experiment_hlo_mean_s(&outcome, outcome.result.idle_ps);
        (void)snprintf(s->slice, sizeof s->slice, "%.*s", (int)sizeof s->slice - 1,
                       asked->request->setup->slice.name);
        (void)snprintf(s->module, sizeof s->module, "%.*s", pod_hlo_shown(module->name),
                       module->text + module->name.begin);
        st = pod_experiment_hlo_ops(&outcome, &ops, &count, err);
    }
    for (uint32_t i = 0; st == POD_OK && i < count; i++) {
        st = ops[i].runs > 0 ? pairing_add(s, module, &ops[i], err) : POD_OK;
    }
    free(ops);
    pod_experiment_hlo_outcome_fini(&outcome);
    return pod_par_agree(cli->par, st, err);
}

/* ---- output ---- */

static void pair_emit(pod_emit *emit, const pairing *pair)
{
    char shape[2 * SHAPE_SIZE + 8];
    const bool both = pair->runs[0] > 0 && pair->runs[1] > 0;
    const bool differ = both && strcmp(pair->shape[0], pair->shape[1]) != 0;
    (void)snprintf(shape, sizeof shape, differ ? "%s -> %s" : "%s",
                   pair->runs[0] > 0 ? pair->shape[0] : pair->shape[1], pair->shape[1]);
    pod_emit_text(emit, change_of(pair));
    pod_emit_text(emit, pair->scope);
    pod_emit_text(emit, pod_hlo_kind_name(pair->kind));
    pod_emit_text(emit, shape);
    pod_emit_i64(emit, pair->runs[0]);
    pod_emit_i64(emit, pair->runs[1]);
    pod_emit_double(emit, pair->time_s[0]);
    pod_emit_double(emit, pair->time_s[1]);
    pod_emit_double(emit, pair->time_s[1] - pair->time_s[0]);
}

/* The first row: both steps as a whole. */
static void steps_emit(pod_emit *emit, const side sides[2])
{
    static const char *const texts[] = {"step", "", "", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pod_emit_text(emit, texts[i]);
    }
    pod_emit_i64(emit, 1);
    pod_emit_i64(emit, 1);
    pod_emit_double(emit, sides[0].step_s);
    pod_emit_double(emit, sides[1].step_s);
    pod_emit_double(emit, sides[1].step_s - sides[0].step_s);
}

static void compare_head(pod_emit *emit, const side sides[2], const char *const files[2])
{
    char text[2][POD_FORMAT_MAX];
    for (int which = 0; which < 2; which++) {
        pod_emit_heading(emit, "podsim hlo: %c is %s, %s on %s: a step of %s, %s of it idle",
                         "AB"[which], files[which], sides[which].module, sides[which].slice,
                         pod_format_time(sides[which].step_s, text[0], sizeof text[0]),
                         pod_format_time(sides[which].idle_s, text[1], sizeof text[1]));
    }
    const double delta_s = sides[1].step_s - sides[0].step_s;
    pod_emit_heading(emit, "B takes %s %s, %.1f %% of A",
                     pod_format_time(fabs(delta_s), text[0], sizeof text[0]),
                     delta_s < 0 ? "less" : "more",
                     sides[0].step_s > 0 ? sides[1].step_s / sides[0].step_s * 100 : 0);
}

static pod_status compare_print(pod_cli *cli, const pairings *all, const side sides[2],
                                const char *const files[2], uint32_t top, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "change"},
        {.name = "op_name"},
        {.name = "kind"},
        {.name = "shape"},
        {.name = "runs_a", .title = "runs A"},
        {.name = "runs_b", .title = "runs B"},
        {.name = "time_a_s", .title = "A", .unit = "s", .decimals = 6},
        {.name = "time_b_s", .title = "B", .unit = "s", .decimals = 6},
        {.name = "delta_s", .title = "B - A", .unit = "s", .decimals = 6},
    };
    /* clang-format on */
    pod_emit *emit = NULL;
    uint32_t same = 0;
    const bool table = cli->common.format == POD_FORMAT_TABLE;
    POD_TRY(pod_emit_new(cli->common.format, "hlo", columns, sizeof columns / sizeof columns[0],
                         &emit, err));
    compare_head(emit, sides, files);
    steps_emit(emit, sides);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const bool is_same = strcmp(change_of(&all->pair[i]), "same") == 0;
        same += is_same;
        if (!table || (!is_same && shown < top)) {
            pair_emit(emit, &all->pair[i]);
            shown++;
        }
    }
    if (table) {
        pod_emit_note(emit, "%u more that differ; %u the same", all->count - same - shown, same);
    }
    const pod_status finished = pod_cli_finish(cli, emit, err);
    pod_emit_free(emit);
    return finished;
}

pod_status pod_hlo_compare(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *a,
                           const pod_hlo_inputs *b, const pod_hlo_choices *choices, pod_error *err)
{
    pairings all = {.count = 0};
    side sides[2] = {
        {.which = 0, .all = &all},
        {.which = 1, .all = &all}
    };
    const char *const files[2] = {texts->file, texts->other};
    int64_t top = COMPARE_TOP;
    pod_status st =
        texts->top == NULL ? POD_OK : pod_parse_i64(texts->top, "--top", 0, UINT32_MAX, &top, err);
    POD_THEN(st, pod_hlo_ask(cli, texts, a, choices, collect, &sides[0], err));
    POD_THEN(st, pod_hlo_ask(cli, texts, b, choices, collect, &sides[1], err));
    if (st == POD_OK) {
        pairings_match(&all);
        pairings_match_shapes(&all);
        if (all.count > 0) {
            qsort(all.pair, all.count, sizeof *all.pair, by_delta);
        }
        st = compare_print(cli, &all, sides, files, (uint32_t)top, err);
    }
    free(all.pair);
    return st;
}
