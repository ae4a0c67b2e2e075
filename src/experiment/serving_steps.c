/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/serving_steps.h"

#include "base/grow.h"
#include "base/units.h"
#include "collectives/choices.h"
#include "experiment/step_best.h"

#include <stdlib.h>
#include <string.h>

enum { SERVING_LENGTHS = 4 }; /* intervals of the answer between simulated lengths */
enum { ROOM_MAX = 1 << 16 };

/* The sizes of a mix into the request. */
static void mix_sizes_set(pod_serving_steps *s, const pod_serving_known *mix)
{
    s->request.batch = mix->batch;
    s->request.seq = mix->seq;
    s->request.serving.prompts = mix->prompts;
    s->request.serving.prefill_tokens = mix->piece * s->groups * mix->prompts;
    s->request.serving.cached = mix->cached;
}

/* ---- room ---- */

/* Bytes of a chip when so many requests have all their tokens, and a prompt its last chunk. */
static pod_status serving_peak_find(pod_serving_steps *s, int64_t batch, int64_t *bytes,
                                    pod_error *err)
{
    const pod_serving_args *args = s->args;
    const int64_t piece = args->chunk < args->input ? args->chunk : args->input;
    pod_experiment_step_case run_case = {.asked = NULL};
    const pod_serving_known all = {.batch = batch,
                                   .seq = args->input + args->output,
                                   .prompts = args->prompts / s->groups,
                                   .piece = piece,
                                   .cached = args->input - piece};
    mix_sizes_set(s, &all);
    const pod_status st =
        pod_experiment_step_lay(s->experiment, &run_case, &s->request, s->setup, s->mesh, err);
    if (st == POD_OK) {
        *bytes = run_case.work.memory.peak_bytes;
    }
    pod_experiment_step_case_fini(&run_case);
    return st;
}

/* A cache that grows by so many bytes for each further request of every group. */
static pod_status serving_room_find(pod_serving_steps *s, pod_serving_args *args, pod_error *err)
{
    const int64_t usable = s->setup->chip.hbm_usable_bytes;
    const int64_t wanted = args->rate > 0 ? ROOM_MAX : args->concurrency;
    const int64_t most = args->room > 0 && args->room < wanted ? args->room : wanted;
    int64_t one = 0;
    int64_t two = 0;
    int64_t each = 1;
    args->prompts =
        s->groups
        * pod_min_i64(pod_max_i64(args->chunk / args->input, 1), pod_ceil_div(most, s->groups));
    POD_TRY(serving_peak_find(s, s->groups, &one, err));
    const pod_status st = serving_peak_find(s, 2 * (int64_t)s->groups, &two, NULL);
    if (st == POD_OK) {
        const int64_t more = two > one ? two - one : 1;
        each = 1 + (usable - one) / more;
    } else if (st != POD_E_NOFIT) {
        return serving_peak_find(s, 2 * (int64_t)s->groups, &two, err);
    }
    each = pod_min_i64(each, pod_ceil_div(ROOM_MAX, s->groups));
    while (each > 1 && serving_peak_find(s, each * s->groups, &two, NULL) == POD_E_NOFIT) {
        each--;
    }
    args->fits = each * s->groups;
    args->room = pod_min_i64(args->fits, most);
    return POD_OK;
}

/* Groups of chips that sequences are cut over. */
static pod_status groups_find(pod_serving_steps *s, pod_error *err)
{
    pod_mesh mesh;
    const pod_status st = pod_mesh_init(&mesh, &s->setup->slice, s->mesh, err);
    for (int a = 0; st == POD_OK && a < mesh.naxes; a++) {
        const pod_mesh_axis axis = mesh.axis[a].axis;
        s->groups *= axis == POD_MESH_DATA || axis == POD_MESH_EXPERT ? mesh.axis[a].size : 1;
    }
    if (st == POD_OK) {
        pod_mesh_fini(&mesh);
    }
    return st;
}

pod_status pod_serving_steps_init(pod_serving_steps *steps, pod_experiment *experiment,
                                  const pod_experiment_step_request *request,
                                  const pod_experiment_setup *setup, const pod_logical_mesh *mesh,
                                  pod_serving_args *args, pod_error *err)
{
    *steps = (pod_serving_steps){.experiment = experiment,
                                 .setup = setup,
                                 .mesh = mesh,
                                 .request = *request,
                                 .args = args,
                                 .groups = 1};
    steps->request.mode = POD_STEP_SERVE;
    steps->request.plain = true;
    pod_status st = groups_find(steps, err);
    st = st == POD_OK ? pod_coll_choices_new(&steps->choices, err) : st;
    POD_TRY(pod_par_agree(experiment->par, st, err));
    return serving_room_find(steps, args, err);
}

