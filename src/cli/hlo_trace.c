/* SPDX-License-Identifier: Apache-2.0 */
/* `podsim hlo --trace`: the timeline of a compiled program, all its iterations. */
#include "cli/hlo.h"
#include "cli/trace.h"

#include "report/step_trace.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX_SHOWN = 1000 };

/* What the run that is watched hands to the timeline. */
typedef struct hlo_trace {
    pod_cli *cli;
    pod_cli_trace *own;
    const pod_experiment_hlo_text *text;
    const pod_experiment_hlo_request *request;
    const char *title;
    pod_step_recorder *recorder;
    const pod_hlo_emitted *emitted;
} hlo_trace;

/* The instruction that an op stands for; POD_HLO_NONE. */
static uint32_t instruction_of(const hlo_trace *t, int32_t op)
{
    const uint32_t count = t->text->module->ninstructions;
    const uint32_t number = t->emitted->instruction[op];
    if (number == POD_HLO_NONE || number < count) {
        return number;
    }
    const pod_hlo_collectives *all = &t->text->analysis.collectives;
    const uint32_t run = number - count;
    return run < all->count ? all->collective[run].instruction
                            : all->transfer[run - all->count].instruction;
}

/* Component number `level` of op_name, "jit(f)/jvp(main)/dot_general". */
static bool op_part(void *context, int32_t stage, int32_t op, int level, char *name, size_t size)
{
    const hlo_trace *t = context;
    const uint32_t instruction = instruction_of(t, op);
    char path[POD_HLO_NAME_MAX + 1];
    (void)stage;
    if (instruction == POD_HLO_NONE) {
        return false;
    }
    const char *at = pod_hlo_print_op_name(t->text->module, instruction, path, sizeof path);
    for (int i = 0; i < level; i++) {
        at = strchr(at, '/');
        if (at == NULL) {
            return false;
        }
        at++;
    }
    const size_t length = strcspn(at, "/");
    if (length == 0) {
        return false;
    }
    (void)snprintf(name, size, "%.*s", (int)(length < size ? length : size - 1), at);
    return true;
}

/* The line of the text, cut; bytes that aren't ASCII become '?'. */
static void line_of(const pod_hlo_module *module, uint32_t instruction, char *line, size_t size)
{
    const char *text = module->text + module->instruction[instruction].offset;
    const char *end = module->text + module->size;
    size_t used = 0;
    for (; text < end && *text != '\n' && used + 1 < size; text++) {
        line[used++] = *text >= ' ' && *text < 127 ? *text : '?';
    }
    line[used] = '\0';
}

static void op_describe(void *context, int32_t stage, int32_t op, pod_trace_args *args)
{
    const hlo_trace *t = context;
    const uint32_t instruction = instruction_of(t, op);
    char text[LINE_MAX_SHOWN + 1];
    (void)stage;
    if (instruction == POD_HLO_NONE) {
        return;
    }
    line_of(t->text->module, instruction, text, sizeof text);
    pod_trace_args_text(args, "long_name", text);
    pod_trace_args_text(args, "tf_op",
                        pod_hlo_print_op_name(t->text->module, instruction, text, sizeof text));
    pod_trace_args_text(args, "phase", pod_hlo_pass_name(t->text->pass[instruction]));
}

/* The run is over: put what was seen into the timeline. */
static pod_status observed(void *context, const pod_hlo_emitted *emitted,
                           const pod_step_result *result, pod_error *err)
{
    hlo_trace *t = context;
    pod_step_timeline *timeline = &t->own->watch.step;
    t->emitted = emitted;
    pod_status status =
        pod_step_recorder_finish(t->recorder, t->cli->par, result->time_ps, timeline, err);
    const pod_step_trace_args args = {.slice = &t->request->setup->slice,
                                      .programs = &emitted->programs,
                                      .result = result,
                                      .timeline = timeline,
                                      .title = t->title,
                                      .part = op_part,
                                      .describe = op_describe,
                                      .context = t};
    if (status == POD_OK && pod_par_rank(t->cli->par) == 0) {
        status = pod_step_trace_add(t->own->trace, &args, err);
    }
    return pod_par_agree(t->cli->par, status, err);
}

/* Simulate every iteration with the chips watched. */
static pod_status watch(hlo_trace *t, const pod_chip_spec *chip, pod_error *err)
{
    static const int32_t first_chip[] = {0};
    const pod_experiment_watch *asked = &t->own->watch;
    pod_experiment_hlo_request request = *t->request;
    pod_experiment_hlo_outcome outcome;
    pod_status status = asked->nchips > 0
                            ? pod_step_recorder_new(asked->nchips, asked->chips, &t->recorder, err)
                            : pod_step_recorder_new(1, first_chip, &t->recorder, err);
    status = pod_par_agree(t->cli->par, status, err);
    if (status != POD_OK) {
        return status;
    }
    request.observer = pod_step_recorder_observer(t->recorder);
    request.observed = observed;
    request.context = t;
    request.link_records = false;
    status = pod_experiment_hlo(&t->cli->experiment, &request, chip, &outcome, err);
    pod_experiment_hlo_outcome_fini(&outcome);
    return status;
}

pod_status pod_hlo_trace(pod_cli *cli, const pod_hlo_report *report, pod_error *err)
{
    pod_cli_trace own;
    hlo_trace t = {.cli = cli,
                   .own = &own,
                   .text = report->text,
                   .request = report->request,
                   .title = report->module};
    if (cli->common.trace_path == NULL && cli->common.html_path == NULL) {
        return POD_OK;
    }
    pod_status status = pod_cli_trace_init(&own, cli, report->setup, true, err);
    POD_THEN(status, watch(&t, report->chip, err));
    POD_THEN(status, pod_cli_trace_write(cli, &own, err));
    pod_step_recorder_free(t.recorder);
    pod_cli_trace_fini(&own);
    return status;
}
