/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/exchange_write.h"

#include "base/file.h"
#include "exchange/chakra_write.h"
#include "exchange/goal_write.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pod_status no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory to write traces");
}

static int32_t chips_of(const pod_experiment_written *written)
{
    return pod_experiment_setup_chips(written->setup);
}

static const pod_program *program_of(const pod_experiment_written *written, int32_t chip)
{
    const pod_programs *programs = written->programs;
    return &programs->stages[programs->stage_of != NULL ? programs->stage_of[chip] : 0];
}

static void op_seen(void *context, int32_t chip, int32_t stage, int32_t op, pod_time_ps start_ps,
                    pod_time_ps end_ps)
{
    pod_experiment_written *written = context;
    (void)stage;
    written->took[chip][op] = end_ps - start_ps;
}

/* Room for what is seen of each chip. */
static pod_status took_new(pod_experiment_written *written, int32_t **chips, pod_error *err)
{
    const int32_t count = chips_of(written);
    *chips = calloc((size_t)count + 1, sizeof **chips);
    written->took = calloc((size_t)count + 1, sizeof *written->took);
    for (int32_t chip = 0; *chips != NULL && written->took != NULL && chip < count; chip++) {
        const size_t nops = (size_t)program_of(written, chip)->nops;
        (*chips)[chip] = chip;
        written->took[chip] = calloc(nops + 1, sizeof **written->took);
        if (written->took[chip] == NULL) {
            return no_memory(err);
        }
    }
    return *chips != NULL && written->took != NULL ? POD_OK : no_memory(err);
}

/* Run it with all chips watched; every rank then knows what all saw. Collective. */
static pod_status watch_all(pod_experiment *experiment, pod_experiment_written *written,
                            const pod_machine *machine, pod_error *err)
{
    written->dcn = machine->dcn != NULL ? *machine->dcn : written->dcn;
    written->machine = *machine;
    written->machine.dcn = machine->dcn != NULL ? &written->dcn : NULL;
    int32_t *chips = NULL;
    pod_status st = pod_par_agree(experiment->par, took_new(written, &chips, err), err);
    const pod_step_observer observer = {
        .context = written, .nchips = chips_of(written), .chips = chips, .op = op_seen};
    const pod_step_args args = {.machine = machine,
                                .chip = written->chip,
                                .programs = written->programs,
                                .choices = experiment->choices,
                                .observer = &observer};
    POD_THEN(st, pod_step_run(&args, &written->result, err));
    pod_experiment_progress_end(experiment);
    for (int32_t chip = 0; st == POD_OK && chip < chips_of(written); chip++) {
        pod_par_max_i64(experiment->par, written->took[chip], program_of(written, chip)->nops);
    }
    free(chips);
    return st;
}

pod_status pod_experiment_write_step(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, pod_experiment_written *written,
                                     pod_error *err)
{
    pod_experiment_step_machine own;
    pod_experiment_step_machine_make(&own, experiment, run_case, chip);
    *written =
        (pod_experiment_written){.programs = &run_case->work.programs,
                                 .setup = run_case->setup,
                                 .chip = chip,
                                 .algorithm = "auto",
                                 .jitter = run_case->asked->model.kind == POD_MODEL_TRANSFORMER
                                           && run_case->setup->slice.nslices > 1};
    return watch_all(experiment, written, &own.machine, err);
}

/* ---- a collective ---- */

/* The group of a case, as its own. */
static pod_status group_copy(const pod_experiment_collective_case *run_case, pod_programs *programs,
                             int32_t *number, pod_error *err)
{
    pod_group group;
    char axes[POD_EXPERIMENT_AXES_MAX];
    POD_TRY(pod_experiment_collective_group(run_case->request, &run_case->setup->slice, &group,
                                            axes, err));
    POD_TRY(pod_programs_group(programs, &group, number, err));
    if (group.slices > 1) {
        memcpy(programs->groups[*number].axes, "dcn", sizeof "dcn");
    }
    return POD_OK;
}

