/* SPDX-License-Identifier: Apache-2.0 */
/* What a step says of the network between slices, and of the hosts. */
#include "cli/step.h"

#include "base/units.h"
#include "experiment/step_dcn.h"

#include <stdio.h>

void pod_step_dcn_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                       const pod_chip_spec *chip, const pod_step_result *result)
{
    if (!pod_experiment_step_crosses(result)) {
        return;
    }
    char bytes[POD_FORMAT_MAX];
    char hosts[POD_FORMAT_MAX];
    const pod_time_unit unit = pod_time_unit_of(pod_time_to_s(result->time_ps));
    const pod_experiment_step_dcn need = pod_experiment_step_dcn_get(run_case, chip, result);
    pod_findings_say(
        findings, POD_FINDING_BELOW, "dcn",
        "DCN: %s a chip; to overlap fully it has to give each chip %.3f GB/s, and it gives "
        "%.3f (slack %.2f)%s",
        pod_format_bytes(need.chip_bytes, bytes, sizeof bytes), need.required_bytes_per_s / 1e9,
        need.available_bytes_per_s / 1e9, need.slack,
        need.slack < 1 ? ": the step is DCN-bound" : "");
    pod_findings_say(findings, POD_FINDING_BELOW, "busiest_nic",
                     "  busiest NIC: slice %d, %s, busy %.3f %s of %.3f %s (%.1f %%)",
                     result->links.dcn_busiest_slice,
                     pod_dcn_server_text(&run_case->setup->dcn, result->links.dcn_busiest_server,
                                         hosts, sizeof hosts),
                     pod_time_to_s(result->links.dcn_busy_ps) * unit.per_s, unit.name,
                     pod_time_to_s(result->time_ps) * unit.per_s, unit.name, 100 * need.busy_frac);
}

/* Of one chip, over PCIe. */
static double send_s(const pod_experiment_step_case *run_case, const pod_chip_spec *chip)
{
    const pod_work_layout *layout = &run_case->work.layout;
    const int32_t pieces = pod_work_layout_pieces(layout, &layout->rows);
    return (double)run_case->request.input.bytes / pieces / chip->pcie_bytes_per_s;
}

void pod_step_input_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                         const pod_chip_spec *chip, const pod_step_result *result)
{
    const double wait_s = pod_time_to_s(result->exposed_host_ps) / (double)result->cells;
    const double step_s = pod_time_to_s(result->time_ps);
    const double make_s = pod_time_to_s(run_case->request.input.host_ps);
    if (!pod_experiment_step_has_input(run_case->asked) || run_case->work.plan.host != 0
        || wait_s <= 0) {
        return;
    }
    const pod_time_unit unit = pod_time_unit_of(step_s);
    const double samples =
        (double)run_case->request.batch / (double)pod_experiment_step_hosts(run_case->setup);
    char made[128] = "";
    if (make_s > 0) {
        (void)snprintf(made, sizeof made, "a host makes %.0f samples/s, %.0f would keep up; ",
                       samples / make_s, samples / (step_s - wait_s));
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "input",
                     "Input: chips wait %.3f %s of %.3f %s (%.1f %%) for their batch; %sPCIe takes "
                     "%.3f %s of it",
                     wait_s * unit.per_s, unit.name, step_s * unit.per_s, unit.name,
                     100 * wait_s / step_s, made, send_s(run_case, chip) * unit.per_s, unit.name);
}

void pod_step_prefetch_note(pod_findings *findings, const pod_experiment_step_case *run_case)
{
    const pod_vmem_prefetched *p = &run_case->work.prefetched;
    char gain[POD_FORMAT_MAX];
    if (run_case->asked->vmem_prefetch) {
        pod_findings_say(findings, POD_FINDING_BELOW, "vmem_prefetch",
                         "VMEM: %d matmul%s their weights there before they begin; core ops take "
                         "%s less",
                         p->matmuls, p->matmuls == 1 ? " has" : "s have",
                         pod_format_time(pod_time_to_s(p->gain_ps), gain, sizeof gain));
    }
}

static void explain_input(const pod_cli *cli, const pod_experiment_step_case *run_case,
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
        chip->pcie_bytes_per_s / 1e9, send_s(run_case, chip) * 1e6, input->prefetch,
        input->prefetch == 0   ? "H + X + the rest"
        : input->prefetch == 1 ? "H + X"
                               : "max(H, X)");
}

void pod_step_dcn_explain(const pod_cli *cli, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result)
{
    if (pod_experiment_step_has_input(run_case->asked)) {
        explain_input(cli, run_case, chip);
    }
    if (!pod_experiment_step_crosses(result)) {
        return;
    }
    const pod_experiment_step_dcn need = pod_experiment_step_dcn_get(run_case, chip, result);
    pod_cli_explain(
        cli,
        "DCN: required = %lld bytes a chip / (step - exposed_dcn = %.9g us) = %.6g GB/s; "
        "available = least of network card, PCIe and uplink shares = %.6g GB/s; slack = "
        "available / required = %.6g; latency %.9g us",
        (long long)need.chip_bytes, need.rest_s * 1e6, need.required_bytes_per_s / 1e9,
        need.available_bytes_per_s / 1e9, need.slack, pod_time_to_us(chip->dcn_latency_ps));
}

void pod_step_numbers_explain(const pod_cli *cli, const pod_experiment_step_outcome *outcome)
{
    if (outcome->data != 0) {
        pod_cli_explain(cli,
                        "%lld elements of outputs, gradients and weights compared with one chip's; "
                        "in %lld of them sums may round differently by order",
                        (long long)outcome->numbers.checked, (long long)outcome->numbers.inexact);
    }
}
