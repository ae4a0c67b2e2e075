/* SPDX-License-Identifier: Apache-2.0 */
/* Programs against what the TPU compiler made of the same steps (validation/xla_steps.csv): the MLP rows of
 * one slice. */
#include "make.h"

#include <math.h>

#include "tables.h"

enum { ROWS_MAX = 64, LOSS = 512 /* bytes of the loss, padded */ };

static bool row_counts(const pod_table *table, int row)
{
    return strncmp(field(table, row, "id"), "MLP", 3) == 0
           && field(table, row, "dcn_mesh")[0] == '\0';
}

static void row_build(const pod_table *table, int row, step_case *c)
{
    step_prepare(c, field(table, row, "slice"), field(table, row, "wrap"),
                 field(table, row, "mesh"), field(table, row, "model"),
                 number(table, row, "batch"));
    if (strcmp(field(table, row, "mode"), "forward") == 0) {
        c->request.mode = POD_STEP_FORWARD;
    }
    step_build(c);
}

/** Bytes of the compiler's collectives of one kind: over groups of `group` chips, or all (0). */
static int64_t compiled_bytes(const char *collectives, const char *op, int group)
{
    int64_t total = 0;
    for (const char *at = collectives; *at != '\0';) {
        long long bytes = 0;
        char size[16] = "";
        int count = 0;
        const size_t length = strlen(op);
        if (strncmp(at, op, length) == 0 && at[length] == ':'
            && sscanf(at + length, ":%lld:%15[^:]:%d", &bytes, size, &count) == 3
            && (group == 0 || atoi(size) == group)) {
            total += bytes * count;
        }
        at += strcspn(at, ";");
        at += *at == ';';
    }
    return total;
}

static int64_t gathered(const step_case *c, const char *axes)
{
    return step_bytes(c, POD_ALL_GATHER, axes);
}

static int64_t reduced(const step_case *c, const char *axes)
{
    return step_bytes(c, POD_ALL_REDUCE, axes) + step_bytes(c, POD_REDUCE_SCATTER, axes);
}

static const char *const axes[] = {"data", "fsdp", "tensor"};

static int64_t sum_over_axes(const step_case *c, int64_t (*of)(const step_case *, const char *))
{
    return of(c, axes[0]) + of(c, axes[1]) + of(c, axes[2]);
}

/** Bytes of the compiler's permutes over fsdp: pieces of 1/fsdp of what they replace. */
static int64_t replaced_unit(const step_case *c, const char *collectives)
{
    long long piece = 0;
    const char *at = strstr(collectives, "collective-permute:");
    cr_assert(at != NULL && sscanf(at, "collective-permute:%lld:", &piece) == 1);
    return piece * c->work.layout.size[POD_MESH_FSDP];
}

/* Collective matmuls: gathers and reductions are missing, each made of fsdp pieces. Or the compiler
 * reduces a little more and sends (n-1)/n of that on as permutes. */
static void windowed_check(const step_case *c, const pod_table *table, int row)
{
    const char *id = field(table, row, "id");
    const char *collectives = field(table, row, "collectives");
    const int64_t windowed = number(table, row, "windowed_bytes");
    const int64_t n = c->work.layout.size[POD_MESH_FSDP];
    const int64_t gathers = sum_over_axes(c, gathered) - number(table, row, "gather_bytes");
    const int64_t sums = sum_over_axes(c, reduced) - number(table, row, "reduce_bytes");
    if (sums < 0) {
        cr_assert_eq(-sums * (n - 1), windowed * n, "%s", id);
        cr_assert_eq(gathers, 0, "%s", id);
        return;
    }
    const int64_t unit = replaced_unit(c, collectives);
    cr_assert_geq(gathers, 0, "%s", id);
    cr_assert_gt(gathers + sums, 0, "%s", id);
    cr_assert_eq(gathers % unit, 0, "%s", id);
    cr_assert_eq(sums % unit, 0, "%s", id);
    /* A loop that replaces one sends each piece on n times and one more at its end. */
    cr_assert_eq(windowed * n, (gathers + sums) * (n + 1), "%s", id);
}

