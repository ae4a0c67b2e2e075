/* SPDX-License-Identifier: Apache-2.0 */
/* Small compiled programs at the book's rates: no launch, no losses. For tests of this folder. */
#pragma once

#include "base/file.h"
#include "experiment/hlo_remedies.h"
#include "experiment/tables.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 17 };

typedef struct world {
    pod_par *par;
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_experiment_setup setup;
    pod_hlo_kernels kernels;
    pod_hlo_devices devices;
    pod_experiment_hlo_text text;
    pod_experiment_hlo_request request;
    pod_experiment_hlo_outcome outcome;
    char *bytes;
    size_t size;
    pod_error err;
} world;

#define OK(w, call) cr_assert_eq((call), POD_OK, "%s: %s", #call, (w)->err.text)

static inline void kernels_load(world *w)
{
    char path[4096];
    char *data = NULL;
    size_t size = 0;
    pod_table *table = NULL;
    OK(w, pod_data_path("topologies/kernels.csv", path, sizeof path, &w->err));
    OK(w, pod_file_read(path, &data, &size, &w->err));
    OK(w, pod_table_parse("kernels.csv", data, size, &table, &w->err));
    OK(w, pod_hlo_kernels_init(&w->kernels, table, &w->err));
    pod_table_free(table);
    free(data);
}

static inline void world_init(world *w, const char *slice)
{
    memset(w, 0, sizeof *w);
    OK(w, pod_par_start(NULL, NULL, &w->par, &w->err));
    w->experiment.par = w->par;
    OK(w, pod_experiment_tables_load(&w->tables, &w->err));
    const pod_experiment_setup_request request = {.slice = slice, .rates = POD_RATES_BOOK};
    OK(w, pod_experiment_setup_init(&w->setup, &request, &w->tables, &w->err));
    kernels_load(w);
    OK(w, pod_hlo_devices_init(&w->devices, w->setup.slice.nchips, &w->err));
    w->bytes = calloc(1, TEXT_MAX);
    cr_assert(w->bytes != NULL);
    w->request = (pod_experiment_hlo_request){.setup = &w->setup,
                                              .devices = &w->devices,
                                              .cost = {.kernels = &w->kernels},
                                              .algorithms = {.text = true}};
}

static inline void text_fini(world *w)
{
    pod_experiment_hlo_outcome_fini(&w->outcome);
    pod_experiment_hlo_text_fini(&w->text);
    w->size = 0;
}

static inline void world_fini(world *w)
{
    text_fini(w);
    free(w->bytes);
    pod_hlo_devices_fini(&w->devices);
    pod_hlo_kernels_fini(&w->kernels);
    pod_experiment_setup_fini(&w->setup);
    pod_experiment_tables_fini(&w->tables);
    pod_par_stop(w->par);
}

__attribute__((format(printf, 2, 3))) static inline void add(world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w->size += (size_t)vsnprintf(w->bytes + w->size, TEXT_MAX - w->size, format, args);
    va_end(args);
    cr_assert_lt(w->size, TEXT_MAX);
}

/* A module with these instructions in ENTRY, of as many partitions as the slice has chips. */
static inline void header(world *w)
{
    text_fini(w);
    add(w, "HloModule m, is_scheduled=true, num_partitions=%d\n\n", w->setup.slice.nchips);
}

/* cr_assert_float_eq evaluates its arguments more than once, so a run first ends the one before. */
static inline pod_status run(world *w)
{
    pod_experiment_hlo_outcome_fini(&w->outcome);
    pod_experiment_hlo_text_fini(&w->text);
    pod_error_clear(&w->err);
    pod_status st =
        pod_experiment_hlo_text_init(&w->text, "m.hlo", w->bytes, w->size, NULL, NULL, &w->err);
    w->request.text = &w->text;
    return st == POD_OK ? pod_experiment_hlo(&w->experiment, &w->request, &w->setup.chip,
                                             &w->outcome, &w->err)
                        : st;
}

static inline double us(const world *w, int64_t sum_ps)
{
    return pod_experiment_hlo_mean_s(&w->outcome, sum_ps) * 1e6;
}

/* Runs, and checks that the parts add up. @return the step in microseconds */
static inline double step_us(world *w)
{
    OK(w, run(w));
    const pod_step_result *r = &w->outcome.result;
    cr_assert_eq(r->compute_ps + r->exposed_ici_ps + r->exposed_dcn_ps + r->exposed_host_ps
                     + r->exposed_hbm_ps + r->idle_ps,
                 r->cells * r->time_ps);
    return (double)r->time_ps / 1e6;
}

static inline void entry_text(world *w, const char *instructions)
{
    header(w);
    add(w, "ENTRY %%main (p: f32[]) -> f32[] {\n%s}\n", instructions);
}

static const char group16[] = "replica_groups={{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}}";

/* A matmul of so many rows beside or after a gather over 16 chips. */
static inline void gather_text(world *w, bool asynchronous, int rows)
{
    header(w);
    add(w,
        "ENTRY %%main (p: f32[]) -> f32[] {\n"
        "%%g = bf16[1048576]{0:T(1024)(128)(2,1)} parameter(0)\n"
        "%%a = bf16[%d,4096]{1,0:T(8,128)(2,1)S(1)} parameter(1)\n"
        "%%b = bf16[4096,4096]{1,0:T(8,128)(2,1)S(1)} parameter(2)\n",
        rows);
    if (asynchronous) {
        add(w,
            "%%s = (bf16[1048576]{0:T(1024)(128)(2,1)}, bf16[16777216]{0:T(1024)(128)(2,1)}) "
            "all-gather-start(%%g), %s, dimensions={0}\n",
            group16);
    } else {
        add(w, "%%d = bf16[16777216]{0:T(1024)(128)(2,1)} all-gather(%%g), %s, dimensions={0}\n",
            group16);
    }
    add(w,
        "%%c = bf16[%d,4096]{1,0:T(8,128)(2,1)S(1)} convolution(%%a, %%b), dim_labels=bf_io->bf\n",
        rows);
    if (asynchronous) {
        add(w, "%%d = bf16[16777216]{0:T(1024)(128)(2,1)} all-gather-done(%%s)\n");
    }
    add(w, "ROOT %%t = (bf16[16777216]{0:T(1024)(128)(2,1)}) tuple(%%d)\n}\n");
}
