/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the 32 real texts of validation/hlo: the published ones, what holds for all of them, extrapolated loops
 * against all iterations. */
#include "base/file.h"
#include "collectives/bounds/bound.h"
#include "experiment/hlo_remedies.h"
#include "experiment/tables.h"
#include "mesh/device_mesh.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sample.h"

enum { PATH_SIZE = 4096, TEXT_MAX = 4 << 20 };

typedef struct world {
    pod_par *par;
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_table *expected;
    pod_hlo_kernels kernels;
    pod_experiment_setup setup;
    pod_hlo_devices devices;
    pod_experiment_hlo_text text;
    pod_experiment_hlo_request request;
    pod_experiment_hlo_outcome outcome;
    char *bytes;
    int64_t watched; /* runs of collectives looked at */
    pod_error err;
} world;

#define OK(w, call) cr_assert_eq((call), POD_OK, "%s: %s", #call, (w)->err.text)

static pod_table *table_read(world *w, const char *path)
{
    char *data = NULL;
    size_t size = 0;
    pod_table *table = NULL;
    OK(w, pod_file_read(path, &data, &size, &w->err));
    OK(w, pod_table_parse(path, data, size, &table, &w->err));
    free(data);
    return table;
}

static void world_init(world *w)
{
    char path[PATH_SIZE];
    memset(w, 0, sizeof *w);
    OK(w, pod_par_start(NULL, NULL, &w->par, &w->err));
    w->experiment.par = w->par;
    OK(w, pod_experiment_tables_load(&w->tables, &w->err));
    w->expected = table_read(w, POD_SOURCE_DIR "/validation/hlo/expected.csv");
    OK(w, pod_data_path("topologies/kernels.csv", path, sizeof path, &w->err));
    pod_table *kernels = table_read(w, path);
    OK(w, pod_hlo_kernels_init(&w->kernels, kernels, &w->err));
    pod_table_free(kernels);
    w->bytes = malloc(TEXT_MAX);
    cr_assert(w->bytes != NULL);
}

static void text_fini(world *w)
{
    pod_experiment_hlo_outcome_fini(&w->outcome);
    pod_experiment_hlo_text_fini(&w->text);
    pod_hlo_devices_fini(&w->devices);
    pod_experiment_setup_fini(&w->setup);
}

static void world_fini(world *w)
{
    free(w->bytes);
    pod_hlo_kernels_fini(&w->kernels);
    pod_table_free(w->expected);
    pod_experiment_tables_fini(&w->tables);
    pod_par_stop(w->par);
}

static const char *cell(const world *w, int row, const char *column)
{
    return pod_table_text(w->expected, row, pod_table_column(w->expected, column));
}

static size_t unpack(world *w, const char *id)
{
    char command[PATH_SIZE];
    (void)snprintf(command, sizeof command, "gzip -dc '%s/validation/hlo/%s.hlo.gz'",
                   POD_SOURCE_DIR, id);
    FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c)
    cr_assert(pipe != NULL);
    const size_t size = fread(w->bytes, 1, TEXT_MAX, pipe);
    cr_assert_eq(pclose(pipe), 0, "%s", command);
    return size;
}

/* The text of a row of the table, on its slice. */
static void text_load(world *w, int row)
{
    const pod_experiment_setup_request request = {.slice = cell(w, row, "slice"),
                                                  .rates = POD_RATES_MEASURED};
    const char *id = cell(w, row, "id");
    pod_logical_mesh logical;
    pod_mesh mesh;
    OK(w, pod_experiment_setup_init(&w->setup, &request, &w->tables, &w->err));
    OK(w, pod_logical_mesh_parse(cell(w, row, "mesh"), NULL, &logical, &w->err));
    pod_slice one = w->setup.slice;
    one.nslices = 1;
    logical.split_axes = true;
    OK(w, pod_mesh_init(&mesh, &one, &logical, &w->err));
    OK(w, pod_experiment_hlo_text_init(&w->text, id, w->bytes, unpack(w, id), NULL, NULL, &w->err));
    OK(w,
       pod_hlo_devices_init_mesh(&w->devices, &mesh, (int32_t)w->text.module->partitions, &w->err));
    pod_mesh_fini(&mesh);
    w->request = (pod_experiment_hlo_request){.text = &w->text,
                                              .setup = &w->setup,
                                              .devices = &w->devices,
                                              .cost = {.kernels = &w->kernels},
                                              .algorithms = {.text = true}};
}

