/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include "ici/group.h"

#include <stdlib.h>

static pod_experiment_texts texts_of(const pod_cli_list *list)
{
    return (pod_experiment_texts){.count = list->count, .text = list->text};
}

static pod_experiment_setup_request request_of(const pod_cli_common *common, const char *spec,
                                               const pod_table *file)
{
    return (pod_experiment_setup_request){
        .slice = spec,
        .file = file,
        .wrap = common->wrap,
        .rates = common->rates,
        .settings = texts_of(&common->settings),
        .fail_links = texts_of(&common->fail_links),
        .slow_links = texts_of(&common->slow_links),
        .slow_chips = texts_of(&common->slow_chips),
        .slow_hosts = texts_of(&common->slow_hosts),
        .slow_nics = texts_of(&common->slow_nics),
        .failed_dcn = texts_of(&common->failed_dcn),
        .hosts_work = common->hosts_work,
    };
}

static void warn_unlisted(const pod_cli *cli, const pod_experiment_setup *setup)
{
    char wrap[8];
    if (setup->listed) {
        return;
    }
    if (cli->common.wrap == NULL) {
        pod_cli_warn(cli, "%s is not in slices.csv; wrap by rule: %s", setup->slice.name,
                     pod_axes_name(pod_slice_closed_axes(&setup->slice), wrap));
    } else {
        pod_cli_warn(cli, "%s is not in slices.csv", setup->slice.name);
    }
}

/* A fault of a host whose server holds other hosts slows their chips over DCN, too. */
static void say_shared_nics(const pod_cli *cli, const pod_experiment_setup *setup)
{
    static const char *const whose[] = {[POD_DCN_HOST_SLOW] = "they are slower, too",
                                        [POD_DCN_NIC_SLOW] = "they are slower, too",
                                        [POD_DCN_PATH_LOST] = "they lose their path, too"};
    const pod_dcn *dcn = &setup->dcn;
    for (int i = 0; i < dcn->nfaults && dcn->options.nslices > 1; i++) {
        const pod_dcn_fault *fault = &dcn->faults[i];
        char first[40];
        char last[40];
        char hosts[POD_FORMAT_MAX];
        const int32_t chip = pod_dcn_server_first(dcn, fault->server);
        const int32_t end = pod_dcn_server_last(dcn, fault->server);
        if (pod_dcn_host(dcn, chip) != pod_dcn_host(dcn, end)) {
            pod_cli_say(
                cli, "host %d of slice %d shares NICs: chips %s to %s (%s) are one server; %s",
                fault->host, fault->slice,
                pod_slice_chip_text(&setup->slice, chip, first, sizeof first),
                pod_slice_chip_text(&setup->slice, end, last, sizeof last),
                pod_dcn_server_text(dcn, fault->server, hosts, sizeof hosts), whose[fault->kind]);
        }
    }
}

/* From so many ranks more than cores on, it is said that they gain nothing. */
enum { RANKS_BEYOND_CORES = 3 };

static void warn_ranks(const pod_cli *cli)
{
    const int beyond = pod_par_ranks_beyond_cores(cli->par);
    if (beyond >= RANKS_BEYOND_CORES) {
        pod_cli_warn(cli,
                     "%d ranks are %d more than cores: they take turns, and each turn costs time; "
                     "one rank a core "
                     "is fastest, with the same output",
                     pod_par_size(cli->par), beyond);
    }
}

/* @param file  the slice file that spec names, or NULL */
static pod_status make_setup(pod_experiment_setup *setup, const pod_cli *cli, const char *spec,
                             const pod_cli_file *file, pod_error *err)
{
    pod_table *table = NULL;
    pod_status st =
        file != NULL ? pod_table_parse(file->path, file->data, file->size, &table, err) : POD_OK;
    if (st == POD_OK) {
        const pod_experiment_setup_request request = request_of(&cli->common, spec, table);
        st = pod_experiment_setup_init(setup, &request, cli->tables, err);
    }
    pod_table_free(table);
    POD_THEN(st, pod_experiment_ranks_check(setup, cli->par, err));
    if (st == POD_OK) {
        warn_unlisted(cli, setup);
        say_shared_nics(cli, setup);
    }
    return st;
}

/* `files` holds the slice files in the order of the specs that name one. */
static pod_status init_all(pod_cli_targets *targets, pod_cli *cli, const pod_cli_file *files,
                           pod_error *err)
{
    const pod_cli_list *specs = &cli->common.slices;
    targets->setup = calloc((size_t)specs->count, sizeof *targets->setup);
    if (targets->setup == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the slices");
    }
    targets->count = specs->count;
    for (int i = 0; i < specs->count; i++) {
        const bool from_file = pod_slice_spec_is_file(specs->text[i]);
        POD_TRY(
            make_setup(&targets->setup[i], cli, specs->text[i], from_file ? files++ : NULL, err));
    }
    return POD_OK;
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
    warn_ranks(cli);
    POD_THEN(st, init_all(targets, cli, files, err));
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
        pod_experiment_setup_fini(&targets->setup[i]);
    }
    free(targets->setup);
    *targets = (pod_cli_targets){0};
}
