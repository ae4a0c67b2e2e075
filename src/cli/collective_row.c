/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collective.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

/* All chips together may hold this much before data is left out by default. */
static const int64_t DATA_DEFAULT_MAX_BYTES = INT64_C(1) << 30;

/* Where all chips do the same and send more messages than this, one is simulated for all. */
static const int64_t FOLD_MESSAGES_MIN = INT64_C(1) << 17;

static pod_coll_request make_request(const pod_collective_case *run_case, int64_t bytes,
                                     pod_dtype dtype)
{
    const pod_cli_target *target = run_case->target;
    return (pod_coll_request){
        .op = run_case->request->op,
        .slice = &target->slice,
        .group = &run_case->group,
        .dcn = target->slice.nslices > 1 ? &target->dcn : NULL,
        .elements = bytes / pod_dtype_size(dtype),
        .element_bytes = pod_dtype_size(dtype),
        .link_rate = pod_rate_make(run_case->link_bytes_per_s),
        .hop_latency_ps = target->chip.hop_latency_ps,
        .launch_ps = target->chip.collective_launch_ps,
        .cut_min_bytes = target->chip.cut_min_bytes,
        .root = run_case->root,
        .source_of = run_case->source_of,
        .file = run_case->request->program,
    };
}

bool pod_collective_fits(const pod_collective_case *run_case, int64_t bytes, pod_dtype dtype,
                         const pod_coll_algorithm *algorithm)
{
    const pod_coll_request request = make_request(run_case, bytes, dtype);
    return pod_coll_algorithm_fits(algorithm, &request);
}

bool pod_collective_is_trivial(const pod_collective_case *run_case, int64_t bytes)
{
    return bytes == 0 || run_case->group.size == 1;
}

/* Local: which algorithm, what it should cost, and the bound. */
static pod_status decide(pod_collective_row *row, const pod_collective_case *run_case,
                         const pod_coll_algorithm **algorithm, const pod_coll_request *request,
                         pod_error *err)
{
    pod_status st = POD_OK;
    if (*algorithm == NULL) {
        st = pod_coll_choose(request, algorithm, &row->prediction, err);
        row->predicted = st == POD_OK;
    } else {
        st = pod_coll_algorithm_applies(*algorithm, request, err);
        if (st == POD_OK && (*algorithm)->predict != NULL) {
            row->predicted = (*algorithm)->predict(request, &row->prediction, NULL) == POD_OK;
        }
    }
    return st == POD_OK ? pod_coll_bound_get(request, run_case->target->router, &row->bound, err)
                        : st;
}

static int algorithm_number(const pod_coll_algorithm *algorithm)
{
    int number = 0;
    while (pod_coll_algorithm_at(number) != algorithm) {
        number++;
        POD_ASSERT(number < pod_coll_algorithm_count());
    }
    return number;
}

/* Predictions take longer than all else on a small slice, so rank 0 decides; the others hear the
 * algorithm and the bound, and build the schedule. Collective. */
static pod_status prepare(pod_collective_row *row, pod_par *par,
                          const pod_collective_case *run_case, const pod_coll_algorithm *algorithm,
                          const pod_coll_request *request, pod_coll_schedule **schedule,
                          pod_error *err)
{
    pod_status st = POD_OK;
    if (pod_par_rank(par) == 0) {
        st = decide(row, run_case, &algorithm, request, err);
    }
    st = pod_par_agree(par, st, err);
    if (st != POD_OK) {
        return st;
    }
    struct {
        pod_coll_bound bound;
        int number;
    } decided = {.bound = row->bound};
    if (pod_par_rank(par) == 0) {
        decided.number = algorithm_number(algorithm);
    }
    pod_par_bcast(par, &decided, sizeof decided);
    row->bound = decided.bound;
    st = pod_coll_algorithm_at(decided.number)->build(request, schedule, err);
    return pod_par_agree(par, st, err);
}

/* Real numbers or time only, by the options or by size. */
static bool choose_data(const pod_cli *cli, pod_collective_case *run_case,
                        const pod_coll_schedule *schedule, int64_t bytes, pod_dtype dtype)
{
    const char *asked = cli->common.data;
    if (run_case->timing_only) {
        return false;
    }
    if (asked != NULL) {
        return strcmp(asked, "real") == 0;
    }
    const int64_t needed = pod_run_data_bytes(schedule, &run_case->target->slice, dtype);
    const bool real = needed <= DATA_DEFAULT_MAX_BYTES;
    const int said = real ? 1 : 2;
    if (run_case->data_said != said) {
        char size[POD_FORMAT_MAX];
        pod_cli_say(cli,
                    "%s from %lld bytes on: --data %s, as all chips together need %s (limit 1 GiB)",
                    run_case->target->slice.name, (long long)bytes, real ? "real" : "none",
                    needed == INT64_MAX ? "too much" : pod_format_bytes(needed, size, sizeof size));
        run_case->data_said = said;
    }
    return real;
}

/* Of all chips, when every one sends as many as the first rank. */
static bool many_messages(const pod_coll_schedule *schedule, const pod_slice *slice)
{
    int64_t steps = 0;
    for (int32_t c = 0; c < schedule->nchannels; c++) {
        steps += schedule->channels[c].max_steps;
    }
    return steps * slice->nchips > FOLD_MESSAGES_MIN;
}

