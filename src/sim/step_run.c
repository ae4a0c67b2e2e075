/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step.h"

#include "sim/step_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double host_slowness(const pod_machine *machine, int32_t chip)
{
    const pod_dcn *dcn = machine->dcn;
    const int32_t nchips = machine->slice->nchips;
    return dcn ? pod_dcn_host_slowness(dcn, chip / nchips, pod_dcn_host(dcn, chip % nchips)) : 1;
}

static pod_status cells_prepare(step_run *run, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    run->ncells = pod_engine_cells(pod_net_engine(run->net), &run->first);
    run->cells = calloc((size_t)run->ncells + 1, sizeof *run->cells);
    run->shards = calloc((size_t)run->ncells + 1, sizeof *run->shards);
    if (!run->cells || !run->shards) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d chips; use more ranks",
                        run->ncells);
    }
    for (int32_t i = 0; i < run->ncells; i++) {
        step_cell *state = &run->cells[i];
        const int32_t chip = pod_machine_chip(run->args->machine, run->first + i);
        state->stage = programs->stage_of ? programs->stage_of[chip] : 0;
        step_stage *stage = &run->stages[state->stage];
        const pod_program *program = stage->program;
        stage->cells++;
        state->core_op = programs->ready_order ? program->nops : stage->core_next[program->nops];
        state->ops_left = program->nops;
        state->done = program->nops == 0;
        const pod_slice *slice = run->args->machine->slice;
        state->slowness =
            pod_slice_chip_slowness_in(slice, chip / slice->nchips, chip % slice->nchips);
        state->host_slowness = host_slowness(run->args->machine, chip);
        state->deps_left = calloc((size_t)program->nops + 1, sizeof *state->deps_left);
        if (!state->deps_left) {
            return pod_fail(err, POD_E_NOMEM, "out of memory for %d ops on every chip",
                            program->nops);
        }
        for (int32_t op = 0; op < program->nops; op++) {
            state->deps_left[op] = (uint16_t)program->ops[op].ndeps;
            if (programs->nmeetings > 0 && pod_op_is_collective(&program->ops[op])) {
                run->meetings[program->ops[op].meeting].cells++;
            }
        }
        if (run->args->data) {
            const pod_status st = pod_shards_init(&run->shards[i], program, err);
            if (st != POD_OK) {
                return st;
            }
            run->args->load(run->args->context, chip, program, run->shards[i].data);
        }
        pod_net_wake(run->net, run->first + i, 0, pod_step_wake(WAKE_BEGIN, 0));
    }
    return POD_OK;
}

static void cells_free(step_run *run)
{
    for (int32_t i = 0; run->cells && i < run->ncells; i++) {
        free(run->cells[i].deps_left);
        free(run->cells[i].trail);
        free(run->cells[i].core_ready.op);
        free(run->cells[i].turns.op);
        free(run->cells[i].letters.here);
        free(run->cells[i].letters.wanted.op);
        pod_step_lanes_free(&run->cells[i]);
        if (run->args->data && run->shards) {
            pod_shards_fini(&run->shards[i], run->stages[run->cells[i].stage].program);
        }
    }
    free(run->cells);
    free(run->shards);
    run->cells = NULL;
    run->shards = NULL;
    for (int32_t i = 0; run->instances && i < run->ninstances; i++) {
        pod_step_instance_free(run, (uint32_t)i);
    }
}

/* The records of all ops as words, for one reduction of each kind over the ranks. */
typedef struct record_words {
    int64_t *sums; /* sums[3 * nops]: chips, time, exposed */
    int64_t *starts;
    int64_t *ends;
} record_words;

static void record_pack(const pod_op_record *record, const record_words *words, int32_t i)
{
    words->sums[3 * i] = record->chips;
    words->sums[3 * i + 1] = record->time_ps;
    words->sums[3 * i + 2] = record->exposed_ps;
    words->starts[i] = record->first_start_ps;
    words->ends[i] = record->last_end_ps;
}

static pod_op_record record_unpack(const record_words *words, int32_t i)
{
    return (pod_op_record){.chips = words->sums[3 * i],
                           .first_start_ps = words->starts[i],
                           .last_end_ps = words->ends[i],
                           .time_ps = words->sums[3 * i + 1],
                           .exposed_ps = words->sums[3 * i + 2]};
}

