/* SPDX-License-Identifier: Apache-2.0 */
/* The crossovers of the scaling book (jax-ml/scaling-book@0819a7d: sharding.md question 4; training.md;
 * rows WP-028, WP-036 (unit/workload/test_step_request.c) and WP-040 to WP-045 of its worked problems) as
 * simulated collectives against simulated
 * matmuls of a large MLP, with the book's rates: C = 4.59e14 FLOP/s, W = 1.8e11 bytes/s per closed axis,
 * C/W = 2550. The book leaves out (n-1)/n, the simulation doesn't. */
#include "harness.h"

#include "workload/build/product.h"

#include <math.h>

static const double c_over_w = 2550;

/** Seconds, over all ops of stage 0 of one kind, of the chip that is slowest on average. */
static double seconds_of(const bench *b, const pod_step_result *result, pod_op_kind kind)
{
    const pod_program *program = &b->work.programs.stages[0];
    double total = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        if (program->ops[i].kind == kind) {
            const pod_op_record *record = &result->ops[0][i];
            total += pod_time_to_s(record->time_ps) / (double)record->chips;
        }
    }
    return total;
}

typedef struct pair {
    double collective_s;
    double matmul_s;
} pair;

/** Forward of one layer, nothing overlapped. */
static pair forward(bench *b, const char *mesh, const char *model, int64_t batch)
{
    pod_step_result result;
    bench_prepare(b, mesh, model, batch);
    b->request.mode = POD_STEP_FORWARD;
    b->request.gather_ahead = 0;
    bench_build(b);
    bench_run(b, NULL, &result);
    const pair both = {.collective_s = seconds_of(b, &result, POD_OP_COLLECTIVE),
                       .matmul_s = seconds_of(b, &result, POD_OP_MATMUL)};
    pod_step_result_fini(&result);
    bench_clear(b);
    return both;
}

static void near(const char *what, double got, double want, double tolerance)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s: %.1f, expected %.1f within %.0f %%", what, got, want,
                   100 * tolerance);
    if (!(fabs(got / want - 1) <= tolerance)) {
        mpi_check_fail(__FILE__, __LINE__, text);
    }
}

/* WP-040: fsdp is bound by compute from C/W · (n-1)/n rows a chip on. */
static void fsdp_breaks_even_on_one_axis(pod_par *par)
{
    enum { ROWS = 2392 };
    bench b;
    bench_begin(&b, par, POD_RATES_BOOK, 16, 1, 1, 1);
    const pair p =
        forward(&b, "fsdp=16", "mlp:layers=1,d_model=16384,d_ff=65536", INT64_C(16) * ROWS);
    near("rows a chip, one axis", ROWS * p.collective_s / p.matmul_s, c_over_w * 15 / 16, 0.05);
    bench_end(&b);
}

/* WP-041: three axes gather three times as fast. */
static void fsdp_breaks_even_on_three_axes(pod_par *par)
{
    enum { ROWS = 848 };
    bench b;
    bench_begin(&b, par, POD_RATES_BOOK, 16, 16, 16, 7);
    const pair p =
        forward(&b, "fsdp=4096", "mlp:layers=1,d_model=16384,d_ff=65536", INT64_C(4096) * ROWS);
    near("rows a chip, three axes", ROWS * p.collective_s / p.matmul_s, c_over_w / 3, 0.05);
    bench_end(&b);
}

/* WP-042: tensor parallelism over Y chips of an axis needs F >= C/W · (Y-1). */
static void tensor_breaks_even(pod_par *par)
{
    static const struct {
        int32_t chips;
        const char *mesh;
        const char *model;
        int64_t d_ff;
    } cases[] = {
        {8,  "tensor=8",  "mlp:layers=1,d_model=16384,d_ff=18432", 18432},
        {16, "tensor=16", "mlp:layers=1,d_model=16384,d_ff=38912", 38912},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b;
        bench_begin(&b, par, POD_RATES_BOOK, cases[i].chips, 1, 1, 1);
        const pair p = forward(&b, cases[i].mesh, cases[i].model, 16384);
        near("width F", (double)cases[i].d_ff * p.collective_s / p.matmul_s,
             c_over_w * (cases[i].chips - 1), 0.05);
        bench_end(&b);
    }
}

/* WP-043 and WP-044: on 64 chips with B = 48,000 and F = 32,768 the best fsdp is
 * sqrt(B/F · 2 · 64) = 13.69 when fsdp has two axes and tensor one. */
