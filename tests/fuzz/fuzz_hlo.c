/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_remedies.h"
#include "experiment/tables.h"
#include "hlo/facts.h"
#include "hlo/memory.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Programs that are run: those of one partition, and of four on 2x2. */
enum { RUN_INSTRUCTIONS_MAX = 200, RUN_OPS_MAX = 2000 };

typedef struct world {
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_experiment_setup one;
    pod_experiment_setup four;
} world;

/* Made once and kept. */
static world *the_world(void)
{
    static world *w;
    if (w == NULL) {
        const pod_experiment_setup_request one = {.slice = "v5e:1x1", .rates = POD_RATES_MEASURED};
        const pod_experiment_setup_request four = {.slice = "v5e:2x2", .rates = POD_RATES_MEASURED};
        w = calloc(1, sizeof *w);
        POD_ASSERT(w != NULL && setenv("PODSIM_DATA", POD_SOURCE_DIR, 1) == 0);
        POD_ASSERT(pod_par_start(NULL, NULL, &w->experiment.par, NULL) == POD_OK);
        POD_ASSERT(pod_experiment_tables_load(&w->tables, NULL) == POD_OK);
        POD_ASSERT(pod_experiment_setup_init(&w->one, &one, &w->tables, NULL) == POD_OK);
        POD_ASSERT(pod_experiment_setup_init(&w->four, &four, &w->tables, NULL) == POD_OK);
    }
    return w;
}

static void outcome_check(const pod_experiment_hlo_outcome *outcome)
{
    const pod_step_result *r = &outcome->result;
    POD_ASSERT(r->compute_ps + r->exposed_ici_ps + r->exposed_dcn_ps + r->exposed_host_ps
                   + r->exposed_hbm_ps + r->idle_ps
               == r->cells * r->time_ps);
    POD_ASSERT(r->time_ps >= 0 && r->compute_ps >= 0 && r->exposed_ici_ps >= 0);
    for (uint32_t i = 0; i < outcome->program->ncosts; i++) {
        POD_ASSERT(outcome->time_ps[outcome->program->cost_instruction[i]] >= 0);
    }
}

static bool is_small(const pod_hlo_program *program)
{
    const pod_hlo_analysis *analysis = program->analysis;
    int64_t *ops = calloc((size_t)analysis->module->ncomputations + 1, sizeof *ops);
    int64_t *trips = calloc((size_t)analysis->loops.count + 1, sizeof *trips);
    POD_ASSERT(ops != NULL && trips != NULL);
    for (uint32_t i = 0; i < analysis->loops.count; i++) {
        trips[i] = analysis->loops.loop[i].trips;
    }
    pod_hlo_ops_count(program, trips, ops);
    const bool small = ops[analysis->module->entry] <= RUN_OPS_MAX;
    free(trips);
    free(ops);
    return small;
}

/* The program, once its plan says that it is small. */
static pod_status run(const world *w, pod_experiment_hlo_request *request, pod_error *err)
{
    const pod_experiment_setup *setup = request->setup;
    const pod_hlo_program_options options = {.slice = &setup->slice,
                                             .slices = 1,
                                             .devices = request->devices,
                                             .algorithms = request->algorithms};
    const pod_hlo_works *works = request->text->works;
    pod_hlo_costs *costs = NULL;
    pod_hlo_program *program = NULL;
    pod_status st = pod_hlo_costs_new(works, &setup->chip, &request->cost, &costs, err);
    if (st == POD_OK) {
        st = pod_hlo_program_new(works, costs, &options, &program, err);
    }
    const bool small = st == POD_OK && is_small(program);
    pod_hlo_program_free(program);
    pod_hlo_costs_free(costs);
    if (small) {
        pod_experiment experiment = w->experiment;
        pod_experiment_hlo_outcome outcome;
        st = pod_experiment_hlo(&experiment, request, &setup->chip, &outcome, err);
        if (st == POD_OK) {
            pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
            outcome_check(&outcome);
            st = pod_experiment_hlo_remedies(&experiment, request, &setup->chip, &outcome, remedies,
                                             err);
            pod_experiment_hlo_remedies_fini(remedies);
        }
        if (st == POD_OK) {
            pod_experiment_hlo_unknown unknown[POD_HLO_UNKNOWNS_MAX];
            int count = 0;
            st = pod_experiment_hlo_unknowns(&experiment, request, &setup->chip, &outcome, unknown,
                                             &count, err);
        }
        pod_experiment_hlo_outcome_fini(&outcome);
    }
    return st;
}

