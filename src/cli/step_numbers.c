/* SPDX-License-Identifier: Apache-2.0 */
/* Steps with real numbers, against one chip. */
#include "cli/step.h"

#include "base/units.h"

#include <string.h>

/* All chips together may hold this much before data is left out by default. */
static const int64_t DATA_DEFAULT_MAX_BYTES = INT64_C(1) << 30;

bool pod_step_wants_data(const pod_cli *cli, int64_t bytes)
{
    const char *asked = cli->common.data;
    if (asked != NULL) {
        return strcmp(asked, "real") == 0;
    }
    if (bytes < 0) {
        return false;
    }
    const bool real = bytes <= DATA_DEFAULT_MAX_BYTES;
    char size[POD_FORMAT_MAX];
    pod_cli_say(cli, "--data %s, as all chips together need %s (limit 1 GiB)",
                real ? "real" : "none",
                bytes == INT64_MAX ? "too much" : pod_format_bytes(bytes, size, sizeof size));
    return real;
}

pod_status pod_step_reference_make(pod_cli *cli, const pod_step_case *run_case,
                                   pod_reference **reference, pod_error *err)
{
    pod_status st = pod_reference_new(&run_case->request, cli->common.seed, reference, err);
    const bool first = pod_par_rank(cli->par) == 0;
    if (st == POD_OK && first) {
        st = pod_reference_compute(*reference, err);
    }
    st = pod_par_agree(cli->par, st, err);
    if (st != POD_OK || pod_par_size(cli->par) == 1) {
        return st;
    }
    char *blob = NULL;
    size_t size = 0;
    if (first) {
        pod_reference_blob(*reference, &blob, &size);
    }
    st = pod_par_bcast_blob(cli->par, &blob, &size, err);
    if (st == POD_OK && !first) {
        st = pod_reference_take(*reference, blob, size, err);
    }
    return pod_par_agree(cli->par, st, err);
}

pod_status pod_step_case_run_data(const pod_step_case *run_case, pod_cli *cli,
                                  const pod_chip_spec *chip, const pod_reference *reference,
                                  pod_step_result *result, pod_step_numbers *numbers,
                                  pod_error *err)
{
    pod_step_machine own;
    pod_step_machine_make(&own, run_case, cli, cli->par, chip);
    pod_step_check check = {.reference = reference, .work = &run_case->work};
    const pod_step_args args = {
        .machine = &own.machine,
        .chip = chip,
        .programs = &run_case->work.programs,
        .data = true,
        .load = pod_step_check_load,
        .store = pod_step_check_store,
        .context = &check,
    };
    const pod_status st = pod_step_run(&args, result, err);
    pod_cli_progress_end(cli);
    if (st == POD_OK) {
        int64_t sums[2] = {check.wrong, check.checked};
        pod_par_sum_i64(cli->par, sums, 2);
        pod_par_max_i64(cli->par, &check.error_bits, 1);
        *numbers = (pod_step_numbers){
            .checked = true, .max_rel_err = pod_step_check_error(&check), .wrong = sums[0]};
        pod_cli_explain(cli,
                        "%lld elements of outputs, gradients and weights compared with one chip's; "
                        "in %lld of them sums may round differently by order",
                        (long long)sums[1], (long long)pod_reference_inexact(reference));
    }
    return st;
}
