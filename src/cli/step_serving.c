/* SPDX-License-Identifier: Apache-2.0 */
/* What step says of inference. */
#include "cli/step.h"

#include "base/units.h"
#include "models/roofline.h"

#include <stdio.h>

void pod_step_serving_heading(pod_findings *findings, const pod_experiment_step_request *asked)
{
    const double host_ms = 1e3 * pod_time_to_s(asked->input.host_ps);
    if (asked->mode <= POD_STEP_FORWARD) {
        return;
    }
    if (host_ms > 0) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "server",
                         "times of the device, and %g ms of the server before each step", host_ms);
    } else {
        pod_findings_say(findings, POD_FINDING_ABOVE, "server",
                         "times of the device, without the server (--host-ms adds its time)");
    }
}

/* The least time by a closed form. */
static pod_roofline roofline_of(const pod_experiment_step_case *run_case, const pod_chip_spec *chip)
{
    const pod_step_request *request = &run_case->request;
    const int64_t rows = request->mode == POD_STEP_PREFILL
                             ? request->batch * request->seq
                             : request->batch + request->serving.prefill_tokens;
    pod_roofline_args args =
        pod_roofline_args_of(request->model, chip, request->dtype, request->batch, request->seq,
                             rows, run_case->mesh.ndevices);
    args.cache_bytes *=
        (double)pod_dtype_size(pod_step_cache_dtype(request)) / pod_dtype_size(request->dtype);
    args.prompt_tokens = (double)request->serving.prefill_tokens;
    return request->mode >= POD_STEP_DECODE ? pod_roofline_decode(&args)
                                            : pod_roofline_prefill(&args);
}

static void note_roofline(pod_findings *findings, const pod_step_request *request,
                          const pod_roofline *r, double step_s)
{
    char cache[POD_FORMAT_MAX + 32] = "";
    const pod_time_unit unit = pod_time_unit_of(step_s);
    if (request->mode >= POD_STEP_DECODE) {
        (void)snprintf(cache, sizeof cache, "cache %.3f %s, ", r->cache_s * unit.per_s, unit.name);
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "roofline",
                     "Roofline of all chips: %sweights %.3f %s, matmuls %.3f %s: at least %.3f %s, "
                     "%.1f %% of the step",
                     cache, r->weights_s * unit.per_s, unit.name, r->products_s * unit.per_s,
                     unit.name, r->least_s * unit.per_s, unit.name, 100 * r->least_s / step_s);
}

/* What a user of the server sees. */
static void note_user(pod_findings *findings, const pod_step_request *request,
                      const pod_roofline *r, double step_s)
{
    if (request->mode == POD_STEP_PREFILL) {
        pod_findings_say(findings, POD_FINDING_BELOW, "serving",
                         "Time to first token: %.3f ms; %.0f tokens of prompts a second",
                         step_s * 1e3, (double)(request->batch * request->seq) / step_s);
        return;
    }
    char prompts[64] = "";
    char bytes[POD_FORMAT_MAX];
    const int64_t token =
        pod_model_cache(request->model, 1) * pod_dtype_size(pod_step_cache_dtype(request));
    if (request->serving.prefill_tokens > 0) {
        (void)snprintf(prompts, sizeof prompts, " and %.0f of prompts",
                       (double)request->serving.prefill_tokens / step_s);
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "serving",
                     "Serving: %.3f ms a token, %.0f tokens/s%s; weights and cache take %.1f %% of "
                     "the HBM's rate; a token has %s of cache",
                     step_s * 1e3, (double)request->batch / step_s, prompts,
                     100 * (r->cache_s + r->weights_s) / step_s,
                     pod_format_bytes(token, bytes, sizeof bytes));
}

void pod_step_tokens_note(pod_findings *findings, const pod_experiment_step_outcome *outcome)
{
    const pod_experiment_step_numbers *n = &outcome->numbers;
    if (n->tokens > 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "tokens",
                         "Tokens: %lld compared with one chip's; %lld of them differ and are as "
                         "good within its bound",
                         (long long)n->tokens, (long long)n->near);
    }
    if (n->near_experts > 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "experts",
                         "Experts: %lld choices of tokens are nearer than their error",
                         (long long)n->near_experts);
    }
}

double pod_step_hbm_rate_frac(const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                              double step_s)
{
    const pod_roofline r = roofline_of(run_case, chip);
    return (r.cache_s + r.weights_s) / step_s;
}

void pod_step_serving_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                           const pod_chip_spec *chip, const pod_step_result *result)
{
    const pod_step_request *request = &run_case->request;
    const double step_s = pod_time_to_s(result->time_ps);
    if (request->mode > POD_STEP_FORWARD && step_s > 0) {
        const pod_roofline r = roofline_of(run_case, chip);
        note_user(findings, request, &r, step_s);
        note_roofline(findings, request, &r, step_s);
    }
}
