/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pod_status add_faults(pod_slice *slice, pod_fault_kind kind,
                             const pod_experiment_texts *texts, pod_error *err)
{
    for (int i = 0; i < texts->count; i++) {
        const pod_status st = pod_slice_fault_add(slice, kind, texts->text[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

static pod_status add_dcn_faults(pod_dcn *dcn, pod_dcn_fault_kind kind,
                                 const pod_experiment_texts *texts, pod_error *err)
{
    for (int i = 0; i < texts->count; i++) {
        const pod_status st = pod_dcn_fault_add(dcn, kind, texts->text[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

void pod_experiment_dcn_rates(pod_dcn_options *options, const pod_chip_spec *chip)
{
    options->nic_bytes_per_s = chip->dcn_bytes_per_s * chip->dcn_eff_frac;
    options->pcie_bytes_per_s = chip->pcie_bytes_per_s;
    options->latency_ps = chip->dcn_latency_ps;
    options->oversubscription = chip->dcn_oversubscription;
}

/* The faults of hosts and DCN in a slice file. */
static pod_status add_file_faults(pod_dcn *dcn, const pod_table *file, pod_error *err)
{
    static const struct {
        const char *key;
        pod_dcn_fault_kind kind;
    } keys[] = {
        {"slow_host", POD_DCN_HOST_SLOW},
        {"slow_nic",  POD_DCN_NIC_SLOW },
        {"fail_dcn",  POD_DCN_PATH_LOST},
    };
    const int key_column = pod_table_column(file, "key");
    const int value_column = pod_table_column(file, "value");
    for (int row = 0; row < pod_table_rows(file); row++) {
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            pod_error inner = {0};
            if (strcmp(pod_table_text(file, row, key_column), keys[k].key) == 0
                && pod_dcn_fault_add(dcn, keys[k].kind, pod_table_text(file, row, value_column),
                                     &inner)
                       != POD_OK) {
                return pod_table_fail(file, row, value_column, err, "%s", inner.text);
            }
        }
    }
    return POD_OK;
}

static bool file_has_faults(const pod_table *file)
{
    const int key_column = file != NULL ? pod_table_column(file, "key") : 0;
    for (int row = 0; file != NULL && row < pod_table_rows(file); row++) {
        const char *key = pod_table_text(file, row, key_column);
        if (strcmp(key, "slow_nic") == 0 || strcmp(key, "fail_dcn") == 0
            || strcmp(key, "slow_host") == 0) {
            return true;
        }
    }
    return false;
}

pod_status pod_experiment_dcn_init(pod_dcn *dcn, const pod_slice *slice, const pod_chip_spec *chip,
                                   pod_error *err)
{
    pod_dcn_options options = {.nslices = slice->nslices};
    pod_experiment_dcn_rates(&options, chip);
    for (int a = 0; a < POD_AXES; a++) {
        options.dims[a] = slice->dims[a];
        options.host_dims[a] = slice->host_dims[a];
        options.server_dims[a] =
            chip->server_dims[a] > slice->host_dims[a] ? chip->server_dims[a] : slice->host_dims[a];
    }
    return pod_dcn_init(dcn, &options, err);
}

/* The hosts, and the network that joins the slices. */
static pod_status join_slices(pod_experiment_setup *setup,
                              const pod_experiment_setup_request *request, pod_error *err)
{
    const pod_slice *slice = &setup->slice;
    const bool alone = slice->nslices < 2;
    const int idle = request->slow_nics.count + request->failed_dcn.count
                     + (request->hosts_work ? 0 : request->slow_hosts.count);
    pod_status st = pod_experiment_dcn_init(&setup->dcn, slice, &setup->chip, err);
    if (st == POD_OK) {
        st = add_dcn_faults(&setup->dcn, POD_DCN_HOST_SLOW, &request->slow_hosts, err);
    }
    if (st == POD_OK) {
        st = add_dcn_faults(&setup->dcn, POD_DCN_NIC_SLOW, &request->slow_nics, err);
    }
    if (st == POD_OK) {
        st = add_dcn_faults(&setup->dcn, POD_DCN_PATH_LOST, &request->failed_dcn, err);
    }
    if (st == POD_OK && request->file != NULL) {
        st = add_file_faults(&setup->dcn, request->file, err);
    }
    /* a fault that is none is said first, then that it has nothing to do, then that there is no such host */
    if (st != POD_E_USAGE && alone
        && (idle > 0 || (!request->hosts_work && file_has_faults(request->file)))) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s is one slice, and what joins its hosts has nothing to do; give several, "
                      "as 2*%s",
                      slice->name, slice->name);
    }
    return st;
}

/* The shape, and the faults of links and chips. */
static pod_status make_slice(pod_experiment_setup *setup,
                             const pod_experiment_setup_request *request,
                             const pod_slice_catalog *catalog, pod_error *err)
{
    pod_slice *slice = &setup->slice;
    pod_status st = request->file != NULL
                        ? pod_slice_parse_file(catalog, request->file, slice, &setup->listed, err)
                        : pod_slice_parse(catalog, request->slice, slice, &setup->listed, err);
    if (st == POD_OK && request->wrap != NULL) {
        st = pod_slice_wrap_set(slice, request->wrap, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_LINK_DEAD, &request->fail_links, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_LINK_SLOW, &request->slow_links, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_CHIP_SLOW, &request->slow_chips, err);
    }
    return st;
}

/* The largest factor of a slow cable, 0 if there is none. Those of one slice of several count as none. */
static double slowest_cable(const pod_slice *slice)
{
    double slowest = 0;
    for (int i = 0; i < slice->nfaults; i++) {
        const pod_fault *fault = &slice->faults[i];
        if (fault->kind == POD_FAULT_LINK_SLOW && fault->only == 0 && fault->factor > slowest) {
            slowest = fault->factor;
        }
    }
    return slowest;
}

static void cable_out(pod_fault *fault)
{
    fault->kind = POD_FAULT_LINK_DEAD;
    fault->factor = 0;
}

/* The routes of a setup, and those round its slow cables. */
static pod_status routes_make(pod_experiment_setup *setup, pod_error *err)
{
    setup->router = NULL;
    setup->detour = NULL;
    POD_TRY(pod_router_new(&setup->slice, &setup->router, err));
    const double slowest = slowest_cable(&setup->slice);
    if (slowest <= 1) {
        return POD_OK;
    }
    setup->detour = malloc(sizeof *setup->detour);
    if (setup->detour == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the routes of %s", setup->slice.name);
    }
    *setup->detour = *setup;
    for (int i = 0; i < setup->slice.nfaults; i++) {
        pod_fault *fault = &setup->detour->slice.faults[i];
        if (fault->kind == POD_FAULT_LINK_SLOW && fault->only == 0 && fault->factor >= slowest) {
            cable_out(fault);
        }
    }
    pod_error apart = {0};
    const pod_status st = routes_make(setup->detour, &apart);
    if (st != POD_OK) {
        pod_experiment_setup_fini(setup->detour);
        free(setup->detour);
        setup->detour = NULL;
    }
    return st == POD_E_NOMEM ? pod_fail(err, st, "%s", apart.text) : POD_OK;
}

pod_status pod_experiment_setup_init(pod_experiment_setup *setup,
                                     const pod_experiment_setup_request *request,
                                     const pod_experiment_tables *tables, pod_error *err)
{
    *setup = (pod_experiment_setup){.listed = true};
    pod_status st = make_slice(setup, request, tables->catalog, err);
    if (st == POD_OK) {
        st = pod_chip_load(tables->chips, setup->slice.chip_name, request->rates,
                           request->settings.text, request->settings.count, &setup->chip, err);
    }
    if (st == POD_OK) {
        st = join_slices(setup, request, err);
    }
    return st == POD_OK ? routes_make(setup, err) : st;
}

void pod_experiment_setup_fini(pod_experiment_setup *setup)
{
    if (setup->detour != NULL) {
        pod_experiment_setup_fini(setup->detour);
        free(setup->detour);
    }
    pod_router_free(setup->router);
    *setup = (pod_experiment_setup){.router = NULL};
}

int32_t pod_experiment_setup_chips(const pod_experiment_setup *setup)
{
    return setup->slice.nchips * setup->slice.nslices;
}

int pod_experiment_setup_faults(const pod_experiment_setup *setup)
{
    return setup->slice.nfaults + setup->dcn.nfaults;
}

static void fault_repair(pod_experiment_setup *setup, int fault)
{
    pod_slice *slice = &setup->slice;
    pod_dcn *dcn = &setup->dcn;
    if (fault < slice->nfaults) {
        slice->nfaults--;
        memmove(&slice->faults[fault], &slice->faults[fault + 1],
                (size_t)(slice->nfaults - fault) * sizeof *slice->faults);
    } else {
        const int at = fault - slice->nfaults;
        dcn->nfaults--;
        memmove(&dcn->faults[at], &dcn->faults[at + 1],
                (size_t)(dcn->nfaults - at) * sizeof *dcn->faults);
    }
}

pod_status pod_experiment_setup_changed(pod_experiment_setup *changed,
                                        const pod_experiment_setup *setup,
                                        pod_experiment_fault_change change, int fault,
                                        pod_error *err)
{
    *changed = *setup;
    changed->router = NULL;
    changed->detour = NULL;
    switch (change) {
    case POD_FAULTS_NONE:
        changed->slice.nfaults = 0;
        changed->dcn.nfaults = 0;
        break;
    case POD_FAULT_REPAIRED:
        fault_repair(changed, fault);
        break;
    case POD_FAULT_OUT:
        cable_out(&changed->slice.faults[fault]);
        break;
    }
    return routes_make(changed, err);
}

const char *pod_experiment_fault_name(const pod_experiment_setup *setup, int fault, char *buf,
                                      size_t size)
{
    const pod_slice *slice = &setup->slice;
    char chip[40];
    char only[32] = "";
    if (fault >= slice->nfaults) {
        static const char *const parts[] = {[POD_DCN_HOST_SLOW] = "",
                                            [POD_DCN_NIC_SLOW] = "NICs of ",
                                            [POD_DCN_PATH_LOST] = "DCN path of "};
        const pod_dcn_fault *of = &setup->dcn.faults[fault - slice->nfaults];
        (void)snprintf(buf, size, "%shost %d of slice %d", parts[of->kind], (int)of->host,
                       (int)of->slice);
        return buf;
    }
    const pod_fault *of = &slice->faults[fault];
    const bool link = of->kind != POD_FAULT_CHIP_SLOW;
    if (of->only > 0) {
        (void)snprintf(only, sizeof only, " of slice %d", (int)of->only - 1);
    }
    (void)snprintf(buf, size, "%s %s%s%s%s", link ? "link" : "chip",
                   pod_slice_chip_text(slice, of->chip, chip, sizeof chip), link ? ":" : "",
                   link ? pod_direction_name(of->direction) : "", only);
    return buf;
}

const char *pod_experiment_fault_state(const pod_experiment_setup *setup, int fault, char *buf,
                                       size_t size)
{
    const int nchips = setup->slice.nfaults;
    const double factor = fault < nchips ? setup->slice.faults[fault].factor
                                         : setup->dcn.faults[fault - nchips].factor;
    if (factor > 0) {
        (void)snprintf(buf, size, "%g times slower", factor);
    } else {
        (void)snprintf(buf, size, "%s", fault < nchips ? "dead" : "lost");
    }
    return buf;
}

bool pod_experiment_fault_out_option(const pod_experiment_setup *setup, int fault, char *buf,
                                     size_t size)
{
    char chip[40];
    const pod_fault *of = &setup->slice.faults[fault];
    buf[0] = '\0';
    if (fault >= setup->slice.nfaults || of->kind != POD_FAULT_LINK_SLOW || of->only > 0) {
        return false;
    }
    (void)snprintf(buf, size, "--fail-link %s:%s",
                   pod_slice_chip_text(&setup->slice, of->chip, chip, sizeof chip),
                   pod_direction_name(of->direction));
    return true;
}

pod_status pod_experiment_ranks_check(const pod_experiment_setup *setup, const pod_par *par,
                                      pod_error *err)
{
    const int ranks = pod_par_size(par);
    const int64_t chips = (int64_t)setup->slice.nchips * setup->slice.nslices;
    return ranks <= chips ? POD_OK
                          : pod_fail(err, POD_E_USAGE,
                                     "%d ranks for the %lld chips of %s; at most one rank per chip",
                                     ranks, (long long)chips, setup->slice.name);
}

pod_status pod_experiment_bytes_check(const pod_experiment_setup *setup, double link_bytes_per_s,
                                      int64_t bytes, pod_error *err)
{
    const double hours_max = 20.0;
    const double most_s = hours_max * 3600.0;
    const pod_slice *slice = &setup->slice;
    const double chips = (double)slice->nchips * slice->nslices;
    if ((double)bytes * chips > most_s * link_bytes_per_s) {
        return pod_fail(
            err, POD_E_RANGE,
            "%lld bytes on each of %.0f chips keep a link of %g GB/s busy for more than "
            "%g hours; use fewer bytes",
            (long long)bytes, chips, link_bytes_per_s / 1e9, hours_max);
    }
    const double dcn_bytes_per_s = slice->nslices > 1 ? pod_dcn_chip_bytes_per_s(&setup->dcn) : 0;
    if (slice->nslices > 1 && (double)bytes > most_s * dcn_bytes_per_s) {
        return pod_fail(
            err, POD_E_RANGE,
            "%lld bytes a chip keep its %g GB/s of DCN busy for more than %g hours; use "
            "fewer bytes",
            (long long)bytes, dcn_bytes_per_s / 1e9, hours_max);
    }
    return POD_OK;
}

pod_machine pod_experiment_machine(pod_experiment *experiment, const pod_experiment_setup *setup,
                                   double link_bytes_per_s, pod_time_ps launch_ps)
{
    return (pod_machine){
        .par = experiment->par,
        .slice = &setup->slice,
        .router = setup->router,
        .dcn = setup->slice.nslices > 1 ? &setup->dcn : NULL,
        .link_bytes_per_s = link_bytes_per_s,
        .hop_latency_ps = setup->chip.hop_latency_ps,
        .launch_ps = launch_ps,
        .progress = pod_experiment_progress,
        .progress_context = experiment,
    };
}

pod_coll_request pod_experiment_coll_request(const pod_experiment_setup *setup,
                                             const pod_group *group, double link_bytes_per_s,
                                             pod_coll_op op, int64_t bytes, pod_dtype dtype)
{
    return (pod_coll_request){
        .op = op,
        .slice = &setup->slice,
        .group = group,
        .dcn = setup->slice.nslices > 1 ? &setup->dcn : NULL,
        .elements = bytes / pod_dtype_size(dtype),
        .element_bytes = pod_dtype_size(dtype),
        .link_rate = pod_rate_make(link_bytes_per_s),
        .hop_latency_ps = setup->chip.hop_latency_ps,
        .launch_ps = setup->chip.collective_launch_ps,
        .cut_min_bytes = setup->chip.cut_min_bytes,
    };
}
