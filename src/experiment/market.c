/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/market.h"

#include <stdio.h>
#include <string.h>

pod_status pod_experiment_market_setup(const pod_experiment_market *market, const char *spec,
                                       pod_experiment_setup *setup, pod_error *err)
{
    pod_experiment_setup_request request = market->request;
    request.slice = spec;
    return pod_experiment_setup_init(setup, &request, market->tables, err);
}

/* ---- twice the chips ---- */

/* The squarest slice of a generation with so many chips; NULL: none is rented. */
static const char *squarest(const pod_slice_catalog *catalog, const char *chip, int64_t chips,
                            char *spec, size_t size)
{
    int32_t least = INT32_MAX;
    for (int i = 0; i < pod_slice_catalog_rows(catalog); i++) {
        pod_slice slice;
        const char *type = NULL;
        pod_slice_catalog_row(catalog, i, &slice, &type);
        const int32_t edges = slice.dims[0] + slice.dims[1] + slice.dims[2];
        if (strcmp(slice.chip_name, chip) == 0 && slice.nchips == chips && edges < least) {
            least = edges;
            (void)snprintf(spec, size, "%s", slice.name);
        }
    }
    return least < INT32_MAX ? spec : NULL;
}

void pod_experiment_market_doubled(const pod_experiment_market *market,
                                   const pod_experiment_plan_row *row, char *spec, size_t size)
{
    const pod_slice *slice = &row->setup->slice;
    const char *star = strchr(slice->name, '*');
    if (slice->nslices > 1
        || squarest(market->tables->catalog, slice->chip_name, 2 * row->chips, spec, size)
               == NULL) {
        (void)snprintf(spec, size, "%d*%.64s", 2 * slice->nslices,
                       star != NULL ? star + 1 : slice->name);
    }
}

pod_status pod_experiment_market_plan(pod_experiment *experiment,
                                      const pod_experiment_market *market,
                                      const pod_experiment_plan_question *question,
                                      const char *spec, pod_experiment_setup *setup,
                                      pod_experiment_plan_row *row, pod_error *err)
{
    const pod_status status = pod_experiment_market_setup(market, spec, setup, err);
    POD_TRY(pod_par_agree(experiment->par, status, err));
    return pod_experiment_plan_slice(experiment, question, setup, row, err);
}

/* ---- what holds a model ---- */

/* The generations that are considered. */
typedef struct generations {
    const pod_slice_catalog *catalog;
    const pod_experiment_setup *slices;
    int nslices;
} generations;

static bool considered(const generations *g, const char *chip)
{
    int i = 0;
    while (i < g->nslices && strcmp(g->slices[i].slice.chip_name, chip) != 0) {
        i++;
    }
    return i < g->nslices;
}

/* The least number of chips above `chips` of a slice of a considered generation; INT32_MAX: there is none. */
static int32_t next_chips(const generations *g, int32_t chips)
{
    int32_t next = INT32_MAX;
    for (int i = 0; i < pod_slice_catalog_rows(g->catalog); i++) {
        pod_slice slice;
        const char *type = NULL;
        pod_slice_catalog_row(g->catalog, i, &slice, &type);
        if (considered(g, slice.chip_name) && slice.nchips > chips) {
            next = slice.nchips < next ? slice.nchips : next;
        }
    }
    return next;
}

/* The first slice of so many chips that holds a layout into spec, which stays empty if none does. */
static pod_status find_holder(const pod_experiment_market *market,
                              const pod_experiment_plan_question *question, const generations *g,
                              int32_t chips, char *spec, size_t size, pod_error *err)
{
    for (int i = 0; spec[0] == '\0' && i < pod_slice_catalog_rows(g->catalog); i++) {
        pod_slice slice;
        pod_experiment_setup setup;
        const char *type = NULL;
        bool holds = false;
        pod_slice_catalog_row(g->catalog, i, &slice, &type);
        if (slice.nchips != chips || !considered(g, slice.chip_name)) {
            continue;
        }
        pod_status status = pod_experiment_market_setup(market, slice.name, &setup, err);
        POD_THEN(status, pod_experiment_plan_holds(question, &setup, &holds, err));
        pod_experiment_setup_fini(&setup);
        POD_TRY(status);
        (void)snprintf(spec, size, "%s", holds ? slice.name : "");
    }
    return POD_OK;
}

pod_status pod_experiment_market_holder(const pod_experiment_market *market,
                                        const pod_experiment_plan_question *question,
                                        const pod_experiment_setup *slices, int nslices, char *spec,
                                        size_t size, pod_error *err)
{
    const generations g = {market->tables->catalog, slices, nslices};
    spec[0] = '\0';
    for (int32_t chips = next_chips(&g, 0); chips < INT32_MAX && spec[0] == '\0';
         chips = next_chips(&g, chips)) {
        POD_TRY(find_holder(market, question, &g, chips, spec, size, err));
    }
    return POD_OK;
}