/* Sources by chip of what is said by rank. */
static pod_status permute_make(const pod_experiment_collective_case *run_case,
                               pod_programs *programs, pod_op *op, pod_error *err)
{
    const pod_group *group = &run_case->group;
    const int32_t chips = pod_group_chips(group);
    int32_t *source_of = malloc((size_t)chips * sizeof *source_of);
    if (source_of == NULL) {
        return no_memory(err);
    }
    for (int32_t chip = 0; chip < chips; chip++) {
        const int32_t from = run_case->source_of[pod_group_rank(group, chip)];
        source_of[chip] = from < 0 ? -1 : pod_group_chip(group, chip, from);
    }
    return pod_programs_permute(programs, source_of, chips, &op->sources, err);
}

static pod_status program_make(const pod_experiment_collective_case *run_case, int64_t bytes,
                               const pod_coll_algorithm *algorithm, bool launched,
                               pod_programs *programs, pod_error *err)
{
    const pod_coll_op what = run_case->request->op;
    const pod_time_ps host_ps =
        run_case->launch_ps - pod_chip_launch_ps(&run_case->setup->chip, true);
    pod_op launch = pod_op_make(POD_OP_HOST, "launch", -1);
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, pod_coll_op_name(what), -1);
    int32_t before = POD_OP_NONE;
    programs->nstages = 1;
    programs->stages = calloc(1, sizeof *programs->stages);
    if (programs->stages == NULL) {
        return no_memory(err);
    }
    pod_program_init(&programs->stages[0], 0);
    launch.host_ps = host_ps;
    if (host_ps > 0 && launched) {
        before = pod_program_op(&programs->stages[0], &launch, NULL, 0);
    }
    op.op = what;
    op.bytes = bytes;
    op.unpadded = true;
    op.root = run_case->root;
    POD_TRY(pod_experiment_collective_dtype(run_case->request, bytes, &op.dtype, err));
    POD_TRY(group_copy(run_case, programs, &op.group, err));
    if (run_case->source_of != NULL) {
        POD_TRY(permute_make(run_case, programs, &op, err));
    }
    if (algorithm != NULL) {
        const pod_program_algorithm own = {.name = algorithm->name,
                                           .file = run_case->request->program};
        POD_TRY(pod_programs_algorithm(programs, &own, &op.algorithm, err));
    }
    (void)pod_program_op(&programs->stages[0], &op, &before, 1);
    return pod_programs_finish(programs, err);
}

pod_status pod_experiment_write_collective(pod_experiment *experiment,
                                           const pod_experiment_collective_case *run_case,
                                           int64_t bytes, const pod_coll_algorithm *algorithm,
                                           bool launched, pod_experiment_written *written,
                                           pod_error *err)
{
    const pod_experiment_setup *setup = run_case->setup;
    *written = (pod_experiment_written){
        .setup = setup, .chip = &setup->chip, .algorithm = "auto", .programs = &written->own};
    const pod_machine machine =
        pod_experiment_machine(experiment, setup, setup->chip.link_oneway_bytes_per_s,
                               pod_chip_launch_ps(&setup->chip, true));
    pod_status st = program_make(run_case, bytes, algorithm, launched, &written->own, err);
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, watch_all(experiment, written, &machine, err));
    return st;
}

void pod_experiment_written_fini(pod_experiment_written *written)
{
    for (int32_t chip = 0; written->took != NULL && chip < chips_of(written); chip++) {
        free(written->took[chip]);
    }
    free(written->took);
    pod_step_result_fini(&written->result);
    pod_programs_fini(&written->own);
    *written = (pod_experiment_written){.programs = NULL};
}

/* ---- files ---- */

static const char *ran(void *context, int32_t stage, int32_t op)
{
    const pod_experiment_written *written = context;
    return written->result.ops[stage][op].algorithm;
}