static double run_s(world *w)
{
    pod_experiment_hlo_outcome_fini(&w->outcome);
    OK(w, pod_experiment_hlo(&w->experiment, &w->request, &w->setup.chip, &w->outcome, &w->err));
    return pod_time_to_s(w->outcome.result.time_ps);
}

/* ---- what holds for all ---- */

static void parts_check(const world *w, const char *id)
{
    const pod_step_result *r = &w->outcome.result;
    cr_expect_eq(r->compute_ps + r->exposed_ici_ps + r->exposed_dcn_ps + r->exposed_host_ps
                     + r->exposed_hbm_ps + r->idle_ps,
                 r->cells * r->time_ps, "%s", id);
    cr_expect(r->compute_ps >= 0 && r->exposed_ici_ps >= 0 && r->exposed_hbm_ps >= 0, "%s", id);
}

/* No faster than its FLOPs and its bytes. */
static void bounds_check(const world *w, const char *id, double step_s)
{
    const pod_experiment_hlo_totals totals = pod_experiment_hlo_totals_of(w->outcome.program);
    const pod_chip_spec *chip = &w->setup.chip;
    const bool int8 = strncmp(id, "int8", 4) == 0;
    const double peak = chip->peak_ops_per_s[int8 ? POD_DTYPE_INT8 : POD_DTYPE_BF16];
    const double bytes = (double)totals.hbm_read_bytes + (double)totals.hbm_write_bytes;
    cr_expect_geq(step_s, totals.mxu_flops / peak, "%s", id);
    cr_expect_geq(step_s, bytes / chip->hbm_bytes_per_s, "%s", id);
    cr_expect_eq(totals.unknown_calls, 0, "%s", id);
}

/* What ran is what the text says, without a reason, or there is a reason. A permute has one way to run; of transfers
 * over DCN the text says nothing. */
static void algorithms_check(const world *w, const char *id)
{
    const pod_hlo_program *program = w->outcome.program;
    for (uint32_t i = program->analysis->collectives.count; i < program->nrun_as; i++) {
        cr_expect(w->outcome.ran[i].algorithm[0] == '\0' || w->outcome.ran[i].reason[0] != '\0',
                  "%s: transfer %u ran %s without a reason", id, i, w->outcome.ran[i].algorithm);
    }
    for (uint32_t i = 0; i < program->analysis->collectives.count; i++) {
        const pod_hlo_collective *collective = &program->analysis->collectives.collective[i];
        const pod_experiment_hlo_ran *ran = &w->outcome.ran[i];
        const pod_hlo_algorithm *how = &program->run_as[i].how;
        if (pod_experiment_hlo_runs(program, collective->instruction) == 0
            || program->run_as[i].group < 0) {
            continue;
        }
        cr_expect(ran->algorithm[0] != '\0', "%s: collective %u ran nothing", id, i);
        if (collective->opcode == POD_HLO_COLLECTIVE_PERMUTE) {
            cr_expect_str_eq(ran->algorithm, "permute", "%s: collective %u", id, i);
            continue;
        }
        const bool as_text =
            how->text[0] != '\0' && how->runs.given && strncmp(ran->algorithm, "xla:", 4) == 0;
        cr_expect(as_text || ran->reason[0] != '\0',
                  "%s: collective %u of '%s' ran %s without a reason", id, i, how->text,
                  ran->algorithm);
    }
}

/* What no algorithm can beat, with a launch, as `podsim collective` says of one alone. */
static pod_time_ps bound_of(world *w, const pod_programs *programs, const pod_op *op)
{
    const pod_chip_spec *chip = &w->setup.chip;
    const pod_group *group = &programs->groups[op->group].group;
    const bool permute = op->op == POD_PERMUTE;
    const int links = permute ? 1 : pod_group_links(&w->setup.slice, group);
    const int32_t size = pod_dtype_size(op->dtype);
    pod_dcn dcn = w->setup.dcn;
    pod_experiment_dcn_rates(&dcn.options, chip);
    const pod_coll_request request = {
        .op = op->op,
        .slice = &w->setup.slice,
        .group = group,
        .dcn = group->slices > 1 ? &dcn : NULL,
        .elements = op->bytes / size,
        .element_bytes = size,
        .link_rate = pod_rate_make(pod_chip_link_bytes_per_s(chip, links)),
        .hop_latency_ps = chip->hop_latency_ps,
        .source_of = permute ? programs->permutes[op->sources].source_of : NULL,
        .equal_blocks = !permute && op->bytes / size % group->size == 0,
    };
    pod_coll_bound bound;
    OK(w, pod_coll_bound_get(&request, w->setup.router, &bound, &w->err));
    return bound.time_ps > 0 ? bound.time_ps + chip->collective_launch_ps : 0;
}

