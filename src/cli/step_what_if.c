/* SPDX-License-Identifier: Apache-2.0 */
/* `--what-if`: its text, and its table. */
#include "cli/plot.h"
#include "cli/step.h"

#include "base/names.h"
#include "base/units.h"
#include "experiment/step_what_if.h"

#include <stdio.h>
#include <string.h>

pod_status pod_what_if_parse(const char *text, pod_what_if *what, pod_error *err)
{
    *what = (pod_what_if){.factor = 1};
    if (strcmp(text, "all") == 0) {
        what->all = true;
        return POD_OK;
    }
    const char *equals = strchr(text, '=');
    char key[16];
    if (equals == NULL || equals - text >= (ptrdiff_t)sizeof key) {
        return pod_fail(err, POD_E_USAGE,
                        "--what-if: '%s' is not KEY=FACTOR or all; give it as in --what-if ici=2",
                        text);
    }
    (void)snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    POD_TRY(pod_cli_choice_parse(key, "--what-if", pod_experiment_what_if_key, POD_WHAT_IF_KEYS,
                                 &what->key, err));
    return pod_parse_double(equals + 1, "--what-if", 1e-3, 1e6, &what->factor, err);
}

/* Bars of all resources. */
typedef struct elasticities {
    const pod_experiment_step_case *run_case;
    const pod_experiment_what_if *probe;
} elasticities;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const elasticities *all = figures;
    double value[POD_WHAT_IF_KEYS];
    char title[448];
    for (int key = 0; key < POD_WHAT_IF_KEYS; key++) {
        value[key] = all->probe[key].elasticity;
    }
    (void)snprintf(title, sizeof title, "%.160s on %s: what would make the step faster",
                   all->run_case->asked->model.name, all->run_case->setup->slice.name);
    return pod_plot_elasticities(plot, title, pod_experiment_what_if_key, value, POD_WHAT_IF_KEYS,
                                 err);
}

typedef struct what_if_row {
    const char *key;
    pod_experiment_what_if probe;
} what_if_row;

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "key", POD_FIELD(what_if_row, key)},
    {.name = "factor", .decimals = 2, POD_FIELD(what_if_row, probe.factor)},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6,
     POD_TIME_FIELD(what_if_row, probe.time_ps, S)},
    {.name = "elasticity", .decimals = 3, POD_FIELD(what_if_row, probe.elasticity)},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

pod_status pod_what_if_print(pod_cli *cli, const char *command, pod_time_ps base_ps,
                             const pod_experiment_what_if *probe, pod_error *err)
{
    pod_emit *emit = NULL;
    pod_findings findings = {0};
    pod_status st = pod_emit_new(cli->common.format, command, columns, NCOLUMNS, &emit, err);
    st = pod_par_agree(cli->par, st, err);
    for (int key = 0; st == POD_OK && key < POD_WHAT_IF_KEYS; key++) {
        const what_if_row row = {pod_experiment_what_if_key[key], probe[key]};
        pod_emit_fields(emit, &row, NCOLUMNS);
    }
    char base[POD_FORMAT_MAX];
    pod_findings_say(&findings, POD_FINDING_ABOVE, "settings",
                     "step as it is: %s; elasticity 1: time falls in proportion",
                     pod_format_time(pod_time_to_s(base_ps), base, sizeof base));
    POD_THEN(st, pod_cli_report(cli, emit, &findings, err));
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}

pod_status pod_what_if_table(pod_cli *cli, const pod_experiment_step_case *run_case,
                             pod_time_ps base_ps, pod_error *err)
{
    pod_experiment_what_if probe[POD_WHAT_IF_KEYS];
    POD_TRY(pod_experiment_what_if_all(&cli->experiment, run_case, base_ps, probe, err));
    POD_TRY(pod_what_if_print(cli, "step", base_ps, probe, err));
    return pod_cli_plot_write(cli, add_plot, &(elasticities){.run_case = run_case, .probe = probe},
                              err);
}
