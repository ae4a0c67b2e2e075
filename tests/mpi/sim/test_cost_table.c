/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the cost table, simulated: each within 0.1 % of its formula. Shapes beyond 64 chips
 * only with the argument `all`. At 1 KiB auto is as fast as the best of them. And what a twist gains, as published. */
#include "scene.h"

#include "../../unit/collectives/cost_table.h"

static void check_row(pod_par *par, int row)
{
    scene_shape shape = {
        .chip = "v4", .wrap = {true, true, true},
             .axes = 7
    };
    memcpy(shape.dims, cost_table[row].dims, sizeof cost_table[row].dims);
    for (int b = 0; b < 3; b++) {
        scene s;
        const pod_coll_algorithm *algorithm = NULL;
        scene_open(&s, par, &shape);
        s.request.op = POD_ALL_REDUCE;
        s.request.elements = cost_table_bytes[b] / 2;
        if (pod_coll_algorithm_find(cost_table[row].algorithm, &algorithm, &s.err) != POD_OK) {
            scene_fail(&s, cost_table[row].algorithm, s.err.text);
        }
        const double us = pod_time_to_us(scene_run(&s, algorithm));
        const double want = cost_table[row].us[b];
        if (us < 0.999 * want || us > 1.001 * want) {
            char text[80];
            (void)snprintf(text, sizeof text, "%.3f us, the table has %.3f", us, want);
            scene_fail(&s, algorithm->name, text);
        }
        scene_close(&s);
    }
}

/* What auto takes at 1 KiB is no slower than any row of the same shape. */
static void check_auto(pod_par *par, const int32_t dims[3])
{
    scene_shape shape = {
        .chip = "v4", .wrap = {true, true, true},
             .axes = 7
    };
    memcpy(shape.dims, dims, sizeof shape.dims);
    scene s;
    const pod_coll_algorithm *algorithm = NULL;
    pod_coll_prediction prediction;
    scene_open(&s, par, &shape);
    s.request.op = POD_ALL_REDUCE;
    s.request.elements = cost_table_bytes[0] / 2;
    if (pod_coll_choose(&s.request, &algorithm, &prediction, &s.err) != POD_OK) {
        scene_fail(&s, "auto", s.err.text);
    }
    const double us = pod_time_to_us(scene_run(&s, algorithm));
    for (int row = 0; row < COST_TABLE_ROWS; row++) {
        if (memcmp(cost_table[row].dims, dims, sizeof shape.dims) == 0
            && us > 1.001 * cost_table[row].us[0]) {
            scene_fail(&s, algorithm->name, cost_table[row].algorithm);
        }
    }
    scene_close(&s);
}

static double exchange_us(pod_par *par, const scene_shape *shape, double *bound_frac)
{
    scene s;
    const pod_coll_algorithm *direct = NULL;
    pod_coll_bound bound;
    scene_open(&s, par, shape);
    s.request.op = POD_ALL_TO_ALL;
    s.request.elements = 32 << 20;
    s.fold = true;
    if (pod_coll_algorithm_find("direct", &direct, &s.err) != POD_OK
        || pod_coll_bound_get(&s.request, s.router, &bound, &s.err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, s.err.text);
    }
    const pod_time_ps time_ps = scene_run(&s, direct);
    *bound_frac = (double)bound.time_ps / (double)time_ps;
    scene_close(&s);
    return pod_time_to_us(time_ps);
}

/* A 64 MiB all-to-all on the regular slice over that on the twisted one: 1.63 and 1.31 measured (TPU v4, Jouppi et
 * al., ISCA 2023, arXiv 2304.01433), 1.745 and 1.391 by the bytes on the busiest link. */
static void check_twist(pod_par *par, const int32_t dims[3], double least, double most)
{
    scene_shape shape = {
        .chip = "v4", .wrap = {true, true, true},
             .axes = 7
    };
    double regular_frac = 0;
    double twisted_frac = 0;
    memcpy(shape.dims, dims, sizeof shape.dims);
    const double regular = exchange_us(par, &shape, &regular_frac);
    shape.twisted = true;
    const double gain = regular / exchange_us(par, &shape, &twisted_frac);
    if (gain < least || gain > most || regular_frac < 0.99) {
        char text[120];
        (void)snprintf(text, sizeof text,
                       "a twist gains %.4f; the regular slice at %.4f of its bound", gain,
                       regular_frac);
        mpi_check_fail(__FILE__, __LINE__, text);
    }
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {.status = POD_OK};
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    if (pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, err.text);
    }
    check_twist(par, (int32_t[3]){4, 4, 8}, 1.60, 1.76);
    check_twist(par, (int32_t[3]){4, 8, 8}, 1.30, 1.41);
    for (int row = 0; row < COST_TABLE_ROWS; row++) {
        const int32_t *dims = cost_table[row].dims;
        if (all || dims[0] * dims[1] * dims[2] <= 64) {
            if (row == 0
                || memcmp(dims, cost_table[row - 1].dims, sizeof cost_table[0].dims) != 0) {
                check_auto(par, dims);
            }
            check_row(par, row);
        }
    }
    pod_par_stop(par);
    return mpi_check_end();
}