/* No run of a collective or transfer, from the first chip that begins to the last one that ends, is faster than its
 * bound. */
static pod_status runs_check(void *context, const pod_hlo_emitted *emitted,
                             const pod_step_result *result, pod_error *err)
{
    world *w = context;
    const pod_program *program = &emitted->programs.stages[0];
    const uint32_t nsums = pod_experiment_hlo_sum(w->outcome.program, w->outcome.program->nrun_as);
    pod_time_ps *bound_ps = calloc((size_t)nsums * 2, sizeof *bound_ps); /* the second of two ops */
    (void)err;
    cr_assert(bound_ps != NULL);
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        const pod_op_record *record = &result->ops[0][i];
        if (op->kind != POD_OP_COLLECTIVE) {
            continue;
        }
        const bool second = op->op == POD_ALL_GATHER;
        pod_time_ps *bound = &bound_ps[2 * emitted->instruction[i] + second];
        *bound = *bound > 0 ? *bound : bound_of(w, &emitted->programs, op);
        w->watched++;
        cr_expect_geq(record->last_end_ps - record->first_start_ps, *bound,
                      "op %d, %s of %lld bytes, takes %lld ps, at least %lld", i, record->algorithm,
                      (long long)op->bytes,
                      (long long)(record->last_end_ps - record->first_start_ps), (long long)*bound);
    }
    free(bound_ps);
    return POD_OK;
}

/* Run it, with every run of a collective held to its bound. */
static double run_watched_s(world *w, const char *id)
{
    static const int32_t first = 0;
    static const pod_step_observer observer = {.nchips = 1, .chips = &first};
    pod_experiment_hlo_request watched = w->request;
    watched.observer = &observer;
    watched.observed = runs_check;
    watched.context = w;
    w->watched = 0;
    OK(w, pod_experiment_hlo(&w->experiment, &watched, &w->setup.chip, &w->outcome, &w->err));
    const bool none = w->outcome.program->nrun_as == 0;
    cr_expect((w->watched > 0) != none, "%s: %lld collectives ran", id, (long long)w->watched);
    return pod_time_to_s(w->outcome.result.time_ps);
}

/* Of core instructions the time of all runs is the compute time. */
static void sums_check(const world *w, const char *id)
{
    const pod_hlo_program *program = w->outcome.program;
    int64_t sum = 0;
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_kind kind = pod_hlo_planned_cost(program, i)->kind;
        if (kind != POD_HLO_KIND_COPY && kind != POD_HLO_KIND_SPARSECORE) {
            sum += w->outcome.time_ps[program->cost_instruction[i]];
        }
    }
    cr_expect_float_eq((double)sum, (double)w->outcome.result.compute_ps,
                       1e-6 * (double)w->outcome.result.compute_ps, "%s", id);
}

/* Every remedy can be simulated. One that begins earlier or moves fewer bytes may still lose to what shares its
 * links. */
static void remedies_check(world *w, const char *id)
{
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    OK(w, pod_experiment_hlo_remedies(&w->experiment, &w->request, &w->setup.chip, &w->outcome,
                                      remedies, &w->err));
    for (int i = 0; i < POD_HLO_REMEDIES; i++) {
        cr_expect_gt(remedies[i].time_ps, w->outcome.result.time_ps / 10, "%s", id);
        cr_expect_lt(remedies[i].time_ps, w->outcome.result.time_ps * 3 / 2, "%s", id);
    }
    pod_experiment_hlo_remedies_fini(remedies);
}

Test(hlo_texts, parts_bounds_and_algorithms_of_every_text)
{
    world w;
    world_init(&w);
    for (int row = 0; row < pod_table_rows(w.expected); row = sample_next(row, 8)) {
        const char *id = cell(&w, row, "id");
        text_load(&w, row);
        const double step_s = run_watched_s(&w, id);
        parts_check(&w, id);
        bounds_check(&w, id, step_s);
        algorithms_check(&w, id);
        sums_check(&w, id);
        remedies_check(&w, id);
        text_fini(&w);
    }
    world_fini(&w);
}

