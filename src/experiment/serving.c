/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/serving.h"

#include "base/grow.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOWS_MIN = 4, WINDOWS_MAX = 40, WINDOW_BY_RATE = 200, WINDOW_LEAST = 16 };
enum { STEPS_MAX = 1 << 22 };
static const double SERVING_STEADY = 0.02; /* standard error over mean */

/* A request that has a place. */
typedef struct serving_request {
    pod_time_ps arrival_ps;
    int64_t prompt; /* tokens of it in the cache */
    int64_t answer; /* tokens of it that are there */
} serving_request;

/* So many values that are equal. */
typedef struct serving_sample {
    pod_time_ps value_ps;
    int64_t count;
} serving_sample;

typedef struct serving_samples {
    serving_sample *list;
    int64_t count;
    int64_t room;
} serving_samples;

enum { METRICS = 3 }; /* tokens a second, first token, between */

/* What is counted of a window. */
typedef struct serving_window {
    pod_time_ps begin_ps;
    int64_t answers;
    int64_t tokens;
    int64_t firsts;
    double first_s;
    int64_t gaps;
    double gap_s;
} serving_window;

typedef struct serving_server {
    const pod_serving_args *args;
    pod_time_ps now_ps;
    pod_time_ps *arrival; /* of all requests, from `taken` on those that wait */
    int64_t arrivals;
    int64_t arrival_room;
    int64_t taken;
    double next_s; /* of the next arrival by rate */
    uint64_t drawn;
    /* places: running and prompts under way, in the order in which they were taken */
    serving_request *active;
    int64_t nactive;
    serving_samples first;
    serving_samples between;
    serving_window window;
    int windows; /* that are over */
    double sum[METRICS];
    double square[METRICS];
    pod_time_ps busy_ps;
    double weighted
        [4]; /* sums over time of running, waiting, cached tokens, somebody waiting for room */
    pod_time_ps total_ps;
    pod_serving_result *result;
} serving_server;

/* ---- samples ---- */

static pod_status sample_add(serving_samples *samples, pod_time_ps value_ps, int64_t count,
                             pod_error *err)
{
    if (!POD_GROW(samples->list, samples->room, samples->count + 1)) {
        return pod_fail(err, POD_E_NOMEM,
                        "no memory for the times of requests; ask for fewer tokens");
    }
    samples->list[samples->count++] = (serving_sample){value_ps, count};
    return POD_OK;
}

static int sample_order(const void *a, const void *b)
{
    const serving_sample *first = a;
    const serving_sample *second = b;
    return (first->value_ps > second->value_ps) - (first->value_ps < second->value_ps);
}

/* The least value that is at least as large as `frac` of all. */
static double sample_percentile(const serving_samples *samples, double total, double frac)
{
    double below = 0;
    for (int64_t i = 0; i < samples->count; i++) {
        below += (double)samples->list[i].count;
        if (below >= frac * total) {
            return pod_time_to_s(samples->list[i].value_ps);
        }
    }
    return NAN;
}

static pod_serving_spread spread_of(serving_samples *samples)
{
    double total = 0;
    double sum_s = 0;
    for (int64_t i = 0; i < samples->count; i++) {
        total += (double)samples->list[i].count;
        sum_s += (double)samples->list[i].count * pod_time_to_s(samples->list[i].value_ps);
    }
    if (total == 0) {
        return (pod_serving_spread){NAN, NAN, NAN};
    }
    qsort(samples->list, (size_t)samples->count, sizeof *samples->list, sample_order);
    return (pod_serving_spread){.mean_s = sum_s / total,
                                .p50_s = sample_percentile(samples, total, 0.5),
                                .p99_s = sample_percentile(samples, total, 0.99)};
}

/* ---- arrivals ---- */

