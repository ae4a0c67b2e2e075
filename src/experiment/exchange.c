/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/exchange.h"

#include "experiment/step_slices.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From the first start to the last end of a meeting, over all chips. */
typedef struct meeting_span {
    pod_time_ps first_ps;
    pod_time_ps last_ps;
    const pod_op *op;
    const pod_op_record *record;
} meeting_span;

/* Every collective took at least its bound. A folded DCN isn't here, so to the picosecond. */
static pod_status bounds_check(const pod_programs *programs, const pod_step_result *result,
                               pod_time_ps launch_ps, pod_error *err)
{
    meeting_span *span = calloc((size_t)programs->nmeetings + 1, sizeof *span);
    pod_status st =
        span != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bounds of a trace");
    for (int32_t s = 0; s < programs->nstages && st == POD_OK; s++) {
        for (int32_t i = 0; i < programs->stages[s].nops; i++) {
            const pod_op *op = &programs->stages[s].ops[i];
            const pod_op_record *record = &result->ops[s][i];
            if (!pod_op_is_collective(op)) {
                continue;
            }
            meeting_span *own = &span[op->meeting];
            const bool first = own->op == NULL;
            own->first_ps = first || record->first_start_ps < own->first_ps ? record->first_start_ps
                                                                            : own->first_ps;
            own->last_ps = record->last_end_ps > own->last_ps ? record->last_end_ps : own->last_ps;
            own->op = op;
            own->record = record;
        }
    }
    for (int32_t m = 0; m < programs->nmeetings && st == POD_OK; m++) {
        const pod_time_ps took_ps = span[m].last_ps - span[m].first_ps - launch_ps;
        if (span[m].op != NULL && took_ps < span[m].record->bound_ps) {
            st = pod_fail(err, POD_E_INTERNAL,
                          "%s of %" PRId64
                          " bytes in %s by %s took %.9g us without its launch, below its "
                          "bound of %.9g us; please report this",
                          pod_coll_op_name(span[m].op->op), span[m].op->bytes, span[m].op->name,
                          span[m].record->algorithm, pod_time_to_us(took_ps),
                          pod_time_to_us(span[m].record->bound_ps));
        }
    }
    free(span);
    return st;
}

/* Chips that wait for each other are the fault of who wrote the programs. */
static pod_status blame(pod_status st, const char *file, pod_error *err)
{
    static const char stuck[] = "nothing is left to happen";
    char text[POD_ERROR_TEXT_MAX];
    if (st != POD_E_INTERNAL || err == NULL || strncmp(err->text, stuck, sizeof stuck - 1) != 0) {
        return st;
    }
    memcpy(text, err->text, sizeof text);
    pod_error_clear(err);
    return pod_fail(err, POD_E_INVALID, "%s%schips wait for each other: %s",
                    file != NULL ? file : "", file != NULL ? ": " : "", text);
}

pod_status pod_experiment_exchange_run(pod_experiment *experiment,
                                       const pod_experiment_setup *setup, const pod_chip_spec *chip,
                                       const pod_programs *programs,
                                       const pod_experiment_exchange_options *options,
                                       pod_experiment_watch *watch, pod_step_result *result,
                                       pod_error *err)
{
    pod_dcn dcn = setup->dcn;
    pod_coll_choices *choices = NULL;
    pod_machine machine = pod_experiment_machine(experiment, setup, chip->link_oneway_bytes_per_s,
                                                 pod_chip_launch_ps(chip, true));
    pod_experiment_dcn_rates(&dcn.options, chip);
    machine.dcn = machine.dcn != NULL || options->over_pcie ? &dcn : NULL;
    machine.hop_latency_ps = chip->hop_latency_ps;
    pod_step_args args = {.machine = &machine,
                          .chip = chip,
                          .programs = programs,
                          .link_records = experiment->link_records,
                          .chip_records = true,
                          .one_at_a_time = options->one_at_a_time};
    *result = (pod_step_result){.nstages = 0};
    pod_status st = pod_par_agree(experiment->par, pod_coll_choices_new(&choices, err), err);
    args.choices = choices;
    POD_THEN(st, blame(pod_experiment_watch_step(watch, &args, result, err), options->file, err));
    pod_experiment_progress_end(experiment);
    POD_THEN(st, bounds_check(programs, result, machine.launch_ps, err));
    if (st == POD_OK && options->jitter) {
        pod_experiment_step_slowest_slice(chip, &setup->slice, programs, result);
    }
    pod_coll_choices_free(choices);
    return st;
}

pod_status pod_experiment_chakra_run(pod_experiment *experiment,
                                     const pod_experiment_chakra *chakra, const pod_chip_spec *chip,
                                     pod_experiment_watch *watch,
                                     pod_experiment_chakra_outcome *outcome, pod_error *err)
{
    const pod_chakra_options options = {
        .slice = &chakra->setup->slice, .chip = chip, .on_chip = chakra->on_chip};
    *outcome = (pod_experiment_chakra_outcome){.programs = {.nstages = 0}};
    pod_status st = pod_chakra_programs(chakra->graph, &chakra->groups, &options,
                                        &outcome->programs, &outcome->told, err);
    st = pod_par_agree(experiment->par, st, err);
    const pod_experiment_exchange_options how = {.one_at_a_time = chakra->one_at_a_time,
                                                 .jitter = chakra->graph[0].jitter,
                                                 .over_pcie = outcome->told.over_pcie};
    POD_THEN(st, pod_experiment_exchange_run(experiment, chakra->setup, chip, &outcome->programs,
                                             &how, watch, &outcome->result, err));
    return st;
}

void pod_experiment_chakra_outcome_fini(pod_experiment_chakra_outcome *outcome)
{
    pod_step_result_fini(&outcome->result);
    pod_programs_fini(&outcome->programs);
}

pod_status pod_experiment_chakra_what_if_all(pod_experiment *experiment,
                                             const pod_experiment_chakra *chakra,
                                             pod_time_ps base_ps,
                                             pod_experiment_what_if probe[POD_WHAT_IF_KEYS],
                                             pod_error *err)
{
    for (int key = 0; key < POD_WHAT_IF_KEYS; key++) {
        pod_experiment_chakra_outcome outcome;
        const pod_chip_spec faster =
            pod_experiment_what_if_chip(&chakra->setup->chip, key, POD_WHAT_IF_PROBE);
        const pod_status st =
            pod_experiment_chakra_run(experiment, chakra, &faster, NULL, &outcome, err);
        probe[key] = pod_experiment_what_if_of(base_ps, outcome.result.time_ps);
        pod_experiment_chakra_outcome_fini(&outcome);
        POD_TRY(st);
    }
    return POD_OK;
}
