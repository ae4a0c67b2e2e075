/* SPDX-License-Identifier: Apache-2.0 */
/* What a step says of the network between slices, and of the hosts. */
#include "cli/step.h"

#include "base/units.h"

/* What the chips send to other slices, against what they could. */
typedef struct dcn_need {
    int64_t chip_bytes; /* of a step, mean over chips */
    double rest_s;      /* the step without what DCN exposes: what it may hide behind */
    double required_bytes_per_s;
    double available_bytes_per_s; /* that every chip gets when all send at once */
    double slack;                 /* available / required */
    double busy_frac;             /* of the busiest network card, of the step */
} dcn_need;

static dcn_need need_get(const pod_step_case *run_case, const pod_chip_spec *chip,
                         const pod_step_result *result)
{
    pod_dcn dcn = run_case->target->dcn;
    pod_cli_dcn_rates(&dcn.options, chip);
    const double step_s = pod_time_to_s(result->time_ps);
    dcn_need need = {
        .chip_bytes = result->links.dcn_bytes / result->cells,
        .rest_s = step_s - pod_time_to_s(result->exposed_dcn_ps) / (double)result->cells,
        .available_bytes_per_s = pod_dcn_chip_bytes_per_s(&dcn),
        .busy_frac = pod_time_to_s(result->links.dcn_busy_ps) / step_s,
    };
    need.required_bytes_per_s = (double)need.chip_bytes / need.rest_s;
    need.slack = need.available_bytes_per_s / need.required_bytes_per_s;
    return need;
}

static bool crosses(const pod_step_result *result)
{
    return result->links.dcn_bytes > 0 && result->exposed_dcn_ps < result->cells * result->time_ps;
}

void pod_step_dcn_note(pod_emit *emit, const pod_step_case *run_case, const pod_chip_spec *chip,
                       const pod_step_result *result)
{
    if (!crosses(result)) {
        return;
    }
    char bytes[POD_FORMAT_MAX];
    const dcn_need need = need_get(run_case, chip, result);
    pod_emit_note(emit,
                  "DCN: %s a chip; behind the rest of the step that needs %.3f GB/s a chip of %.3f "
                  "available: slack %.2f%s",
                  pod_format_bytes(need.chip_bytes, bytes, sizeof bytes),
                  need.required_bytes_per_s / 1e9, need.available_bytes_per_s / 1e9, need.slack,
                  need.slack < 1 ? ", too much to hide" : "");
    pod_emit_note(emit,
                  "  busiest network card: slice %d, host %d, busy %.3f us of %.3f us (%.1f %%)",
                  result->links.dcn_busiest_slice, result->links.dcn_busiest_host,
                  pod_time_to_us(result->links.dcn_busy_ps), pod_time_to_us(result->time_ps),
                  100 * need.busy_frac);
}

static void explain_input(const pod_cli *cli, const pod_step_case *run_case,
                          const pod_chip_spec *chip)
{
    const pod_step_input *input = &run_case->request.input;
    const pod_work_layout *layout = &run_case->work.layout;
    const int32_t pieces = pod_work_layout_pieces(layout, &layout->rows);
    pod_cli_explain(
        cli,
        "input: H = %.9g us on every host, X = %lld bytes / %d chips with rows of their "
        "own / %.6g GB/s of PCIe = %.9g us; prefetch %d: step >= %s",
        pod_time_to_us(input->host_ps), (long long)input->bytes, pieces,
        chip->pcie_bytes_per_s / 1e9, (double)input->bytes / pieces / chip->pcie_bytes_per_s * 1e6,
        input->prefetch,
        input->prefetch == 0   ? "H + X + the rest"
        : input->prefetch == 1 ? "H + X"
                               : "max(H, X)");
}

void pod_step_dcn_explain(const pod_cli *cli, const pod_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result)
{
    if (pod_step_has_input(run_case->order)) {
        explain_input(cli, run_case, chip);
    }
    if (!crosses(result)) {
        return;
    }
    const dcn_need need = need_get(run_case, chip, result);
    pod_cli_explain(
        cli,
        "DCN: required = %lld bytes a chip / (step - exposed_dcn = %.9g us) = %.6g GB/s; "
        "available = least of network card, PCIe and uplink shares = %.6g GB/s; slack = "
        "available / required = %.6g; latency %.9g us",
        (long long)need.chip_bytes, need.rest_s * 1e6, need.required_bytes_per_s / 1e9,
        need.available_bytes_per_s / 1e9, need.slack, pod_time_to_us(chip->dcn_latency_ps));
}
