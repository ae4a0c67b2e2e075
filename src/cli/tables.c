/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tables.h"

#include "base/file.h"
#include "base/text.h"
#include "chip/origin.h"
#include "experiment/accuracy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 128, OWN_TABLES = POD_EXPERIMENT_TABLES };

void pod_cli_files_free(pod_cli_file *files, int nfiles)
{
    for (int i = 0; i < nfiles; i++) {
        free(files[i].data);
        files[i].data = NULL;
        files[i].size = 0;
    }
}

pod_status pod_cli_read_check(const pod_cli *cli, const char *name, pod_error *err)
{
    for (int i = 0; i < cli->nwrites; i++) {
        if (pod_file_same(cli->writes[i].path, name)) {
            return pod_fail(err, POD_E_USAGE,
                            "--%s names %s, which is read here; give another file",
                            cli->writes[i].option, cli->writes[i].path);
        }
    }
    return POD_OK;
}

/* A name in one of podsim's folders that isn't there from the working folder. */
static bool is_own(const char *name)
{
    static const char *const folders[] = {"topologies/", "models/", "validation/"};
    bool own = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        own = own || strncmp(name, folders[i], strlen(folders[i])) == 0;
    }
    return own && access(name, F_OK) != 0;
}

bool pod_cli_there(const char *name)
{
    char path[PATH_MAX];
    pod_error none;
    return access(name, R_OK) == 0
           || (is_own(name) && pod_data_path(name, path, sizeof path, &none) == POD_OK);
}

static pod_status read_one(const pod_cli *cli, pod_cli_file *file, pod_error *err)
{
    char path[PATH_MAX];
    const char *name = file->path;
    if (file->own || (is_own(name) && pod_cli_there(name))) {
        const pod_status st = pod_data_path(file->path, path, sizeof path, err);
        if (st != POD_OK) {
            return st;
        }
        name = path;
    }
    POD_TRY(pod_cli_read_check(cli, name, err));
    const pod_status st = file->most > 0
                              ? pod_file_read_most(name, file->most, &file->data, &file->size, err)
                              : pod_file_read(name, &file->data, &file->size, err);
    if (st == POD_OK) {
        pod_cli_detail(cli, "read %s, %zu bytes", name, file->size);
    }
    return st;
}

/* All contents in one piece: for each file its size, then its bytes. */
static pod_status pack(const pod_cli_file *files, int nfiles, pod_text *packed, pod_error *err)
{
    for (int i = 0; i < nfiles; i++) {
        pod_text_append(packed, (const char *)&files[i].size, sizeof files[i].size);
        pod_text_append(packed, files[i].data, files[i].size);
    }
    return packed->out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the files") : POD_OK;
}

static pod_status unpack(const char *packed, pod_cli_file *files, int nfiles, pod_error *err)
{
    for (int i = 0; i < nfiles; i++) {
        memcpy(&files[i].size, packed, sizeof files[i].size);
        packed += sizeof files[i].size;
        files[i].data = malloc(files[i].size + 1);
        if (files[i].data == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for %s", files[i].path);
        }
        memcpy(files[i].data, packed, files[i].size);
        files[i].data[files[i].size] = '\0';
        packed += files[i].size;
    }
    return POD_OK;
}

pod_status pod_cli_read(pod_cli *cli, pod_cli_file *files, int nfiles, pod_error *err)
{
    pod_text packed = {0};
    pod_status st = POD_OK;
    if (pod_par_rank(cli->par) == 0) {
        for (int i = 0; i < nfiles && st == POD_OK; i++) {
            st = read_one(cli, &files[i], err);
        }
        if (st == POD_OK && pod_par_size(cli->par) > 1) {
            st = pack(files, nfiles, &packed, err);
        }
    }
    if (pod_par_size(cli->par) > 1) {
        st = pod_par_agree(cli->par, st, err);
        if (st == POD_OK) {
            st = pod_par_bcast_blob(cli->par, &packed.data, &packed.size, err);
        }
        if (st == POD_OK && pod_par_rank(cli->par) != 0) {
            st = unpack(packed.data, files, nfiles, err);
        }
    }
    if (st != POD_OK) {
        pod_cli_files_free(files, nfiles);
    }
    pod_text_free(&packed);
    return st;
}