/** Per axis, where the sizes of the groups tell the axes apart. */
static void axes_check(const step_case *c, const char *id, const char *collectives)
{
    for (int a = 0; a < 3; a++) {
        const pod_mesh_axis axis =
            a == 0 ? POD_MESH_DATA : (a == 1 ? POD_MESH_FSDP : POD_MESH_TENSOR);
        const int size = (int)c->work.layout.size[axis];
        if (size == 1) {
            cr_assert_eq(gathered(c, axes[a]) + reduced(c, axes[a]), 0, "%s", id);
            continue;
        }
        cr_assert_eq(gathered(c, axes[a]), compiled_bytes(collectives, "all-gather", size),
                     "%s: gathers over %s", id, axes[a]);
        cr_assert_eq(reduced(c, axes[a]), compiled_bytes(collectives, "all-reduce", size),
                     "%s: sums over %s", id, axes[a]);
    }
}

Test(xla_steps, payloads_are_those_of_the_compiler)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    int compared = 0;
    for (int row = 0; row < pod_table_rows(table); row++) {
        if (!row_counts(table, row)) {
            continue;
        }
        step_case c;
        const char *id = field(table, row, "id");
        row_build(table, row, &c);
        if (number(table, row, "windowed_bytes") > 0) {
            windowed_check(&c, table, row);
        } else {
            cr_assert_eq(sum_over_axes(&c, gathered), number(table, row, "gather_bytes"), "%s", id);
            cr_assert_eq(sum_over_axes(&c, reduced), number(table, row, "reduce_bytes"), "%s", id);
        }
        /* the compiler's group sizes are those of the whole mesh where both axes cut the batch */
        const bool both =
            c.work.layout.size[POD_MESH_DATA] > 1 && c.work.layout.size[POD_MESH_FSDP] > 1;
        if (!both && number(table, row, "windowed_bytes") == 0) {
            axes_check(&c, id, field(table, row, "collectives"));
        }
        compared++;
        step_free(&c);
    }
    cr_assert_eq(compared, 15);
    pod_table_free(table);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

Test(xla_steps, memory_is_near_the_compilers)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    double errors[ROWS_MAX];
    int compared = 0;
    for (int row = 0; row < pod_table_rows(table); row++) {
        if (!row_counts(table, row)) {
            continue;
        }
        step_case c;
        row_build(table, row, &c);
        const double theirs = (double)number(table, row, "hbm_bytes");
        errors[compared] = fabs((double)c.work.memory.peak_bytes / theirs - 1);
        cr_assert_leq(errors[compared], 0.25, "%s: %.3f", field(table, row, "id"),
                      errors[compared]);
        compared++;
        step_free(&c);
    }
    cr_assert_eq(compared, 15);
    qsort(errors, (size_t)compared, sizeof errors[0], by_size);
    cr_assert_leq(errors[compared / 2], 0.12, "median %.3f", errors[compared / 2]);
    pod_table_free(table);
}

/* Weights and input are what the compiler counts as arguments. */
Test(xla_steps, arguments_are_weights_and_input)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    for (int row = 0; row < pod_table_rows(table); row++) {
        if (!row_counts(table, row)) {
            continue;
        }
        step_case c;
        int64_t bytes = 0;
        row_build(table, row, &c);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t b = 0; b < program->nbuffers; b++) {
            bytes += program->buffers[b].persistent ? pod_buffer_bytes(&program->buffers[b]) : 0;
        }
        cr_assert_eq(bytes, number(table, row, "argument_bytes"), "%s", field(table, row, "id"));
        step_free(&c);
    }
    pod_table_free(table);
}

/* Two slices: each chip sends its 1/16 of the gradients to the other slice, and the compiler's also the loss. */
Test(xla_steps, slices_exchange_a_sixteenth_of_the_gradients_per_chip)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    const int row = pod_table_find(table, pod_table_column(table, "id"), "MLP-2xv5e-16-dp");
    cr_assert_geq(row, 0);
    step_case c;
    int64_t sent = 0;
    step_prepare_slices(&c, field(table, row, "slice"), field(table, row, "wrap"),
                        field(table, row, "mesh"), field(table, row, "dcn_mesh"),
                        field(table, row, "model"), number(table, row, "batch"));
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        if (program->ops[i].kind == POD_OP_COLLECTIVE) {
            const pod_group *group = &c.work.programs.groups[program->ops[i].group].group;
            cr_assert_eq(group->slices, 2);
            sent += program->ops[i].bytes / group->inside->size;
        }
    }
    cr_assert_eq(sent + LOSS, number(table, row, "dcn_send_bytes"));
    step_free(&c);
    pod_table_free(table);
}