static pod_status run_text(const uint8_t *data, size_t size, pod_error *err)
{
    const world *w = the_world();
    pod_experiment_hlo_text text;
    pod_status st =
        pod_experiment_hlo_text_init(&text, "a.txt", (const char *)data, size, NULL, NULL, err);
    const bool one = st == POD_OK && text.module->partitions == 1;
    const bool four = st == POD_OK && text.module->partitions == 4;
    if ((one || four) && text.module->ninstructions <= RUN_INSTRUCTIONS_MAX) {
        const pod_hlo_kernels kernels = {.count = 0};
        pod_hlo_devices devices;
        pod_experiment_hlo_request request = {.text = &text,
                                              .setup = one ? &w->one : &w->four,
                                              .devices = &devices,
                                              .cost = {.kernels = &kernels},
                                              .algorithms = {.text = true}};
        st = pod_hlo_devices_init(&devices, one ? 1 : 4, err);
        if (st == POD_OK) {
            st = run(w, &request, err);
            pod_hlo_devices_fini(&devices);
        }
    }
    pod_experiment_hlo_text_fini(&text);
    return st;
}

/* What every answer must hold, whatever the text. */
static void check(const pod_hlo_module *module, const pod_hlo_analysis *analysis)
{
    const pod_hlo_totals *all = &analysis->inside[module->entry];
    POD_ASSERT(all->flops >= 0 && all->flops <= POD_HLO_COUNT_MAX);
    POD_ASSERT(all->flops <= all->flops_all_taps && all->executed >= 0 && all->cycles >= 0);
    for (uint32_t i = 0; i < analysis->collectives.count; i++) {
        const pod_hlo_collective *collective = &analysis->collectives.collective[i];
        if (collective->group != POD_HLO_NONE && module->devices <= 1024) {
            const pod_hlo_groups_pool *pool = &analysis->collectives.pool;
            char seen[1024] = {0};
            int32_t devices[1024];
            pod_hlo_groups_list(pool, collective->group, devices);
            for (int64_t k = 0; k < module->devices; k++) {
                POD_ASSERT(devices[k] >= 0 && devices[k] < module->devices
                           && seen[devices[k]] == 0);
                seen[devices[k]] = 1;
            }
        }
    }
}

/* Bytes and operations of every instruction that is run, and the memory. */
static pod_status costs(const pod_hlo_module *module, const pod_hlo_analysis *analysis,
                        pod_error *err)
{
    pod_hlo_bytes bytes;
    pod_hlo_memory memory;
    pod_status st = pod_hlo_bytes_init(&bytes, analysis, err);
    if (st != POD_OK) {
        return st;
    }
    for (uint32_t i = 0; i < module->ninstructions && st == POD_OK; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        pod_hlo_traffic traffic;
        if (analysis->runs[instruction->computation] > 0) {
            st = pod_hlo_traffic_of(&bytes, instruction, &traffic, err);
            POD_ASSERT(st != POD_OK || (traffic.hbm_read >= 0 && traffic.hbm_write >= 0));
            POD_ASSERT(pod_hlo_kind_of(analysis, instruction) < POD_HLO_KINDS);
        }
    }
    pod_hlo_bytes_fini(&bytes);
    if (st == POD_OK) {
        st = pod_hlo_memory_init(&memory, analysis, err);
    }
    if (st == POD_OK) {
        POD_ASSERT(memory.bytes >= memory.argument_bytes && memory.argument_bytes >= 0);
        pod_hlo_memory_fini(&memory);
    }
    return st;
}

static pod_status read_facts(const pod_hlo_analysis *analysis, pod_error *err)
{
    pod_hlo_facts facts;
    const pod_status st = pod_hlo_facts_init(&facts, analysis, err);
    if (st == POD_OK) {
        pod_hlo_facts_fini(&facts);
    }
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_hlo_module *module = NULL;
    pod_hlo_analysis analysis;
    pod_error err = {0};
    pod_status st = pod_hlo_parse("a.txt", (const char *)data, size, NULL, &module, &err);
    if (st == POD_OK) {
        st = pod_hlo_analysis_init(&analysis, module, NULL, &err);
        if (st == POD_OK) {
            check(module, &analysis);
            st = read_facts(&analysis, &err);
            st = st == POD_OK ? costs(module, &analysis, &err) : st;
            pod_hlo_analysis_fini(&analysis);
        }
        pod_hlo_free(module);
    }
    st = st == POD_OK ? run_text(data, size, &err) : st;
    POD_ASSERT(st == POD_OK || pod_status_exit_code(st) == 3);
    POD_ASSERT(st == POD_OK || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
    return 0;
}
