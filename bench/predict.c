/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim collective --rates book` would print, predicted and not simulated: for tables of many slices.
 *
 *   predict OP BYTES[,BYTES...] auto|all|NAME SLICE...      prints the columns of the CSV, without its header
 *
 * Groups span whole slices; a broadcast begins at chip 0. What can't be predicted, or can't run, is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "chip/chip.h"
#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "ici/spec.h"

enum { SIZES_MAX = 32, BF16_BYTES = 2 };

typedef struct tables {
    pod_table *chips;
    pod_table *slices;
    pod_slice_catalog *catalog;
} tables;

typedef struct order {
    pod_coll_op op;
    const char *algorithm;
    int nsizes;
    int64_t bytes[SIZES_MAX];
} order;

static pod_status table_load(const char *name, pod_table **table, pod_error *err)
{
    char path[4096];
    char *data = NULL;
    size_t size = 0;
    pod_status st = pod_data_path(name, path, sizeof path, err);
    st = st == POD_OK ? pod_file_read(path, &data, &size, err) : st;
    st = st == POD_OK ? pod_table_parse(name, data, size, table, err) : st;
    free(data);
    return st;
}

static pod_status tables_load(tables *own, pod_error *err)
{
    pod_status st = table_load("topologies/chips.csv", &own->chips, err);
    st = st == POD_OK ? table_load("topologies/slices.csv", &own->slices, err) : st;
    return st == POD_OK ? pod_slice_catalog_load(own->chips, own->slices, &own->catalog, err) : st;
}

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

static pod_status predict_slice(const order *what, const tables *own, const char *spec,
                                pod_error *err)
{
    pod_slice slice;
    pod_chip_spec chip;
    pod_group group = {0};
    pod_router *router = NULL;
    bool listed = false;
    pod_status st = pod_slice_parse(own->catalog, spec, &slice, &listed, err);
    st = st == POD_OK
             ? pod_chip_load(own->chips, slice.chip_name, POD_RATES_BOOK, NULL, 0, &chip, err)
             : st;
    st = st == POD_OK ? pod_group_init_axes(&group, &slice, (1U << slice.naxes) - 1, err) : st;
    st = st == POD_OK ? pod_router_new(&slice, &router, err) : st;
    for (int i = 0; i < what->nsizes && st == POD_OK; ++i) {
        const pod_coll_request request = {
            .op = what->op,
            .slice = &slice,
            .group = &group,
            .elements = what->bytes[i] / BF16_BYTES,
            .element_bytes = BF16_BYTES,
            .link_rate = pod_rate_make(chip.link_oneway_bytes_per_s),
            .hop_latency_ps = chip.hop_latency_ps,
            .cut_min_bytes = chip.cut_min_bytes,
        };
        st = predict_size(what, &request, router, err);
    }
    pod_router_free(router);
    pod_group_fini(&group);
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
    tables own = {0};
    order what = {0};
    if (argc < 5) {
        (void)fprintf(stderr, "usage: predict OP BYTES[,BYTES...] auto|all SLICE...\n");
        return 2;
    }
    pod_status st = order_read(argv + 1, &what, &err);
    st = st == POD_OK ? tables_load(&own, &err) : st;
    for (int i = 4; i < argc && st == POD_OK; ++i) {
        st = predict_slice(&what, &own, argv[i], &err);
    }
    if (st != POD_OK) {
        (void)fprintf(stderr, "predict: %s\n", err.text);
    }
    pod_slice_catalog_free(own.catalog);
    pod_table_free(own.slices);
    pod_table_free(own.chips);
    return st == POD_OK ? 0 : 1;
}