static void mixed_layouts_communicate_least(pod_par *par)
{
    static const char *const meshes[] = {"fsdp=16,tensor=4", "fsdp=64", "fsdp=4,tensor=16",
                                         "tensor=64"};
    const double best = sqrt(48000.0 / 32768.0 * 2 * 64);
    double first = 0;
    near("best fsdp", best, 13.69, 0.001);
    bench b;
    bench_begin(&b, par, POD_RATES_BOOK, 4, 4, 4, 7);
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        const pair p = forward(&b, meshes[i], "mlp:layers=1,d_model=8192,d_ff=32768", 48000);
        first = i == 0 ? p.collective_s : first;
        MPI_CHECK(i == 0 || p.collective_s > first);
        /* WP-043: at 750 rows a chip, above 400, mixed layouts are bound by compute */
        MPI_CHECK(i != 0 || p.collective_s < p.matmul_s);
    }
    bench_end(&b);
}

/** Mean seconds of the collectives over one mesh axis. */
static double seconds_over(const bench *b, const pod_step_result *result, const char *axis)
{
    const pod_program *program = &b->work.programs.stages[0];
    double total = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->kind == POD_OP_COLLECTIVE
            && strcmp(b->work.programs.groups[op->group].axes, axis) == 0) {
            const pod_op_record *record = &result->ops[0][i];
            total += pod_time_to_s(record->time_ps) / (double)record->chips;
        }
    }
    return total;
}

/* WP-043: with F = 32,768 mixed layouts are bound by compute from 4 (C/W)² / (2 F) = 397 rows a chip on, where the
 * book says 400. Gathers take as long whatever the rows; sums and products grow with them. */
static void mixed_layouts_break_even(pod_par *par)
{
    enum { ROWS = 400 };
    bench b;
    pod_step_result result;
    bench_begin(&b, par, POD_RATES_BOOK, 4, 4, 4, 7);
    bench_prepare(&b, "fsdp=16,tensor=4", "mlp:layers=1,d_model=8192,d_ff=32768",
                  INT64_C(64) * ROWS);
    b.request.mode = POD_STEP_FORWARD;
    b.request.gather_ahead = 0;
    bench_build(&b);
    bench_run(&b, NULL, &result);
    const double gathers_s = seconds_over(&b, &result, "fsdp");
    const double sums_s = seconds_over(&b, &result, "tensor");
    const double matmul_s = seconds_of(&b, &result, POD_OP_MATMUL);
    MPI_CHECK(gathers_s > 0 && sums_s > 0);
    near("rows a chip, mixed", ROWS * gathers_s / (matmul_s - sums_s), 400, 0.05);
    pod_step_result_fini(&result);
    bench_clear(&b);
    bench_end(&b);
}

/** Time of Z[B, F] = X[B, D] · Y[D_tensor, F] on 16 chips: gather Y first, or multiply what is there
 *  and all-reduce. */
static double strategy_time(bench *b, int64_t d, bool reduce)
{
    enum { ROWS = 1 << 20, F = 8192 };
    const int64_t x_size[2] = {ROWS, d};
    const int64_t y_size[2] = {d, F};
    const pod_axis_list whole = {0};
    const pod_axis_list cut = {.count = 1, .axis = {POD_MESH_TENSOR}};
    pod_error err = {0};
    pod_work_layout layout;
    pod_program program;
    pod_programs programs = {.nstages = 1, .stages = calloc(1, sizeof *programs.stages)};
    pod_tensors tensors = {0};
    pod_build build;
    bench_prepare(b, "tensor=16", "matmul:m=16,k=16,n=16", 0);
    bench_ok(pod_work_layout_init(&layout, &b->mesh, &b->setup.slice, &err), &err);
    pod_program_init(&program, 0);
    pod_build_init(&build, &layout, &programs, &program, &tensors, &err);
    const pod_sharding x_cut = pod_build_sharding("X", "B", whole, "D", reduce ? cut : whole);
    const pod_sharding y_cut = pod_build_sharding("Y", "D", cut, "F", whole);
    const pod_array x =
        pod_build_array(&build, "x", POD_MEMORY_INPUT, true, POD_DTYPE_BF16, &x_cut, x_size);
    pod_array y =
        pod_build_array(&build, "y", POD_MEMORY_WEIGHTS, true, POD_DTYPE_BF16, &y_cut, y_size);
    if (!reduce) {
        y = pod_build_gather(&build, "fwd", 0, &y, 0, "y.whole", POD_OP_NONE);
    }
    const pod_product product = {.phase = "fwd",
                                 .name = "z",
                                 .a = &x,
                                 .b = &y,
                                 .result = pod_build_sharding("Z", "B", whole, "F", whole),
                                 .kind = POD_MEMORY_ACTIVATIONS,
                                 .sum_in_place = true};
    (void)pod_build_matmul(&build, &product);
    bench_ok(build.st, &err);
    pod_build_fini(&build);
    programs.stages[0] = program;
    bench_ok(pod_programs_finish(&programs, &err), &err);
    b->work.programs = programs;
    pod_step_result result;
    bench_run(b, NULL, &result);
    const double seconds = pod_time_to_s(result.time_ps);
    pod_step_result_fini(&result);
    bench_clear(b);
    return seconds;
}

