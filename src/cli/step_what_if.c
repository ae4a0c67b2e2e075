/* SPDX-License-Identifier: Apache-2.0 */
/* A step on a chip of which one resource is faster. */
#include "cli/step.h"

#include "base/names.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEY_ICI, KEY_DCN, KEY_HBM, KEY_MXU, KEY_VPU, KEY_HOP, KEY_LAUNCH };

const char *const pod_what_if_keys[POD_WHAT_IF_KEYS] = {"ici", "dcn", "hbm",   "mxu",
                                                        "vpu", "hop", "launch"};

/* Of `--what-if all`. */
static const double PROBE_FACTOR = 1.1;

pod_status pod_what_if_parse(const char *text, pod_what_if *what, pod_error *err)
{
    *what = (pod_what_if){.factor = PROBE_FACTOR};
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
    pod_status st =
        pod_cli_choice_parse(key, "--what-if", pod_what_if_keys, POD_WHAT_IF_KEYS, &what->key, err);
    if (st == POD_OK) {
        st = pod_parse_double(equals + 1, "--what-if", 1e-3, 1e6, &what->factor, err);
    }
    return st;
}

static pod_time_ps shorter(pod_time_ps time_ps, double factor)
{
    return (pod_time_ps)((double)time_ps / factor + 0.5);
}

pod_chip_spec pod_what_if_chip(const pod_chip_spec *chip, int key, double factor)
{
    pod_chip_spec faster = *chip;
    switch (key) {
    case KEY_ICI:
        faster.link_oneway_bytes_per_s *= factor;
        faster.link_nominal_bytes_per_s *= factor;
        faster.core_link_bytes_per_s *= factor;
        break;
    case KEY_DCN:
        faster.dcn_bytes_per_s *= factor;
        break;
    case KEY_HBM:
        faster.hbm_bytes_per_s *= factor;
        break;
    case KEY_MXU:
        faster.clock_hz *= factor; /* only the array's fill looks at it */
        for (int i = 0; i < POD_DTYPE_COUNT; i++) {
            faster.peak_ops_per_s[i] *= factor;
        }
        break;
    case KEY_VPU:
        faster.vpu_ops_per_s *= factor;
        break;
    case KEY_HOP:
        faster.hop_latency_ps = shorter(chip->hop_latency_ps, factor);
        faster.hop_latency_ps = faster.hop_latency_ps > 0 ? faster.hop_latency_ps : 1;
        break;
    default:
        faster.collective_launch_ps = shorter(chip->collective_launch_ps, factor);
        faster.kernel_start_ps = shorter(chip->kernel_start_ps, factor);
        break;
    }
    return faster;
}

pod_status pod_what_if_table(pod_cli *cli, const pod_step_case *run_case, pod_time_ps base_ps,
                             pod_error *err)
{
    static const pod_emit_column columns[] = {
        {.name = "key"   },
        {            .name = "factor",   .decimals = 2},
        {            .name = "step_time_s", .title = "step", .unit = "s", .decimals = 6},
        { .name = "elasticity",                .decimals = 3},
    };
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(cli->common.format, "step", columns,
                                 sizeof columns / sizeof columns[0], &emit, err);
    st = pod_par_agree(cli->par, st, err);
    for (int key = 0; st == POD_OK && key < POD_WHAT_IF_KEYS; key++) {
        const pod_chip_spec chip = pod_what_if_chip(&run_case->target->chip, key, PROBE_FACTOR);
        pod_step_result result = {0};
        st = pod_step_case_run(run_case, cli, cli->par, &chip, &result, err);
        if (st == POD_OK) {
            const double ratio = (double)base_ps / (double)result.time_ps;
            pod_emit_text(emit, pod_what_if_keys[key]);
            pod_emit_double(emit, PROBE_FACTOR);
            pod_emit_double(emit, pod_time_to_s(result.time_ps));
            pod_emit_double(emit, base_ps > 0 ? log(ratio) / log(PROBE_FACTOR) : 0);
        }
        pod_step_result_fini(&result);
    }
    if (st == POD_OK) {
        pod_emit_heading(emit, "step as it is: %.9g s; elasticity 1: time falls in proportion",
                         pod_time_to_s(base_ps));
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}
