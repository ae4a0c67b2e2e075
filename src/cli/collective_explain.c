/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas and numbers of a collective, for --explain. */
#include "base/text.h"
#include "cli/collective.h"

#include "base/units.h"

static void explain_prediction(const pod_cli *cli, const pod_experiment_collective_row *row)
{
    if (!row->predicted) {
        return;
    }
    pod_text terms = {0};
    for (int i = 0; i < row->prediction.nterms; i++) {
        pod_text_printf(&terms, "%s%s %.9g us", i > 0 ? " + " : "", row->prediction.term[i].what,
                        pod_time_to_us(row->prediction.term[i].time_ps));
    }
    pod_cli_explain(cli, "  predicted %.9g us = %s (simulated: %+.2f %%)",
                    pod_time_to_us(row->prediction.total_ps), terms.size > 0 ? terms.data : "0",
                    row->prediction.total_ps > 0
                        ? 100.0
                              * ((double)row->result.time_ps / (double)row->prediction.total_ps - 1)
                        : 0);
    pod_text_free(&terms);
}

void pod_collective_explain(const pod_cli *cli, const pod_experiment_collective_case *run_case,
                            const pod_experiment_collective_row *row)
{
    const pod_experiment_collective_request *request = run_case->request;
    const pod_chip_spec *chip = &run_case->setup->chip;
    const pod_slice *slice = &run_case->setup->slice;
    const int32_t n = run_case->group.size;
    const int32_t groups = slice->nchips * slice->nslices / n;
    pod_cli_explain(cli, "%s %s over %s (%d group%s of %d), %lld bytes of %s%s, %s:", slice->name,
                    pod_coll_op_name(request->op), run_case->axes, groups, pod_text_plural(groups),
                    n, (long long)row->bytes, pod_dtype_name(row->dtype),
                    request->dtype_given ? "" : " (default)", row->algorithm);
    pod_cli_explain(
        cli,
        "  rates %s: link %g GB/s one way%s, hop %g us, launch %g us on the device + %g on the "
        "host",
        pod_rates_name(chip->rates), run_case->link_bytes_per_s / 1e9,
        run_case->link_bytes_per_s < chip->link_oneway_bytes_per_s
            ? " (multi_axis_eff_frac included)"
            : "",
        pod_time_to_us(chip->hop_latency_ps), pod_time_to_us(chip->collective_launch_ps),
        pod_time_to_us(run_case->launch_ps - chip->collective_launch_ps));
    explain_prediction(cli, row);
    pod_cli_explain(cli,
                    "  bound %.9g us = largest of latency %g, link %g, bisection %g, hops %g us",
                    pod_time_to_us(row->bound.time_ps), pod_time_to_us(row->bound.latency_ps),
                    pod_time_to_us(row->bound.link_ps), pod_time_to_us(row->bound.bisection_ps),
                    pod_time_to_us(row->bound.hops_ps));
    pod_cli_explain(cli,
                    "  time %.9g us, until the last chip is done; bound_frac = bound / time = %.6g",
                    pod_time_to_us(row->result.time_ps), row->bound_frac);
    pod_cli_explain(cli, "  algbw = bytes / time = %.6g GB/s; busbw = algbw x %.6g = %.6g GB/s",
                    row->algbw_GBps, row->bus_factor, row->busbw_GBps);
    pod_cli_explain(cli,
                    "  simulated %lld events (a message at a hop), %lld bytes over all links, "
                    "%lld on the busiest; %lld elements compared",
                    (long long)row->result.links.hops, (long long)row->result.links.total_bytes,
                    (long long)row->result.links.busiest_bytes, (long long)row->result.checked);
    if (row->folded) {
        pod_cli_explain(cli, "  all chips do the same: %s was simulated for all %d",
                        slice->nslices > 1 ? "one host" : "one", slice->nchips * slice->nslices);
    }
    if (row->result.links.dcn_bytes > 0) {
        char hosts[POD_FORMAT_MAX];
        pod_cli_explain(cli,
                        "  DCN: %lld bytes between slices; the busiest NICs (slice %d, %s) sent "
                        "%lld in %.9g us",
                        (long long)row->result.links.dcn_bytes, row->result.links.dcn_busiest_slice,
                        pod_dcn_server_text(&run_case->setup->dcn,
                                            row->result.links.dcn_busiest_server, hosts,
                                            sizeof hosts),
                        (long long)row->result.links.dcn_max_bytes,
                        pod_time_to_us(row->result.links.dcn_busy_ps));
    }
}
