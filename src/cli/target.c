/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include "ici/group.h"

#include <stdlib.h>
#include <string.h>

static pod_status add_faults(pod_slice *slice, pod_fault_kind kind, const pod_cli_list *texts,
                             pod_error *err)
{
    for (int i = 0; i < texts->count; i++) {
        const pod_status st = pod_slice_fault_add(slice, kind, texts->text[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

static pod_status add_dcn_faults(pod_dcn *dcn, pod_dcn_fault_kind kind, const pod_cli_list *texts,
                                 pod_error *err)
{
    for (int i = 0; i < texts->count; i++) {
        const pod_status st = pod_dcn_fault_add(dcn, kind, texts->text[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

void pod_cli_dcn_rates(pod_dcn_options *options, const pod_chip_spec *chip)
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

/* The hosts, and the network that joins the slices. @param file  slice file, or NULL */
static pod_status join_slices(pod_cli_target *target, const pod_cli_common *common,
                              const pod_table *file, pod_error *err)
{
    const pod_slice *slice = &target->slice;
    const pod_chip_spec *chip = &target->chip;
    const bool alone = slice->nslices < 2;
    const int idle = common->slow_nics.count + common->failed_dcn.count
                     + (common->hosts_work ? 0 : common->slow_hosts.count);
    if (alone && (idle > 0 || (!common->hosts_work && file_has_faults(file)))) {
        return pod_fail(
            err, POD_E_INVALID,
            "%s is one slice, and what joins its hosts has nothing to do; give several, "
            "as 2*%s",
            slice->name, slice->name);
    }
    pod_dcn_options options = {.nslices = slice->nslices};
    pod_cli_dcn_rates(&options, chip);
    for (int a = 0; a < POD_AXES; a++) {
        options.dims[a] = slice->dims[a];
        options.host_dims[a] = chip->host_dims[a];
    }
    pod_status st = pod_dcn_init(&target->dcn, &options, err);
    if (st == POD_OK) {
        st = add_dcn_faults(&target->dcn, POD_DCN_HOST_SLOW, &common->slow_hosts, err);
    }
    if (st == POD_OK) {
        st = add_dcn_faults(&target->dcn, POD_DCN_NIC_SLOW, &common->slow_nics, err);
    }
    if (st == POD_OK) {
        st = add_dcn_faults(&target->dcn, POD_DCN_PATH_LOST, &common->failed_dcn, err);
    }
    if (st == POD_OK && file != NULL) {
        st = add_file_faults(&target->dcn, file, err);
    }
    return st;
}

/* @param[out] table  the slice file read, or NULL; pod_table_free */
static pod_status parse_slice(pod_cli *cli, const char *spec, const pod_cli_file *file,
                              pod_slice *slice, bool *listed, pod_table **table, pod_error *err)
{
    const pod_slice_catalog *catalog = cli->tables->catalog;
    *table = NULL;
    if (file == NULL) {
        return pod_slice_parse(catalog, spec, slice, listed, err);
    }
    const pod_status st = pod_table_parse(file->path, file->data, file->size, table, err);
    return st == POD_OK ? pod_slice_parse_file(catalog, *table, slice, listed, err) : st;
}

static pod_status check_ranks(const pod_cli *cli, const pod_slice *slice, pod_error *err)
{
    const int ranks = pod_par_size(cli->par);
    const int64_t chips = (int64_t)slice->nchips * slice->nslices;
    return ranks <= chips ? POD_OK
                          : pod_fail(err, POD_E_USAGE,
                                     "%d ranks for the %lld chips of %s; at most one rank per chip",
                                     ranks, (long long)chips, slice->name);
}

static pod_status target_init(pod_cli_target *target, pod_cli *cli, const char *spec,
                              const pod_cli_file *file, pod_error *err)
{
    const pod_cli_common *common = &cli->common;
    pod_slice *slice = &target->slice;
    bool listed = true;
    pod_table *table = NULL;
    pod_status st = parse_slice(cli, spec, file, slice, &listed, &table, err);
    if (st == POD_OK) {
        st = check_ranks(cli, slice, err);
    }
    if (st == POD_OK && common->wrap != NULL) {
        st = pod_slice_wrap_set(slice, common->wrap, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_LINK_DEAD, &common->fail_links, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_LINK_SLOW, &common->slow_links, err);
    }
    if (st == POD_OK) {
        st = add_faults(slice, POD_FAULT_CHIP_SLOW, &common->slow_chips, err);
    }
    if (st == POD_OK) {
        st = pod_chip_load(cli->tables->chips, slice->chip_name, common->rates,
                           common->settings.text, common->settings.count, &target->chip, err);
    }
    if (st == POD_OK) {
        st = join_slices(target, common, table, err);
    }
    pod_table_free(table);
    if (st == POD_OK) {
        st = pod_router_new(slice, &target->router, err);
    }
    if (st == POD_OK && !listed && common->wrap == NULL) {
        char wrap[8];
        pod_cli_warn(cli, "%s is not in slices.csv; wrap by rule: %s", slice->name,
                     pod_axes_name(pod_slice_closed_axes(slice), wrap));
    } else if (st == POD_OK && !listed) {
        pod_cli_warn(cli, "%s is not in slices.csv", slice->name);
    }
    return st;
}

void pod_cli_target_fini(pod_cli_target *target)
{
    pod_router_free(target->router);
    *target = (pod_cli_target){.router = NULL};
}

/* `files` holds the slice files in the order of the specs that name one. */
static pod_status init_all(pod_cli_targets *targets, pod_cli *cli, const pod_cli_file *files,
                           pod_error *err)
{
    const pod_cli_list *specs = &cli->common.slices;
    targets->target = calloc((size_t)specs->count, sizeof *targets->target);
    if (targets->target == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the slices");
    }
    targets->count = specs->count;
    pod_status st = POD_OK;
    for (int i = 0; i < specs->count && st == POD_OK; i++) {
        const bool from_file = pod_slice_spec_is_file(specs->text[i]);
        st = target_init(&targets->target[i], cli, specs->text[i], from_file ? files++ : NULL, err);
    }
    return st;
}

pod_status pod_cli_targets_init(pod_cli_targets *targets, pod_cli *cli, pod_cli_file *extra,
                                int nextra, pod_error *err)
{
    *targets = (pod_cli_targets){0};
    const pod_cli_list *specs = &cli->common.slices;
    if (specs->count == 0) {
        return pod_fail(err, POD_E_USAGE, "missing --slice; give it as in --slice v5p:4x4x4");
    }
    int nfiles = 0;
    pod_cli_file *files = calloc((size_t)specs->count + (size_t)nextra, sizeof *files);
    if (files == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the slices");
    }
    for (int i = 0; i < specs->count; i++) {
        if (pod_slice_spec_is_file(specs->text[i])) {
            files[nfiles++] = (pod_cli_file){.path = specs->text[i]};
        }
    }
    for (int i = 0; i < nextra; i++) {
        files[nfiles++] = extra[i];
    }
    pod_status st = pod_cli_tables_load(cli, files, nfiles, err);
    for (int i = 0; i < nextra; i++) {
        extra[i] = files[nfiles - nextra + i];
        files[nfiles - nextra + i].data = NULL;
    }
    if (st == POD_OK) {
        st = init_all(targets, cli, files, err);
    }
    pod_cli_files_free(files, nfiles);
    free(files);
    if (st != POD_OK) {
        pod_cli_targets_fini(targets);
        pod_cli_files_free(extra, nextra);
    }
    return st;
}

void pod_cli_targets_fini(pod_cli_targets *targets)
{
    for (int i = 0; i < targets->count; i++) {
        pod_cli_target_fini(&targets->target[i]);
    }
    free(targets->target);
    *targets = (pod_cli_targets){0};
}

int pod_cli_target_faults(const pod_cli_target *target)
{
    return target->slice.nfaults + target->dcn.nfaults;
}

pod_status pod_cli_target_healthy(pod_cli_target *healthy, const pod_cli_target *target,
                                  pod_error *err)
{
    *healthy = *target;
    healthy->router = NULL;
    healthy->slice.nfaults = 0;
    healthy->dcn.nfaults = 0;
    return pod_router_new(&healthy->slice, &healthy->router, err);
}

pod_status pod_cli_bytes_check(const pod_cli_target *target, double link_bytes_per_s, int64_t bytes,
                               pod_error *err)
{
    const double hours_max = 20.0;
    const double most_s = hours_max * 3600.0;
    const pod_slice *slice = &target->slice;
    const double chips = (double)slice->nchips * slice->nslices;
    if ((double)bytes * chips > most_s * link_bytes_per_s) {
        return pod_fail(
            err, POD_E_RANGE,
            "%lld bytes on each of %.0f chips keep a link of %g GB/s busy for more than "
            "%g hours; use fewer bytes",
            (long long)bytes, chips, link_bytes_per_s / 1e9, hours_max);
    }
    const double dcn_bytes_per_s = slice->nslices > 1 ? pod_dcn_chip_bytes_per_s(&target->dcn) : 0;
    if (slice->nslices > 1 && (double)bytes > most_s * dcn_bytes_per_s) {
        return pod_fail(
            err, POD_E_RANGE,
            "%lld bytes a chip keep its %g GB/s of DCN busy for more than %g hours; use "
            "fewer bytes",
            (long long)bytes, dcn_bytes_per_s / 1e9, hours_max);
    }
    return POD_OK;
}

pod_machine pod_cli_machine(pod_cli *cli, const pod_cli_target *target, double link_bytes_per_s,
                            pod_time_ps launch_ps)
{
    return (pod_machine){
        .par = cli->par,
        .slice = &target->slice,
        .router = target->router,
        .dcn = target->slice.nslices > 1 ? &target->dcn : NULL,
        .link_bytes_per_s = link_bytes_per_s,
        .hop_latency_ps = target->chip.hop_latency_ps,
        .launch_ps = launch_ps,
        .progress = pod_cli_progress,
        .progress_context = cli,
    };
}
