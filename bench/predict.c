/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim collective --rates book` would print, predicted and not simulated: for tables of many slices.
 *
 *   predict OP BYTES[,BYTES...] auto|all|NAME SLICE...      prints the columns of the CSV, without its header
 *
 * Groups span whole slices; a broadcast begins at chip 0. What can't be predicted, or can't run, is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "experiment/setup.h"

enum { SIZES_MAX = 32, BF16_BYTES = 2 };

typedef struct order {
    pod_coll_op op;
    const char *algorithm;
    int nsizes;
    int64_t bytes[SIZES_MAX];
} order;

static void print_row(const pod_coll_request *request, const char *algorithm,
                      const pod_coll_prediction *prediction, const pod_coll_bound *bound)
{
    const double time_us = pod_time_to_us(prediction->total_ps);
    const double bound_us = pod_time_to_us(bound->time_ps);
    (void)printf("%s,%s,all,%d,%s,bf16,%lld,%.6f,-,-,%.6f,%.6f,%s,predicted,-\n",
                 request->slice->name, pod_coll_op_name(request->op), (int)request->group->size,
                 algorithm, (long long)(request->elements * BF16_BYTES), time_us, bound_us,
                 bound_us / time_us, pod_limit_name(bound->limit));
}

static pod_status predict_size(const order *what, const pod_coll_request *request,
                               const pod_router *router, pod_error *err)
{
    pod_coll_bound bound;
    pod_coll_prediction prediction;
    pod_status st = pod_coll_bound_get(request, router, &bound, err);
    if (strcmp(what->algorithm, "auto") == 0) {
        const pod_coll_algorithm *chosen = NULL;
        st = st == POD_OK ? pod_coll_choose(request, &chosen, &prediction, err) : st;
        if (st == POD_OK) {
            print_row(request, chosen->name, &prediction, &bound);
        }
        return st;
    }
    for (int i = 0; i < pod_coll_algorithm_count() && st == POD_OK; ++i) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        const bool wanted =
            strcmp(what->algorithm, "all") == 0 || strcmp(what->algorithm, algorithm->name) == 0;
        if (wanted && pod_coll_algorithm_fits(algorithm, request)
            && algorithm->predict(request, &prediction, NULL) == POD_OK) {
            print_row(request, algorithm->name, &prediction, &bound);
        }
    }
    return st;
}

static pod_status predict_slice(const order *what, const pod_experiment_tables *tables,
                                const char *spec, pod_error *err)
{
    const pod_experiment_setup_request wish = {.slice = spec, .rates = POD_RATES_BOOK};
    pod_experiment_setup setup;
    pod_group group = {0};
    pod_status st = pod_experiment_setup_init(&setup, &wish, tables, err);
    if (st == POD_OK) {
        st = pod_group_init_axes(&group, &setup.slice, (1U << setup.slice.naxes) - 1, err);
    }
    for (int i = 0; i < what->nsizes && st == POD_OK; i++) {
        const pod_coll_request request =
            pod_experiment_coll_request(&setup, &group, setup.chip.link_oneway_bytes_per_s,
                                        what->op, what->bytes[i], POD_DTYPE_BF16);
        st = predict_size(what, &request, setup.router, err);
    }
    pod_group_fini(&group);
    pod_experiment_setup_fini(&setup);
    return st;
}

static pod_status order_read(char **words, order *what, pod_error *err)
{
    pod_status st = pod_coll_op_parse(words[0], &what->op, err);
    for (char *at = words[1]; st == POD_OK && *at != '\0' && what->nsizes < SIZES_MAX;) {
        const size_t length = strcspn(at, ",");
        const bool last = at[length] == '\0';
        at[length] = '\0';
        st = pod_parse_bytes(at, "BYTES", &what->bytes[what->nsizes++], err);
        at += length + (last ? 0 : 1);
    }
    what->algorithm = words[2];
    return st;
}

int main(int argc, char **argv)
{
    pod_error err = {.status = POD_OK};
    pod_experiment_tables tables = {0};
    order what = {0};
    if (argc < 5) {
        (void)fprintf(stderr, "usage: predict OP BYTES[,BYTES...] auto|all SLICE...\n");
        return 2;
    }
    pod_status st = order_read(argv + 1, &what, &err);
    st = st == POD_OK ? pod_experiment_tables_load(&tables, &err) : st;
    for (int i = 4; i < argc && st == POD_OK; ++i) {
        st = predict_slice(&what, &tables, argv[i], &err);
    }
    if (st != POD_OK) {
        (void)fprintf(stderr, "predict: %s\n", err.text);
    }
    pod_experiment_tables_fini(&tables);
    return st == POD_OK ? 0 : 1;
}