static pod_status records_combine(step_run *run, pod_step_result *result, pod_error *err)
{
    pod_par *par = run->args->machine->par;
    const int32_t nops = run->ninstances; /* of all stages */
    int64_t *storage = calloc(5 * (size_t)nops + 1, sizeof *storage);
    const pod_status st = pod_par_agree(
        par,
        storage ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step"),
        err);
    if (st != POD_OK) {
        free(storage);
        return st;
    }
    const record_words words = {
        .sums = storage, .starts = storage + 3 * nops, .ends = storage + 4 * nops};
    for (int32_t s = 0; s < result->nstages; s++) {
        const step_stage *stage = &run->stages[s];
        for (int32_t op = 0; op < stage->program->nops; op++) {
            record_pack(&stage->records[op], &words, stage->first_instance + op);
        }
    }
    pod_par_sum_i64(par, words.sums, 3 * nops);
    pod_par_min_i64(par, words.starts, nops);
    pod_par_max_i64(par, words.ends, nops);
    for (int32_t s = 0; s < result->nstages; s++) {
        const step_stage *stage = &run->stages[s];
        for (int32_t op = 0; op < stage->program->nops; op++) {
            pod_op_record *record = &result->ops[s][op];
            *record = record_unpack(&words, stage->first_instance + op);
            if (pod_op_is_collective(&stage->program->ops[op])) {
                const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
                (void)snprintf(record->algorithm, sizeof record->algorithm, "%s",
                               entry->schedule->algorithm);
                record->bound_ps = entry->bound_ps[pod_step_bound_place(run, stage, op)];
                record->fallback = run->schedules[stage->schedule_of[op]].fallback;
            }
        }
    }
    free(storage);
    return POD_OK;
}

/* Where the time of each cell went, on every rank. */
static pod_status cell_parts_combine(const step_run *run, pod_step_result *result, pod_error *err)
{
    pod_par *par = run->args->machine->par;
    if (!run->args->chip_records) {
        return POD_OK;
    }
    result->cell_parts = calloc((size_t)result->cells + 1, sizeof *result->cell_parts);
    int64_t *words = calloc((size_t)result->cells * POD_STEP_PARTS_WORDS + 1, sizeof *words);
    const pod_status st =
        pod_par_agree(par,
                      result->cell_parts != NULL && words != NULL
                          ? POD_OK
                          : pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step"),
                      err);
    if (st == POD_OK) {
        for (int32_t i = 0; i < run->ncells; i++) {
            memcpy(words + (size_t)(run->first + i) * POD_STEP_PARTS_WORDS, &run->cells[i].parts,
                   sizeof run->cells[i].parts);
        }
        pod_par_sum_i64(par, words, (int)result->cells * POD_STEP_PARTS_WORDS);
        memcpy(result->cell_parts, words, (size_t)result->cells * sizeof *result->cell_parts);
    }
    free(words);
    return st;
}

/* Combine the ranks' parts and check that every instant of every chip is accounted for. */
static pod_status result_combine(step_run *run, pod_step_result *result, pod_error *err)
{
    pod_par *par = run->args->machine->par;
    for (int32_t i = 0; i < run->ncells; i++) {
        result->time_ps =
            run->cells[i].done_ps > result->time_ps ? run->cells[i].done_ps : result->time_ps;
    }
    pod_par_max_i64(par, &result->time_ps, 1);
    int64_t last = INT32_MAX;
    for (int32_t i = run->ncells - 1; i >= 0; i--) {
        last = run->cells[i].done_ps == result->time_ps ? run->first + i : last;
    }
    pod_par_min_i64(par, &last, 1);
    result->last_chip = pod_machine_chip(run->args->machine, (int32_t)last);
    const int64_t cells = pod_machine_cells(run->args->machine);
    int64_t all_ps = 0;
    if (!pod_mul_i64(cells, result->time_ps, &all_ps)) {
        return pod_fail(
            err, POD_E_RANGE,
            "%lld chips times a step of %.3g s are more picoseconds than can be counted; "
            "use a shorter step",
            (long long)cells, pod_time_to_s(result->time_ps));
    }
    int64_t sums[1 + POD_STEP_PARTS_WORDS] = {run->ncells};
    for (int32_t i = 0; i < run->ncells; i++) {
        int64_t parts[POD_STEP_PARTS_WORDS];
        run->cells[i].parts.idle_ps += result->time_ps - run->cells[i].done_ps;
        memcpy(parts, &run->cells[i].parts, sizeof parts);
        for (int w = 0; w < POD_STEP_PARTS_WORDS; w++) {
            sums[1 + w] += parts[w];
        }
    }
    pod_par_sum_i64(par, sums, sizeof sums / sizeof sums[0]);
    result->cells = sums[0];
    result->compute_ps = sums[1];
    result->exposed_ici_ps = sums[2];
    result->exposed_dcn_ps = sums[3];
    result->exposed_host_ps = sums[4];
    result->exposed_hbm_ps = sums[5];
    result->idle_ps = sums[6];
    result->hbm_bound_ps = sums[7];
    const int64_t parts = sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6];
    if (parts != all_ps) {
        return pod_fail(err, POD_E_INTERNAL,
                        "compute, exposed and idle time add up to %lld ps, not to %lld",
                        (long long)parts, (long long)all_ps);
    }
    const pod_machine *machine = run->args->machine;
    memcpy(result->period, machine->period, sizeof result->period);
    result->fold_slices = machine->fold_slices;
    POD_TRY(records_combine(run, result, err));
    POD_TRY(cell_parts_combine(run, result, err));
    if (run->args->link_records) {
        POD_TRY(pod_net_records(par, run->net, &result->link_records, err));
    }
    return pod_machine_links(machine, run->net, &result->links, err);
}

