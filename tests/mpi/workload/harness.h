/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/mpi/workload/harness.h  Steps on simulated slices, from text. */
#pragma once

#include "mpi_check.h"

#include "experiment/setup.h"
#include "sim/step.h"
#include "workload/step_request.h"
#include "workload/verify/reference.h"

/** A slice with its chip and router, a laid mesh and a built step. Must not move. */
typedef struct bench {
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_experiment_setup setup;
    bool has_hosts; /**< the machine has hosts and a DCN */
    bool fold;
    pod_mesh mesh;
    pod_model model;
    pod_step_request request;
    pod_step_work work;
} bench;

static inline void bench_ok(pod_status st, const pod_error *err)
{
    if (st != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err->text);
    }
}

/** v5p chips under some rates; wrap bits x = 1, y = 2, z = 4. */
static inline void bench_begin(bench *b, pod_par *par, pod_rates rates, int32_t x, int32_t y,
                               int32_t z, unsigned wrap)
{
    pod_error err = {0};
    char spec[64];
    char letters[8];
    (void)snprintf(spec, sizeof spec, "v5p:%dx%dx%d", (int)x, (int)y, (int)z);
    const pod_experiment_setup_request request = {
        .slice = spec, .wrap = wrap == 0 ? "none" : pod_axes_name(wrap, letters), .rates = rates};
    *b = (bench){.experiment = {.par = par}};
    bench_ok(pod_experiment_tables_load(&b->tables, &err), &err);
    bench_ok(pod_experiment_setup_init(&b->setup, &request, &b->tables, &err), &err);
}

/** So many of the slice, with their hosts and the network between them; also for one slice. */
static inline void bench_join(bench *b, int32_t nslices)
{
    pod_error err = {0};
    b->setup.slice.nslices = nslices;
    b->has_hosts = true;
    bench_ok(pod_experiment_dcn_init(&b->setup.dcn, &b->setup.slice, &b->setup.chip, &err), &err);
}

static inline void bench_end(bench *b)
{
    pod_experiment_setup_fini(&b->setup);
    pod_experiment_tables_fini(&b->tables);
}

/** Lay a mesh and prepare a request; the caller may change it before bench_build. */
static inline void bench_prepare_over(bench *b, const char *mesh, const char *dcn_mesh,
                                      const char *model, int64_t batch)
{
    pod_error err = {0};
    pod_logical_mesh logical;
    bench_ok(pod_logical_mesh_parse(mesh, dcn_mesh, &logical, &err), &err);
    logical.split_axes = true;
    bench_ok(pod_mesh_init(&b->mesh, &b->setup.slice, &logical, &err), &err);
    bench_ok(pod_model_parse(model, NULL, &b->model, &err), &err);
    b->request = (pod_step_request){.model = &b->model,
                                    .slice = &b->setup.slice,
                                    .mesh = &b->mesh,
                                    .batch = batch,
                                    .seq = 1,
                                    .dtype = POD_DTYPE_BF16,
                                    .microbatches = 1,
                                    .gather_ahead = POD_GATHER_AHEAD_DEFAULT};
}

static inline void bench_prepare(bench *b, const char *mesh, const char *model, int64_t batch)
{
    bench_prepare_over(b, mesh, "", model, batch);
}

static inline void bench_build(bench *b)
{
    pod_error err = {0};
    bench_ok(pod_step_build(&b->request, &b->work, &err), &err);
}

static inline void bench_clear(bench *b)
{
    pod_step_work_fini(&b->work);
    pod_mesh_fini(&b->mesh);
}

/** Simulate the step; with a check also its numbers. */
static inline pod_status bench_try(bench *b, pod_step_check *check, pod_step_result *result,
                                   pod_error *err)
{
    const pod_chip_spec *chip = &b->setup.chip;
    pod_machine machine = pod_experiment_machine(
        &b->experiment, &b->setup, chip->link_oneway_bytes_per_s, chip->collective_launch_ps);
    machine.dcn = b->has_hosts ? &b->setup.dcn : NULL;
    const pod_step_args args = {.machine = &machine,
                                .chip = chip,
                                .programs = &b->work.programs,
                                .algorithm = "auto",
                                .fold = b->fold,
                                .data = check != NULL,
                                .load = pod_step_check_load,
                                .store = pod_step_check_store,
                                .context = check,
                                .chip_records = true};
    return pod_step_run(&args, result, err);
}

/** Where the time of every cell went, on every rank; all together that of the step. */
static inline void bench_parts_add_up(const pod_step_result *result)
{
    pod_step_parts all = {.compute_ps = 0};
    for (int64_t i = 0; i < result->cells; i++) {
        const pod_step_parts *of = &result->cell_parts[i];
        MPI_CHECK_I64(of->compute_ps + of->exposed_ici_ps + of->exposed_dcn_ps + of->exposed_host_ps
                          + of->exposed_hbm_ps + of->idle_ps,
                      result->time_ps);
        all.compute_ps += of->compute_ps;
        all.idle_ps += of->idle_ps;
    }
    MPI_CHECK_I64(all.compute_ps, result->compute_ps);
    MPI_CHECK_I64(all.idle_ps, result->idle_ps);
}

static inline void bench_run(bench *b, pod_step_check *check, pod_step_result *result)
{
    pod_error err = {0};
    bench_ok(bench_try(b, check, result, &err), &err);
}

/** The reference of the request, computed on rank 0. */
static inline pod_reference *bench_reference(bench *b)
{
    pod_reference *reference = NULL;
    pod_error err = {0};
    char *blob = NULL;
    size_t size = 0;
    pod_status st = pod_reference_new(&b->request, 1, &reference, &err);
    if (st == POD_OK && pod_par_rank(b->experiment.par) == 0) {
        st = pod_reference_compute(reference, &err);
        pod_reference_blob(reference, &blob, &size);
    }
    bench_ok(pod_par_agree(b->experiment.par, st, &err), &err);
    bench_ok(pod_par_bcast_blob(b->experiment.par, &blob, &size, &err), &err);
    if (pod_par_rank(b->experiment.par) != 0) {
        bench_ok(pod_reference_take(reference, blob, size, &err), &err);
    }
    return reference;
}