/* Texts without a long loop run every iteration anyway. */
Test(hlo_texts, a_few_iterations_stand_for_all_to_a_thousandth)
{
    int extrapolated = 0;
    world w;
    world_init(&w);
    for (int row = 0; row < pod_table_rows(w.expected); row = sample_next(row, 8)) {
        const char *id = cell(&w, row, "id");
        text_load(&w, row);
        const double few_s = run_s(&w);
        const int64_t few_ops = w.outcome.simulated_ops;
        const bool long_loops = w.outcome.simulations > 1;
        w.request.exact = true;
        const double all_s = run_s(&w);
        cr_expect_eq(w.outcome.simulations, 1, "%s", id);
        cr_expect_float_eq(few_s, all_s, long_loops ? 1e-3 * all_s : 0, "%s: %g and %g", id, few_s,
                           all_s);
        cr_expect(few_ops < w.outcome.simulated_ops
                      || (!long_loops && few_ops == w.outcome.simulated_ops),
                  "%s", id);
        extrapolated += long_loops;
        text_fini(&w);
    }
    cr_expect(sample_of(8) > 1 || extrapolated == 10, "%d", extrapolated);
    cr_expect_gt(extrapolated, 0);
    world_fini(&w);
}

/* MaxText's own figures of these two steps (validation/hlo/expected.csv, published_step_s). The second program isn't
 * the published one: it gathers weights in pieces inside its matmuls. */
Test(hlo_texts, published_steps)
{
    static const struct {
        const char *id;
        double tolerance;
    } cases[] = {
        {"MXv5e-001", 0.10},
        {"TRv6e-001", 0.30}
    };
    world w;
    world_init(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int row = pod_table_find(w.expected, pod_table_column(w.expected, "id"), cases[i].id);
        const double published_s = strtod(cell(&w, row, "published_step_s"), NULL);
        text_load(&w, row);
        cr_assert_gt(published_s, 0);
        cr_expect_float_eq(run_s(&w), published_s, cases[i].tolerance * published_s, "%s",
                           cases[i].id);
        w.request.cost.compiler = true;
        cr_expect_float_eq(run_s(&w), published_s, cases[i].tolerance * published_s, "%s",
                           cases[i].id);
        text_fini(&w);
    }
    world_fini(&w);
}

static void chip_scale(pod_chip_spec *chip, int what, double factor)
{
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        chip->peak_ops_per_s[dtype] *= what == 0 ? factor : 1;
    }
    chip->hbm_bytes_per_s *= what == 1 ? factor : 1;
    chip->link_oneway_bytes_per_s *= what == 2 ? factor : 1;
}

/* How much longer than it is a step may be with something faster, and the other way round. The groups of
 * MLP-v5e-256-fsdp-tp4 are strided and share links, where messages wait for each other in the order in which they come:
 * faster HBM lets some come earlier, and the step takes 0.95 % longer. */
static double anomaly_of(const char *id)
{
    return strcmp(id, "MLP-v5e-256-fsdp-tp4") == 0 ? 0.01 : 0.001;
}

/* A faster MXU, HBM or link doesn't make a step longer, a slower one not shorter. Of every eighth text:
 * all 32 take minutes under sanitizers. unit.experiment.hlo_texts_all runs them. */
Test(hlo_texts, faster_chips_do_not_take_longer)
{
    enum { EVERY = 8 };
    const bool all = sample_of(EVERY) == 1;
    world w;
    world_init(&w);
    for (int row = 0; row < pod_table_rows(w.expected); row++) {
        const char *id = cell(&w, row, "id");
        if (!all && (row % EVERY != 0 || anomaly_of(id) > 0.001)) {
            continue;
        }
        text_load(&w, row);
        const double as_it_is_s = run_s(&w);
        const pod_chip_spec chip = w.setup.chip;
        bool any = false;
        for (int what = 0; what < 3; what++) {
            w.setup.chip = chip;
            chip_scale(&w.setup.chip, what, 2);
            const double faster_s = run_s(&w);
            cr_expect_leq(faster_s, as_it_is_s * (1 + anomaly_of(id)), "%s, %d", id, what);
            w.setup.chip = chip;
            chip_scale(&w.setup.chip, what, 0.5);
            const double slower_s = run_s(&w);
            cr_expect_geq(slower_s, as_it_is_s * (1 - anomaly_of(id)), "%s, %d", id, what);
            any = any || slower_s > as_it_is_s * 1.05;
        }
        cr_expect(any, "%s waits for none of them", id);
        w.setup.chip = chip;
        text_fini(&w);
    }
    world_fini(&w);
}