/* Files that the options name can be written, and each is named once. */
static pod_status outputs_check(const pod_cli *cli, pod_error *err)
{
    pod_status st = POD_OK;
    for (int i = 0; i < cli->nwrites && st == POD_OK; i++) {
        const pod_cli_write *write = &cli->writes[i];
        for (int j = 0; j < i; j++) {
            if (pod_file_same(cli->writes[j].path, write->path)) {
                return pod_fail(err, POD_E_USAGE,
                                "--%s and --%s both name %s; give each its own file",
                                cli->writes[j].option, write->option, write->path);
            }
        }
        st = pod_file_write_check(write->path, err);
    }
    return st;
}

pod_status pod_cli_tables_load(pod_cli *cli, pod_cli_file *files, int nfiles, pod_error *err)
{
    if (cli->tables->catalog != NULL) {
        return nfiles > 0 ? pod_cli_read(cli, files, nfiles, err) : POD_OK;
    }
    if (nfiles + OWN_TABLES > FILES_MAX) {
        return pod_fail(err, POD_E_USAGE, "%d files; at most %d can be read", nfiles,
                        FILES_MAX - OWN_TABLES);
    }
    pod_cli_file all[FILES_MAX];
    for (int i = 0; i < OWN_TABLES; i++) {
        all[i] = (pod_cli_file){.path = pod_experiment_table_path[i], .own = true};
    }
    for (int i = 0; i < nfiles; i++) {
        all[i + OWN_TABLES] = files[i];
    }
    pod_status st = POD_OK;
    if (pod_par_rank(cli->par) == 0) {
        st = outputs_check(cli, err);
    }
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        st = pod_cli_read(cli, all, nfiles + OWN_TABLES, err);
    }
    if (st == POD_OK) {
        pod_experiment_file own[OWN_TABLES];
        for (int i = 0; i < OWN_TABLES; i++) {
            own[i] = (pod_experiment_file){.data = all[i].data, .size = all[i].size};
        }
        st = pod_experiment_tables_parse(cli->tables, own, err);
    }
    pod_cli_files_free(all, OWN_TABLES);
    if (st != POD_OK) {
        pod_cli_files_free(all + OWN_TABLES, nfiles);
    }
    for (int i = 0; i < nfiles; i++) {
        files[i] = all[i + OWN_TABLES];
    }
    return st;
}

pod_status pod_cli_chip_load(pod_cli *cli, const char *name, pod_chip_spec *chip, pod_error *err)
{
    const pod_cli_common *common = &cli->common;
    const pod_status st = pod_cli_tables_load(cli, NULL, 0, err);
    return st == POD_OK ? pod_chip_load(cli->tables->chips, name, common->rates,
                                        common->settings.text, common->settings.count, chip, err)
                        : st;
}

static bool is_set(const pod_cli_list *settings, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < settings->count; i++) {
        if (strncmp(settings->text[i], name, length) == 0 && settings->text[i][length] == '=') {
            return true;
        }
    }
    return false;
}

void pod_cli_explain_origins(const pod_cli *cli, const pod_chip_spec *chip,
                             const char *const *names, int nnames)
{
    const pod_table *chips = cli->tables->chips;
    const int row = pod_chips_find(chips, chip->name, NULL);
    for (int i = 0; i < nnames && row >= 0 && chip->rates == POD_RATES_MEASURED; i++) {
        char line[256];
        const char *value = pod_table_text(chips, row, pod_table_column(chips, names[i]));
        (void)pod_origin_text(cli->tables->figures, names[i], chip->name, value, line, sizeof line);
        if (line[0] != '\0' && !is_set(&cli->common.settings, names[i])) {
            pod_cli_explain(cli, "%s", line);
        }
    }
}

void pod_cli_heading_accuracy(const pod_cli *cli, const pod_chip_spec *chip, const char *class,
                              pod_findings *findings)
{
    const pod_table *errors = cli->tables->errors;
    const pod_accuracy own = pod_accuracy_of(errors, class, chip->name);
    const pod_accuracy all = own.rows > 0 ? own : pod_accuracy_of(errors, class, NULL);
    if (chip->rates != POD_RATES_MEASURED) {
        return;
    }
    if (all.rows == 0) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "accuracy",
                         "accuracy: no published row of class %s to compare with", class);
        return;
    }
    pod_findings_say(
        findings, POD_FINDING_ABOVE, "accuracy",
        "accuracy: %d published row%s of class %s%s%s, median error %.1f %%, worst %.1f %%",
        all.rows, pod_text_plural(all.rows), class, own.rows > 0 ? " on " : ", none of ",
        chip->name, 100 * all.median_frac, 100 * all.worst_frac);
}
