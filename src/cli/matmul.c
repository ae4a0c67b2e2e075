/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of matmuls of `podsim matmul` share. */
#include "cli/matmul.h"

#include "cli/tables.h"

#include "base/units.h"

#include <stdio.h>

pod_status pod_matmul_fit_check(const pod_chip_spec *chip, const pod_matmul_matrix *arrays,
                                int narrays, pod_error *err)
{
    pod_hbm_ledger ledger;
    pod_hbm_ledger_init(&ledger, chip);
    for (int i = 0; i < narrays; i++) {
        int64_t bytes = 0;
        if (!pod_mul_i64(arrays[i].rows, arrays[i].columns, &bytes)
            || !pod_mul_i64(bytes, arrays[i].size, &bytes)
            || !pod_mul_i64(bytes, arrays[i].count, &bytes)) {
            return pod_fail(err, POD_E_RANGE,
                            "a matrix of %lld x %lld exceeds 2^63 bytes; give "
                            "smaller sizes",
                            (long long)arrays[i].rows, (long long)arrays[i].columns);
        }
        POD_TRY(pod_hbm_ledger_add(&ledger, arrays[i].kind, bytes, err));
    }
    return pod_hbm_ledger_check(&ledger, "this matmul", err);
}

void pod_matmul_block_print(const pod_matmul_block *block, char text[80])
{
    text[0] = '\0';
    if (block->m > 0) {
        (void)snprintf(text, 80, "%lldx%lldx%lld", (long long)block->m, (long long)block->k,
                       (long long)block->n);
    }
}

void pod_matmul_kernel_explain(const pod_cli *cli, const pod_chip_spec *chip, double peak_ops_per_s,
                               int cores, pod_dtype dtype)
{
    const int devices = cores < chip->devices ? cores : chip->devices;
    pod_cli_explain(cli,
                    "rates %s: peak %g TFLOP/s (%s) x %g, vector unit %g Top/s x %g, HBM %g GB/s "
                    "x %g; block step %g us, kernel start %g us",
                    pod_rates_name(chip->rates), peak_ops_per_s / 1e12, pod_dtype_name(dtype),
                    chip->mxu_eff_frac, chip->vpu_ops_per_s * cores / chip->cores / 1e12,
                    chip->vpu_eff_frac, chip->hbm_bytes_per_s * devices / chip->devices / 1e9,
                    chip->hbm_eff_frac, pod_time_to_us(chip->block_step_ps),
                    pod_time_to_us(chip->kernel_start_ps));
}

void pod_matmul_explain_compiled(const pod_cli *cli, const pod_chip_spec *chip,
                                 double peak_ops_per_s, pod_dtype dtype, bool alone,
                                 const char *sum)
{
    static const char *const figures[] = {"mxu_eff_frac", "hbm_eff_frac", "kernel_start_us",
                                          "block_step_us", "matmul_launch_us"};
    const int named = (int)(sizeof figures / sizeof figures[0]);
    pod_cli_explain(cli, "rates %s: peak %g TFLOP/s (%s), HBM %g GB/s x %g",
                    pod_rates_name(chip->rates), peak_ops_per_s / 1e12, pod_dtype_name(dtype),
                    chip->hbm_bytes_per_s / 1e9, chip->hbm_eff_frac);
    pod_cli_explain(cli, "%s", sum);
    pod_cli_explain_origins(cli, chip, figures,
                            chip->matmul_launch_ps > 0 && alone ? named : named - 1);
}