static double bus_factor(pod_coll_op op, int32_t group_size)
{
    const double n = group_size;
    switch (op) {
    case POD_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return (n - 1) / n;
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 1;
}

/* The figures that follow from time and bound. */
static pod_status derive(pod_collective_row *row, const pod_collective_case *run_case,
                         pod_error *err)
{
    const pod_time_ps time_ps = row->result.time_ps;
    if (time_ps - run_case->target->chip.collective_launch_ps < row->bound.time_ps) {
        return pod_fail(
            err, POD_E_INTERNAL,
            "%s of %lld bytes by %s took %.9g us with its launch, below its bound of %.9g us; "
            "please report this",
            pod_coll_op_name(run_case->request->op), (long long)row->bytes, row->algorithm,
            pod_time_to_us(time_ps), pod_time_to_us(row->bound.time_ps));
    }
    row->bound_frac = time_ps > 0 ? (double)row->bound.time_ps / (double)time_ps : 1;
    row->algbw_GBps = time_ps > 0 ? (double)row->bytes / pod_time_to_s(time_ps) / 1e9 : 0;
    row->busbw_GBps = row->algbw_GBps * bus_factor(run_case->request->op, run_case->group.size);
    return POD_OK;
}

pod_status pod_collective_row_run(pod_collective_row *row, pod_cli *cli,
                                  pod_collective_case *run_case, int64_t bytes,
                                  const pod_coll_algorithm *algorithm, pod_error *err)
{
    *row = (pod_collective_row){.bytes = bytes};
    pod_status st = pod_collective_dtype(run_case->request, bytes, &row->dtype, err);
    if (st == POD_OK && !pod_collective_is_trivial(run_case, bytes)) {
        st = pod_cli_bytes_check(run_case->target, run_case->link_bytes_per_s, bytes, err);
    }
    if (st != POD_OK) {
        return st;
    }
    const pod_coll_request request = make_request(run_case, bytes, row->dtype);
    pod_coll_schedule *schedule = NULL;
    if (pod_collective_is_trivial(run_case, bytes)) {
        algorithm = NULL;
    }
    st = prepare(row, cli->par, run_case, algorithm, &request, &schedule, err);
    if (st == POD_OK) {
        POD_ASSERT(schedule != NULL);
        (void)snprintf(row->algorithm, sizeof row->algorithm, "%s", schedule->algorithm);
        row->data = choose_data(cli, run_case, schedule, bytes, row->dtype);
        const pod_machine machine =
            pod_cli_machine(cli, run_case->target, run_case->link_bytes_per_s, request.launch_ps);
        const pod_run_collective_args args = {
            .machine = &machine,
            .schedule = schedule,
            .source_of = run_case->source_of,
            .dtype = row->dtype,
            .seed = cli->common.seed,
            .data = row->data,
            .fold = many_messages(schedule, &run_case->target->slice),
        };
        row->folded = pod_run_folds(&args);
        st = pod_run_collective(&args, &row->result, err);
        pod_cli_progress_end(cli);
    }
    pod_coll_schedule_free(schedule);
    return st == POD_OK ? derive(row, run_case, err) : st;
}

/* ---- --explain ---- */

static void explain_prediction(const pod_cli *cli, const pod_collective_row *row)
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

void pod_collective_explain(const pod_cli *cli, const pod_collective_case *run_case,
                            const pod_collective_row *row)
{
    const pod_collective_request *request = run_case->request;
    const pod_chip_spec *chip = &run_case->target->chip;
    const pod_slice *slice = &run_case->target->slice;
    const int32_t n = run_case->group.size;
    pod_cli_explain(cli, "%s %s over %s (%d groups of %d), %lld bytes of %s%s, %s:", slice->name,
                    pod_coll_op_name(request->op), run_case->axes,
                    slice->nchips * slice->nslices / n, n, (long long)row->bytes,
                    pod_dtype_name(row->dtype), request->dtype_given ? "" : " (default)",
                    row->algorithm);
    pod_cli_explain(cli, "  rates %s: link %g GB/s one way%s, hop %g us, launch %g us",
                    pod_rates_name(chip->rates), run_case->link_bytes_per_s / 1e9,
                    run_case->link_bytes_per_s < chip->link_oneway_bytes_per_s
                        ? " (multi_axis_eff_frac included)"
                        : "",
                    pod_time_to_us(chip->hop_latency_ps),
                    pod_time_to_us(chip->collective_launch_ps));
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
                    row->algbw_GBps, bus_factor(request->op, n), row->busbw_GBps);
    pod_cli_explain(cli,
                    "  simulated %lld events (a message at a hop), %lld bytes over all links, "
                    "%lld on the busiest; %lld elements compared",
                    (long long)row->result.links.hops, (long long)row->result.links.total_bytes,
                    (long long)row->result.links.max_bytes, (long long)row->result.checked);
    if (row->folded) {
        pod_cli_explain(cli, "  all chips do the same: one was simulated for all %d",
                        slice->nchips);
    }
    if (row->result.links.dcn_bytes > 0) {
        pod_cli_explain(
            cli,
            "  DCN: %lld bytes between slices; the busiest host (slice %d, host %d) sent "
            "%lld in %.9g us",
            (long long)row->result.links.dcn_bytes, row->result.links.dcn_busiest_slice,
            row->result.links.dcn_busiest_host, (long long)row->result.links.dcn_max_bytes,
            pod_time_to_us(row->result.links.dcn_busy_ps));
    }
}