/* WP-028: the all-reduce of the result wins over the gather of the operand from D = 2 C/W on at large
 * batches. Without overlap, B rows: D = 2 C/W · B / (B + C/W). Both times are linear in D. */
static void strategies_cross(pod_par *par)
{
    const double d[2] = {4096, 6144}; /* whole tiles on each of 16 chips */
    double gap[2];
    bench b;
    bench_begin(&b, par, POD_RATES_BOOK, 16, 1, 1, 1);
    for (int i = 0; i < 2; i++) {
        gap[i] = strategy_time(&b, (int64_t)d[i], false) - strategy_time(&b, (int64_t)d[i], true);
    }
    MPI_CHECK(gap[0] < 0 && gap[1] > 0);
    const double cross = d[0] - gap[0] * (d[1] - d[0]) / (gap[1] - gap[0]);
    near("D of the crossing", cross, 5090, 0.03);
    bench_end(&b);
}

enum { PODS = 32 };

/** A step of an MLP over 32 pods, weights cut inside them, gradients summed across. */
static pod_step_result pods_step(bench *b, int layers, int64_t rows_per_pod)
{
    char model[64];
    pod_step_result result;
    (void)snprintf(model, sizeof model, "mlp:layers=%d,d_model=16384,d_ff=65536", layers);
    bench_prepare_over(b, "fsdp=64", "data=32", model, PODS * rows_per_pod);
    b->fold = true;
    bench_build(b);
    bench_run(b, NULL, &result);
    return result;
}

/* WP-045: data parallelism over DCN is bound by compute from 76,000 tokens a pod on ("text also says 75,000";
 * C / 6.25e9 is 73,440): then the sums of the gradients take as long as the backward pass, two thirds of
 * the matmuls. */
static void pods_break_even(pod_par *par)
{
    enum { ROWS = 73728, LAYERS = 4 };
    bench b;
    bench_begin(&b, par, POD_RATES_BOOK, 4, 4, 4, 7);
    bench_join(&b, PODS);
    pod_step_result result = pods_step(&b, LAYERS, ROWS);
    const double backward_s = seconds_of(&b, &result, POD_OP_MATMUL) * 2 / 3;
    near("rows a pod", ROWS * pod_time_to_s(result.links.dcn_busy_ps) / backward_s,
         76000.0 * (PODS - 1) / PODS, 0.04);
    pod_step_result_fini(&result);
    bench_clear(&b);
    bench_end(&b);
}

/* Above that batch more layers expose no more of DCN, below it each layer adds to it. */
static void sums_over_pods_hide_from_there_on(pod_par *par)
{
    static const struct {
        int64_t rows;
        bool hidden;
    } cases[] = {
        {65536, false},
        {79872, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b;
        pod_time_ps exposed_ps[2];
        pod_time_ps step_ps = 0;
        bench_begin(&b, par, POD_RATES_BOOK, 4, 4, 4, 7);
        bench_join(&b, PODS);
        for (int deep = 0; deep < 2; deep++) {
            pod_step_result result = pods_step(&b, deep ? 12 : 4, cases[i].rows);
            exposed_ps[deep] = result.exposed_dcn_ps / result.cells;
            step_ps = result.time_ps;
            pod_step_result_fini(&result);
            bench_clear(&b);
        }
        const double more = (double)(exposed_ps[1] - exposed_ps[0]) / (double)step_ps;
        MPI_CHECK(cases[i].hidden ? more < 0.001 : more > 0.01);
        bench_end(&b);
    }
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    mpi_check_begin(&argc, &argv);
    bench_ok(pod_par_start(&argc, &argv, &par, &err), &err);
    fsdp_breaks_even_on_one_axis(par);
    tensor_breaks_even(par);
    mixed_layouts_communicate_least(par);
    mixed_layouts_break_even(par);
    strategies_cross(par);
    fsdp_breaks_even_on_three_axes(par);
    pods_break_even(par);
    sums_over_pods_hide_from_there_on(par);
    pod_par_stop(par);
    return mpi_check_end();
}