void pod_serving_steps_fini(pod_serving_steps *steps)
{
    pod_coll_choices_free(steps->choices);
    free(steps->known);
}

/* ---- times ---- */

static pod_status mix_simulate(pod_serving_steps *s, pod_serving_known *mix, pod_error *err)
{
    pod_experiment own = *s->experiment;
    pod_experiment_step_case run_case = {.asked = NULL};
    pod_experiment_step_outcome outcome = {0};
    pod_step_result result = {0};
    own.choices = s->choices;
    mix_sizes_set(s, mix);
    pod_status st = pod_experiment_step_lay(&own, &run_case, &s->request, s->setup, s->mesh, err);
    if (st == POD_OK) {
        st = pod_experiment_step(&own, &run_case, &s->setup->chip, NULL, &result, &outcome, err);
    }
    if (st == POD_OK) {
        mix->step.time_ps = outcome.time_ps;
        memcpy(s->mesh_text, outcome.mesh, sizeof s->mesh_text);
        pod_experiment_step_parts(&outcome, mix->step.part_s);
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

static pod_status mix_known(pod_serving_steps *s, pod_serving_known mix, pod_serving_step *step,
                            pod_error *err)
{
    for (int64_t i = 0; i < s->nknown; i++) {
        const pod_serving_known *k = &s->known[i];
        if (k->batch == mix.batch && k->seq == mix.seq && k->piece == mix.piece
            && k->cached == mix.cached && k->prompts == mix.prompts) {
            *step = k->step;
            return POD_OK;
        }
    }
    POD_TRY(mix_simulate(s, &mix, err));
    if (!POD_GROW(s->known, s->known_room, s->nknown + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the times of steps");
    }
    s->known[s->nknown++] = mix;
    *step = mix.step;
    return POD_OK;
}

static void mix_blend(pod_serving_step *step, const pod_serving_step *other, double share)
{
    step->time_ps += (pod_time_ps)(share * (double)(other->time_ps - step->time_ps) + 0.5);
    for (int p = 0; p < POD_STEP_PARTS; p++) {
        step->part_s[p] += share * (other->part_s[p] - step->part_s[p]);
    }
}

/* Of a length of running requests: between none and the most of the prompt that the cache has. */
static pod_status mix_time(pod_serving_steps *s, pod_serving_known mix, pod_serving_step *step,
                           pod_error *err)
{
    const int64_t cached = mix.cached;
    const int64_t most = s->args->input - mix.piece;
    mix.cached = 0;
    POD_TRY(mix_known(s, mix, step, err));
    if (cached > 0) {
        pod_serving_step other = {.time_ps = 0};
        mix.cached = most;
        POD_TRY(mix_known(s, mix, &other, err));
        mix_blend(step, &other, (double)cached / (double)most);
    }
    return POD_OK;
}

/* So many, padded to `unit` times a power of two. */
static int64_t mix_padded(int64_t count, int64_t unit, int64_t most)
{
    int64_t size = count > 0 ? unit : 0;
    while (size < count) {
        size *= 2;
    }
    return pod_min_i64(size, pod_round_up(most, unit));
}

pod_status pod_serving_steps_time(void *steps, const pod_serving_mix *mix, pod_serving_step *step,
                                  pod_error *err)
{
    pod_serving_steps *s = steps;
    const int64_t input = s->args->input;
    const int64_t output = s->args->output;
    const int64_t intervals = output < SERVING_LENGTHS ? output : SERVING_LENGTHS;
    const double beyond = (mix->cached - (double)input) * (double)intervals / (double)output;
    int64_t at = mix->decoding > 0 ? (int64_t)beyond : 0;
    at = at < intervals ? at : intervals - 1;
    pod_serving_known known = {.batch = mix_padded(mix->decoding, s->groups, s->args->room),
                               .seq = mix->decoding > 0 ? input + output * at / intervals : 1,
                               .prompts = mix_padded(mix->prompts, s->groups, s->args->prompts)
                                          / s->groups,
                               .piece = mix->piece,
                               .cached = mix->piece_cached};
    POD_TRY(mix_time(s, known, step, err));
    const int64_t next = input + output * (at + 1) / intervals;
    if (mix->decoding > 0 && mix->cached > (double)known.seq) {
        pod_serving_step other;
        const double share = (mix->cached - (double)known.seq) / (double)(next - known.seq);
        known.seq = next;
        POD_TRY(mix_time(s, known, &other, err));
        mix_blend(step, &other, share);
    }
    return POD_OK;
}