static pod_status request_arrives(serving_server *s, pod_time_ps at_ps, pod_error *err)
{
    if (!POD_GROW(s->arrival, s->arrival_room, s->arrivals + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the requests; use a lower rate");
    }
    s->arrival[s->arrivals++] = at_ps;
    return POD_OK;
}

static void draw_next(serving_server *s)
{
    s->next_s += -log1p(-pod_rng_unit(s->args->seed, 0, s->drawn++)) / s->args->rate;
}

/* All that have come by now; by rate, the next one if nobody is there. */
static pod_status requests_arrive(serving_server *s, pod_error *err)
{
    if (s->args->rate <= 0) {
        return POD_OK;
    }
    if (s->nactive == 0 && s->taken == s->arrivals) {
        const pod_time_ps next_ps = pod_time_from_s(s->next_s);
        s->now_ps = next_ps > s->now_ps ? next_ps : s->now_ps;
    }
    pod_status st = POD_OK;
    while (st == POD_OK && pod_time_from_s(s->next_s) <= s->now_ps) {
        st = request_arrives(s, pod_time_from_s(s->next_s), err);
        draw_next(s);
    }
    return st;
}

/* ---- a step ---- */

static bool request_is_prompt(const serving_server *s, const serving_request *r)
{
    return r->prompt < s->args->input;
}

/* Places for those who wait, and what the step consists of. @param[out] full  somebody waits for room */
static pod_serving_mix server_mix(serving_server *s, bool *full)
{
    const pod_serving_args *args = s->args;
    pod_serving_mix mix = {0};
    double cached = 0;
    int64_t prompts = 0;
    for (int64_t i = 0; i < s->nactive; i++) {
        prompts += request_is_prompt(s, &s->active[i]) ? 1 : 0;
    }
    while (s->taken < s->arrivals && s->nactive < args->room && prompts < args->prompts) {
        s->active[s->nactive++] = (serving_request){.arrival_ps = s->arrival[s->taken++]};
        prompts++;
    }
    mix.prompts = prompts;
    *full = s->taken < s->arrivals && s->nactive == args->room;
    for (int64_t i = 0; i < s->nactive; i++) {
        const serving_request *r = &s->active[i];
        if (request_is_prompt(s, r)) {
            const int64_t rest = args->input - r->prompt;
            const int64_t piece = rest < args->chunk ? rest : args->chunk;
            mix.piece = piece > mix.piece ? piece : mix.piece;
            mix.piece_cached = r->prompt > mix.piece_cached ? r->prompt : mix.piece_cached;
        } else {
            mix.decoding++;
            cached += (double)(args->input + r->answer);
        }
    }
    mix.cached = mix.decoding > 0 ? cached / (double)mix.decoding : 0;
    return mix;
}

/* What the state was during a step of `time_s`. */
static void server_weigh(serving_server *s, const pod_serving_mix *mix,
                         const pod_serving_step *step, bool full)
{
    const double time_s = pod_time_to_s(step->time_ps);
    double tokens = 0;
    for (int64_t i = 0; i < s->nactive; i++) {
        tokens += (double)(s->active[i].prompt + s->active[i].answer);
    }
    s->busy_ps += step->time_ps;
    s->weighted[0] += time_s * (double)mix->decoding;
    s->weighted[1] += time_s * (double)(s->arrivals - s->taken);
    s->weighted[2] += time_s * tokens;
    s->weighted[3] += full ? time_s : 0;
    for (int p = 0; p < POD_STEP_PARTS; p++) {
        s->result->part_frac[p] += step->part_s[p];
    }
    s->result->steps++;
}

/* Tokens of the step to their requests; those with their whole answer leave. */
static pod_status server_hand_out(serving_server *s, int64_t piece, pod_error *err)
{
    const pod_serving_args *args = s->args;
    const bool counts = s->windows > 0;
    int64_t kept = 0;
    pod_status st = POD_OK;
    for (int64_t i = 0; i < s->nactive && st == POD_OK; i++) {
        serving_request r = s->active[i];
        if (request_is_prompt(s, &r)) {
            r.prompt = r.prompt + piece < args->input ? r.prompt + piece : args->input;
            if (request_is_prompt(s, &r)) {
                s->active[kept++] = r;
                continue;
            }
            s->window.firsts++;
            s->window.first_s += pod_time_to_s(s->now_ps - r.arrival_ps);
            st = counts ? sample_add(&s->first, s->now_ps - r.arrival_ps, 1, err) : POD_OK;
        }
        r.answer++;
        s->window.tokens++;
        if (r.answer < args->output) {
            s->active[kept++] = r;
            continue;
        }
        s->window.answers++;
        s->result->requests += counts ? 1 : 0;
        if (st == POD_OK && args->rate <= 0) {
            st = request_arrives(s, s->now_ps, err);
        }
    }
    s->nactive = kept;
    return st;
}

static pod_status server_step(serving_server *s, pod_serving_time *time, void *context,
                              pod_error *err)
{
    pod_serving_step step = {0};
    bool full = false;
    POD_TRY(requests_arrive(s, err));
    const pod_serving_mix mix = server_mix(s, &full);
    POD_TRY(time(context, &mix, &step, err));
    if (s->windows > 0) {
        server_weigh(s, &mix, &step, full);
    }
    s->now_ps += step.time_ps;
    if (mix.decoding > 0) {
        s->window.gaps += mix.decoding;
        s->window.gap_s += (double)mix.decoding * pod_time_to_s(step.time_ps);
        if (s->windows > 0) {
            POD_TRY(sample_add(&s->between, step.time_ps, mix.decoding, err));
        }
    }
    return server_hand_out(s, mix.piece, err);
}

/* ---- windows ---- */

/* A window is over. */
static void window_end(serving_server *s)
{
    const serving_window *w = &s->window;
    const double time_s = pod_time_to_s(s->now_ps - w->begin_ps);
    const double value[METRICS] = {(double)w->tokens / time_s,
                                   w->firsts > 0 ? w->first_s / (double)w->firsts : 0,
                                   w->gaps > 0 ? w->gap_s / (double)w->gaps : 0};
    for (int m = 0; m < METRICS && s->windows > 0; m++) {
        s->sum[m] += value[m];
        s->square[m] += value[m] * value[m];
    }
    s->total_ps += s->windows > 0 ? s->now_ps - w->begin_ps : 0;
    s->result->tokens_per_s += s->windows > 0 ? (double)w->tokens : 0;
    s->windows++;
    s->window = (serving_window){.begin_ps = s->now_ps};
}

static bool server_is_steady(const serving_server *s)
{
    const double n = s->windows - 1;
    bool steady = n >= WINDOWS_MIN;
    for (int m = s->args->rate > 0 ? 1 : 0; m < METRICS && steady; m++) {
        const double mean = s->sum[m] / n;
        const double variance = fmax(s->square[m] / n - mean * mean, 0) / (n - 1);
        steady = sqrt(variance) <= SERVING_STEADY * mean;
    }
    return steady;
}

static void server_result_fill(serving_server *s)
{
    pod_serving_result *r = s->result;
    const double total_s = pod_time_to_s(s->total_ps);
    double parts_s = 0;
    for (int p = 0; p < POD_STEP_PARTS; p++) {
        parts_s += r->part_frac[p];
    }
    for (int p = 0; p < POD_STEP_PARTS && parts_s > 0; p++) {
        r->part_frac[p] /= parts_s;
    }
    r->tokens_per_s /= total_s;
    r->requests_per_s = (double)r->requests / total_s;
    r->batch = s->weighted[0] / total_s;
    r->waiting = s->weighted[1] / total_s;
    r->cache_frac = s->weighted[2] / total_s
                    / ((double)s->args->fits * (double)(s->args->input + s->args->output));
    r->full_frac = s->weighted[3] / total_s;
    r->idle_frac = pod_time_to_s(s->total_ps - s->busy_ps) / total_s;
    r->first = spread_of(&s->first);
    r->between = spread_of(&s->between);
}

static pod_status serve_windows(serving_server *s, pod_serving_time *time, void *context,
                                pod_error *err)
{
    const pod_serving_args *args = s->args;
    const int64_t by_clients = 2 * args->concurrency;
    const int64_t answers = args->rate > 0              ? WINDOW_BY_RATE
                            : by_clients > WINDOW_LEAST ? by_clients
                                                        : WINDOW_LEAST;
    for (int64_t steps = 0; s->windows <= WINDOWS_MAX && !s->result->steady; steps++) {
        if (steps == STEPS_MAX) {
            return pod_fail(err, POD_E_RANGE,
                            "over %d steps until the load is steady; use a smaller --output",
                            (int)STEPS_MAX);
        }
        POD_TRY(server_step(s, time, context, err));
        if (s->window.answers >= answers) {
            window_end(s);
            s->result->steady = server_is_steady(s);
        }
    }
    server_result_fill(s);
    return POD_OK;
}

pod_status pod_serving_run(const pod_serving_args *args, pod_serving_time *time, void *context,
                           pod_serving_result *result, pod_error *err)
{
    serving_server s = {.args = args, .result = result};
    *result = (pod_serving_result){.requests = 0};
    s.active = calloc((size_t)args->room, sizeof *s.active);
    pod_status st = s.active != NULL
                        ? POD_OK
                        : pod_fail(err, POD_E_NOMEM, "no memory for %lld requests; use --max-batch",
                                   (long long)args->room);
    for (int64_t c = 0; st == POD_OK && args->rate <= 0 && c < args->concurrency; c++) {
        st = request_arrives(&s, 0, err);
    }
    if (st == POD_OK && args->rate > 0) {
        draw_next(&s);
    }
    st = st == POD_OK ? serve_windows(&s, time, context, err) : st;
    free(s.arrival);
    free(s.active);
    free(s.first.list);
    free(s.between.list);
    return st;
}