static pod_status result_prepare(const step_run *run, pod_step_result *result, pod_error *err)
{
    const int32_t nstages = run->args->programs->nstages;
    *result = (pod_step_result){.nstages = nstages};
    result->ops = calloc((size_t)nstages, sizeof *result->ops);
    for (int32_t i = 0; result->ops && i < nstages; i++) {
        result->ops[i] = calloc((size_t)run->stages[i].program->nops + 1, sizeof *result->ops[i]);
        if (!result->ops[i]) {
            return pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step");
        }
    }
    return result->ops ? POD_OK
                       : pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step");
}

/* Fewer cells than this for each rank are not worth the exchange between ranks. */
enum { CELLS_PER_RANK_MIN = 64 };

/* Fold the machine of the run; *self is the job for one that every rank runs for itself: one that is folded to few
 * cells, or whose collectives an oracle runs, which takes less than all of their messages on several ranks. */
static pod_status machine_fold(const step_run *run, pod_machine *machine, pod_par **self,
                               pod_error *err)
{
    if (!run->args->fold || run->args->data || run->args->programs->nmeetings > 0) {
        return POD_OK;
    }
    pod_step_fold(run, machine);
    const int64_t cells = pod_machine_cells(machine);
    const int ranks = pod_par_size(machine->par);
    const bool asks = pod_step_oracle_part_ps(run->args) > 0;
    if (ranks == 1
        || (!asks
            && (cells == pod_machine_chips(machine)
                || cells >= (int64_t)ranks * CELLS_PER_RANK_MIN))) {
        return POD_OK;
    }
    return pod_par_self_new(self, err);
}

/* Simulate what is planned. */
static pod_status step_simulate(step_run *run, pod_step_result *result, pod_error *err)
{
    const pod_step_args *args = run->args;
    const pod_net_client client = pod_step_client(run);
    POD_TRY(pod_machine_net(args->machine, &client, -1, &run->net, err));
    POD_TRY(pod_par_agree(args->machine->par, cells_prepare(run, err), err));
    POD_TRY(run->oracle != NULL ? pod_step_oracle_run(run, err) : pod_net_run(run->net, err));
    POD_TRY(result_combine(run, result, err));
    for (int32_t i = 0; args->data && args->store && i < run->ncells; i++) {
        args->store(args->context, pod_machine_chip(args->machine, run->first + i),
                    run->stages[run->cells[i].stage].program, run->shards[i].data);
    }
    return POD_OK;
}

pod_status pod_step_run(const pod_step_args *args, pod_step_result *result, pod_error *err)
{
    pod_machine machine = *args->machine;
    pod_step_args own = *args;
    own.machine = &machine;
    machine.shared_frac = args->chip->multi_axis_eff_frac;
    step_run run = {.args = &own, .hbm_port = -1};
    pod_par *self = NULL;
    *result = (pod_step_result){0};
    pod_map_init(&run.recv_op);
    pod_map_init(&run.recv_start);
    pod_map_init(&run.meeting_op);
    pod_status st = pod_step_plan(&run, err);
    if (run.hbm_port >= 0) {
        machine.hbm_bytes_per_s = args->chip->hbm_bytes_per_s * args->chip->hbm_eff_frac;
        run.hbm_port = pod_machine_hbm_port(&machine);
    }
    for (int32_t i = 0; st == POD_OK && i < run.nschedules; i++) {
        machine.circuits = machine.circuits || run.schedules[i].schedule->circuits;
    }
    POD_THEN(st, result_prepare(&run, result, err));
    POD_THEN(st, machine_fold(&run, &machine, &self, err));
    st = pod_par_agree(args->machine->par, st, err);
    if (st == POD_OK) {
        machine.par = self ? self : machine.par;
        machine.part_ps = pod_par_size(machine.par) == 1 ? pod_step_oracle_part_ps(&own) : 0;
        if (machine.part_ps > 0) {
            st = pod_step_oracle_new(&run, err);
        }
        POD_THEN(st, step_simulate(&run, result, err));
    }
    cells_free(&run);
    pod_step_oracle_free(&run);
    pod_net_free(run.net);
    result->fallbacks = run.fallbacks;
    result->nfallbacks = run.nfallbacks;
    pod_step_plan_free(&run);
    pod_map_fini(&run.recv_start);
    pod_map_fini(&run.meeting_op);
    pod_map_fini(&run.recv_op);
    pod_par_self_free(self);
    return pod_par_agree(args->machine->par, st, err);
}

void pod_step_result_fini(pod_step_result *result)
{
    for (int32_t i = 0; result->ops && i < result->nstages; i++) {
        free(result->ops[i]);
    }
    free(result->ops);
    free(result->fallbacks);
    free(result->link_records);
    free(result->cell_parts);
    result->cell_parts = NULL;
    result->link_records = NULL;
    result->ops = NULL;
    result->fallbacks = NULL;
    result->nfallbacks = 0;
}