static pod_status file_write(const char *prefix, const char *end, const pod_text *text,
                             pod_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s%s", prefix, end) >= (int)sizeof path) {
        return pod_fail(err, POD_E_IO, "%s%s is too long a name", prefix, end);
    }
    return pod_file_write(path, text->data, text->size, err);
}

/* @return false: it isn't there */
static bool file_remove(const char *prefix, const char *end)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s%s", prefix, end) < (int)sizeof path && unlink(path) == 0;
}

static const char *trace_end(int32_t chip, char end[32])
{
    (void)snprintf(end, 32, ".%d.et", (int)chip);
    return end;
}

pod_status pod_experiment_write_chakra(pod_experiment *experiment,
                                       const pod_experiment_written *written, const char *prefix,
                                       pod_error *err)
{
    static const char groups_end[] = ".groups.json";
    pod_experiment_written shared = *written;
    const pod_chakra_written what = {.programs = written->programs,
                                     .slice = &written->setup->slice,
                                     .chip = written->chip,
                                     .took = (const pod_time_ps *const *)written->took,
                                     .algorithm = written->algorithm,
                                     .ran = ran,
                                     .context = &shared,
                                     .jitter = written->jitter};
    pod_status st = POD_OK;
    char end[32];
    int32_t chip = 0;
    for (; pod_par_rank(experiment->par) == 0 && st == POD_OK && chip < chips_of(written); chip++) {
        pod_text bytes = {0};
        st = pod_chakra_write(&what, chip, &bytes, err);
        POD_THEN(st, file_write(prefix, trace_end(chip, end), &bytes, err));
        pod_text_free(&bytes);
    }
    if (pod_par_rank(experiment->par) == 0) {
        pod_text json = {0};
        POD_THEN(st, pod_chakra_write_groups(&what, &json, err));
        if (st == POD_OK && json.size > 0) {
            st = file_write(prefix, groups_end, &json, err);
        } else {
            (void)file_remove(prefix, groups_end); /* an older one's */
        }
        pod_text_free(&json);
    }
    for (; st != POD_OK && chip > 0; chip--) {
        (void)file_remove(prefix, trace_end(chip - 1, end));
    }
    /* an older set's further files would be chips too many */
    for (int32_t next = chips_of(written); pod_par_rank(experiment->par) == 0 && st == POD_OK
                                           && file_remove(prefix, trace_end(next, end));
         next++) {
    }
    return pod_par_agree(experiment->par, st, err);
}

/* ---- GOAL ---- */

static pod_status schedule_get(void *context, const pod_op *op, const pod_coll_schedule **schedule,
                               pod_error *err)
{
    return pod_step_schedules_get(context, op, schedule, err);
}

/* On rank 0. */
static pod_status goal_write(const pod_experiment_written *written, const pod_step_args *args,
                             const char *path, pod_error *err)
{
    pod_step_schedules *schedules = NULL;
    pod_text text = {0};
    pod_status st = pod_step_schedules_new(args, &schedules, err);
    const pod_goal_written what = {.programs = written->programs,
                                   .nchips = chips_of(written),
                                   .took = (const pod_time_ps *const *)written->took,
                                   .schedule = schedule_get,
                                   .context = schedules};
    POD_THEN(st, pod_goal_write(&what, &text, err));
    POD_THEN(st, pod_file_write(path, text.data, text.size, err));
    pod_text_free(&text);
    pod_step_schedules_free(schedules);
    return st;
}

pod_status pod_experiment_write_goal(pod_experiment *experiment,
                                     const pod_experiment_written *written, const char *path,
                                     pod_error *err)
{
    const pod_step_args args = {.machine = &written->machine,
                                .chip = written->chip,
                                .programs = written->programs,
                                .choices = experiment->choices};
    return pod_par_agree(
        experiment->par,
        pod_par_rank(experiment->par) == 0 ? goal_write(written, &args, path, err) : POD_OK, err);
}
