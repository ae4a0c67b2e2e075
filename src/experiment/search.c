/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/search.h"

#include "engine/deal.h"
#include "experiment/search_final.h"
#include "experiment/step_best.h"
#include "experiment/step_infer.h"
#include "experiment/step_limit.h"
#include "experiment/step_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reasons that belong to a candidate; anything else ends the search. */
static bool is_reason(pod_status st)
{
    return st == POD_E_INVALID || st == POD_E_NOFIT || st == POD_E_RANGE;
}

/* The best times so far, as many as are asked for, fastest first. */
typedef struct best_times {
    pod_time_ps *time_ps; /* time_ps[top + 1] */
    int top;              /* 0: all are wanted */
    int count;
} best_times;

static pod_status best_init(best_times *best, int top, pod_error *err)
{
    *best = (best_times){.top = top, .time_ps = calloc((size_t)top + 1, sizeof *best->time_ps)};
    return best->time_ps != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for the best %d layouts", top);
}

/* What a layout must not exceed to be among the best: the last of them. */
static pod_time_ps best_limit(const best_times *best)
{
    return best->top > 0 && best->count == best->top ? best->time_ps[best->top - 1]
                                                     : POD_TIME_NEVER;
}

static void best_add(best_times *best, pod_time_ps time_ps)
{
    int at = best->count;
    if (best->top == 0) {
        return;
    }
    for (; at > 0 && best->time_ps[at - 1] > time_ps; at--) {
        best->time_ps[at] = best->time_ps[at - 1];
    }
    best->time_ps[at] = time_ps;
    best->count += best->count < best->top ? 1 : 0;
}

/* ---- one candidate, on a rank by itself ---- */

/* What is done with it: it is only built, to learn what numbers would need; its bound is found; it is simulated. */
typedef enum depth { DEPTH_BUILD, DEPTH_BOUND, DEPTH_TIME } depth;

static pod_status case_bound(pod_experiment *self, const pod_experiment_step_case *run_case,
                             const pod_chip_spec *chip, pod_experiment_step_outcome *outcome,
                             pod_error *err)
{
    pod_time_ps bound_ps = 0;
    const pod_status st = pod_experiment_step_bound(self, run_case, chip, &bound_ps, err);
    if (st == POD_OK) {
        pod_experiment_step_outcome_bound(run_case, chip, bound_ps, outcome);
    }
    return st;
}

static pod_status case_time(pod_experiment *self, const pod_experiment_step_case *run_case,
                            const pod_chip_spec *chip, pod_experiment_step_outcome *outcome,
                            pod_error *err)
{
    pod_step_result result = {0};
    pod_status st = pod_experiment_step_time(self, run_case, chip, NULL, &result, err);
    POD_THEN(st, pod_experiment_step_bound_hold(outcome->bound_ps, &result, err));
    if (st == POD_OK) {
        pod_experiment_step_outcome_get(run_case, chip, &result, NULL, outcome);
        st = pod_experiment_step_limit_settle(self, run_case, chip, outcome, err);
    }
    pod_step_result_fini(&result);
    return st;
}

/* What real numbers of the largest candidate need. */
typedef struct real_size {
    int64_t bytes;
    int64_t multiply_adds;
} real_size;

static void real_size_add(real_size *size, const pod_experiment_step_case *run_case)
{
    const int64_t multiply_adds = pod_experiment_step_multiply_adds(run_case);
    if (run_case->work.data_bytes > size->bytes) {
        size->bytes = run_case->work.data_bytes;
    }
    if (multiply_adds > size->multiply_adds) {
        size->multiply_adds = multiply_adds;
    }
}

/* @param fewest  automatic microbatches that fit, or 0 = to be found */
static pod_status run_alone(pod_experiment *self, const pod_experiment_candidate *candidate,
                            depth how, int32_t fewest, pod_experiment_step_outcome *outcome,
                            real_size *size, pod_error *err)
{
    pod_experiment_step_case run_case;
    pod_experiment_step_request request = *candidate->request;
    pod_error failure = {0};
    request.microbatches_fewest = fewest;
    const pod_chip_spec *chip = &candidate->setup->chip;
    pod_experiment_step_outcome_mesh(outcome, &candidate->mesh);
    pod_status st = how == DEPTH_BUILD
                        ? pod_experiment_step_case_init(&run_case, &request, candidate->setup,
                                                        &candidate->mesh, NULL, &failure)
                        : pod_experiment_step_lay(self, &run_case, &request, candidate->setup,
                                                  &candidate->mesh, &failure);
    if (st == POD_OK) {
        pod_experiment_step_outcome_mesh(outcome, &run_case.mesh.logical);
        real_size_add(size, &run_case);
    }
    if (st == POD_OK && how != DEPTH_BUILD && outcome->bound_ps == 0) {
        st = case_bound(self, &run_case, chip, outcome, &failure);
    }
    if (st == POD_OK && how == DEPTH_TIME) {
        st = case_time(self, &run_case, chip, outcome, &failure);
    }
    outcome->needs_bytes = st == POD_E_NOFIT ? run_case.work.memory.peak_bytes : 0;
    pod_experiment_step_case_fini(&run_case);
    if (is_reason(st)) {
        pod_experiment_step_outcome_fail(candidate->request, st, &failure, outcome);
        return POD_OK;
    }
    if (st != POD_OK && err != NULL) {
        *err = failure;
    }
    return st;
}

/* How far a rank is, and the fastest that it found. */
static void tell_progress(const pod_experiment *experiment, int done, int count,
                          const pod_experiment_step_outcome *fastest)
{
    char what[POD_MESH_TEXT_MAX + 64] = "layouts";
    if (experiment->listener.progress == NULL) {
        return;
    }
    if (fastest != NULL) {
        (void)snprintf(what, sizeof what, "layouts, best so far %s %.4g s", fastest->mesh,
                       pod_time_to_s(fastest->time_ps));
    }
    experiment->listener.progress(experiment->listener.context, done, count, what);
}

/* The same of bounds, which come first. */
static void tell_bounded(const pod_experiment *experiment, depth how, int done, int count)
{
    if (experiment->listener.progress != NULL && how == DEPTH_BOUND) {
        experiment->listener.progress(experiment->listener.context, done, count,
                                      POD_SEARCH_BOUNDED);
    }
}

/* ---- all of them ---- */

/* What the functions below work on. */
typedef struct search {
    pod_experiment *experiment;
    pod_experiment self; /* of this rank alone */
    const pod_experiment_candidate *candidates;
    int count;
    pod_experiment_step_outcome *outcomes;
    real_size size;
} search;

static pod_status search_init(search *s, pod_experiment *experiment,
                              const pod_experiment_candidate *candidates, int count,
                              pod_experiment_step_outcome *outcomes, pod_error *err)
{
    *s = (search){
        .experiment = experiment,
        .self = {.data = POD_DATA_NONE, .seed = experiment->seed},
        .candidates = candidates,
        .count = count,
        .outcomes = outcomes
    };
    memset(outcomes, 0, (size_t)count * sizeof *outcomes);
    pod_status st = pod_par_self_new(&s->self.par, err);
    st = st == POD_OK ? pod_coll_choices_new(&s->self.choices, err) : st;
    return pod_par_agree(experiment->par, st, err);
}

static void search_fini(search *s)
{
    pod_experiment_progress_end(s->experiment);
    pod_coll_choices_free(s->self.choices);
    pod_par_self_free(s->self.par);
}

/* The fewest microbatches that fit a candidate which was run before; 0 = it was not. */
static int32_t fewest_of(const search *s, int i)
{
    return (int32_t)(s->outcomes[i].microbatches
                     >> s->candidates[i].request->microbatches_doublings);
}

/* One of a share. A doubled one has the fewest microbatches of the one before it, or none fit either. */
static pod_status run_share(search *s, int i, depth how, pod_error *err)
{
    const pod_experiment_candidate *candidate = &s->candidates[i];
    const pod_experiment_step_outcome *before = candidate->doubled ? &s->outcomes[i - 1] : NULL;
    if (before != NULL && before->status == POD_E_NOFIT) {
        s->outcomes[i] = *before;
        return POD_OK;
    }
    const bool known = before != NULL && before->status == POD_OK;
    return run_alone(&s->self, candidate, how, known ? fewest_of(s, i - 1) : 0, &s->outcomes[i],
                     &s->size, err);
}

/* Every rank does its share by itself, and no more than `how` says; then all know all. Doubled candidates go with the
 * one before them. */
static pod_status run_shares(search *s, depth how, pod_error *err)
{
    pod_par *par = s->experiment->par;
    pod_status st = POD_OK;
    int32_t *owner = calloc((size_t)s->count + 1, sizeof *owner);
    if (owner == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", s->count);
    }
    for (int i = 0, number = 0; i < s->count && st == POD_OK; i++) {
        number += i == 0 || s->candidates[i].doubled ? 0 : 1;
        owner[i] = number % pod_par_size(par);
        if (owner[i] == pod_par_rank(par)) {
            st = run_share(s, i, how, err);
            tell_bounded(s->experiment, how, i + 1, s->count);
        }
    }
    pod_experiment_progress_end(s->experiment);
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        int64_t most[] = {s->size.bytes, s->size.multiply_adds};
        pod_par_max_i64(par, most, 2);
        s->size = (real_size){.bytes = most[0], .multiply_adds = most[1]};
        st = pod_experiment_share(par, s->outcomes, s->count, sizeof *s->outcomes, owner, err);
    }
    free(owner);
    return st;
}

/* The candidates still to be simulated, by their bounds: the lowest first, which are most likely among the best; or
 * the highest first, so that no rank begins a long one when the others are done.
 * @param order  order[count] */
static int order_find(const search *s, bool lowest_first, int *order)
{
    int n = 0;
    for (int i = 0; i < s->count; i++) {
        const pod_time_ps bound_ps = s->outcomes[i].bound_ps;
        if (s->outcomes[i].status != POD_OK) {
            continue;
        }
        int at = n++;
        for (; at > 0; at--) {
            const pod_time_ps other_ps = s->outcomes[order[at - 1]].bound_ps;
            if (lowest_first ? other_ps <= bound_ps : other_ps >= bound_ps) {
                break;
            }
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return n;
}

/* Candidates that are dealt out, in their order. */
typedef struct dealing {
    pod_deal *deal;
    int *order; /* order[n] */
    int n;
    bool heard; /* outcomes are left for rank 0, whose listener waits for them */
    best_times best;
    pod_search_final final; /* of rank 0 */
    int64_t *owner;         /* owner[count]: set to this rank where it simulated, else -1 */
    int64_t *told_ps;       /* told_ps[n], scratch: the time of a piece, 0 = not done, NO_TIME */
} dealing;

enum { NO_TIME = -1 };

/* The last of the `top` best times that any rank has told. */
static pod_time_ps limit_read(dealing *d)
{
    d->best.count = 0;
    pod_deal_read(d->deal, d->told_ps);
    for (int i = 0; i < d->n && d->best.top > 0; i++) {
        if (d->told_ps[i] > 0) {
            best_add(&d->best, d->told_ps[i]);
        }
    }
    return best_limit(&d->best);
}

/* Tell what came of a piece, so that nobody waits for it. */
static void tell_outcome(const dealing *d, int piece, const pod_experiment_step_outcome *outcome,
                         bool timed)
{
    if (timed && d->heard) {
        pod_deal_leave(d->deal, piece, outcome);
    }
    pod_deal_tell(d->deal, piece, timed ? outcome->time_ps : NO_TIME);
}

/* Pass on what is final by what all ranks have told. */
static void hear_dealt(dealing *d)
{
    if (d->final.listener != NULL) {
        pod_deal_read(d->deal, d->told_ps);
        pod_search_final_update(&d->final, d->deal, d->told_ps);
    }
}

static void nap(void)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    (void)nanosleep(&moment, NULL);
}

/* Enough of the pieces before one are under way to say soon whether it can be among the best: what the ranks began with
 * aside, it waits for them rather than be simulated in vain. Uses what was read last. */
static bool is_early(const dealing *d, int piece, int ranks)
{
    int timed = 0;
    int under_way = 0;
    for (int i = 0; i < d->n; i++) {
        timed += d->told_ps[i] > 0 ? 1 : 0;
        under_way += i < piece && d->told_ps[i] == 0 ? 1 : 0;
    }
    return piece >= d->best.top && piece >= ranks && timed < d->best.top
           && timed + under_way >= d->best.top;
}

/* What a piece must not exceed to be among the best, as soon as that is known. */
static pod_time_ps limit_await(dealing *d, int piece, int ranks)
{
    pod_time_ps limit_ps = limit_read(d);
    while (is_early(d, piece, ranks)) {
        nap();
        hear_dealt(d);
        limit_ps = limit_read(d);
    }
    return limit_ps;
}

/* Other ranks may still be at work. All pieces are told of in the end, also by a rank that fails. */
static void wait_dealt(dealing *d)
{
    while (d->final.listener != NULL && !pod_search_final_is_over(&d->final)) {
        nap();
        hear_dealt(d);
    }
}

/* Simulate what may be among the best. */
static pod_status run_dealt(search *s, dealing *d, pod_error *err)
{
    const pod_experiment_step_outcome *fastest = NULL;
    const int ranks = pod_par_size(s->experiment->par);
    pod_status st = POD_OK;
    for (int piece = pod_deal_next(d->deal); piece < d->n && st == POD_OK;
         piece = pod_deal_next(d->deal)) {
        const int i = d->order[piece];
        pod_experiment_step_outcome *outcome = &s->outcomes[i];
        bool timed = false;
        if (outcome->bound_ps <= limit_await(d, piece, ranks)) {
            d->owner[i] = pod_par_rank(s->experiment->par);
            st = run_alone(&s->self, &s->candidates[i], DEPTH_TIME, fewest_of(s, i), outcome,
                           &s->size, err);
            timed = st == POD_OK && outcome->status == POD_OK;
        }
        if (timed) {
            fastest = fastest == NULL || outcome->time_ps < fastest->time_ps ? outcome : fastest;
        }
        tell_outcome(d, piece, outcome, timed);
        hear_dealt(d);
        tell_progress(s->experiment, s->count - d->n + piece + 1, s->count, fastest);
    }
    if (st == POD_OK) {
        wait_dealt(d);
    }
    return st;
}

/* All ranks know what each has simulated. @param owner  owner[count], -1 where this rank did not */
static pod_status share_dealt(search *s, int64_t *owner, pod_error *err)
{
    pod_par *par = s->experiment->par;
    int32_t *owners = calloc((size_t)s->count + 1, sizeof *owners);
    pod_status st =
        owners != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for %d results", s->count);
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        pod_par_max_i64(par, owner, s->count);
        for (int i = 0; i < s->count; i++) {
            s->outcomes[i].slower = owner[i] < 0 && s->outcomes[i].status == POD_OK;
            owners[i] = owner[i] < 0 ? 0 : (int32_t)owner[i];
        }
        st = pod_experiment_share(par, s->outcomes, s->count, sizeof *s->outcomes, owners, err);
    }
    free(owners);
    return st;
}

static pod_status dealing_init(dealing *d, const search *s, int top,
                               const pod_experiment_search_listener *listener, pod_error *err)
{
    pod_par *par = s->experiment->par;
    const bool lowest_first = top > 0 || d->heard;
    d->order = calloc((size_t)s->count + 1, sizeof *d->order);
    d->owner = calloc((size_t)s->count + 1, sizeof *d->owner);
    d->told_ps = calloc((size_t)s->count + 1, sizeof *d->told_ps);
    pod_status st = best_init(&d->best, top, err);
    if (d->order == NULL || d->owner == NULL || d->told_ps == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", s->count);
    }
    for (int i = 0; i < s->count && st == POD_OK; i++) {
        d->owner[i] = -1;
    }
    if (st == POD_OK) {
        d->n = order_find(s, lowest_first, d->order);
        st = pod_search_final_init(&d->final, d->heard ? listener : NULL, s->outcomes, d->order,
                                   d->n, top, err);
    }
    st = pod_par_agree(par, st, err);
    return st == POD_OK ? pod_deal_new(par, d->n, d->heard ? sizeof *s->outcomes : 0, &d->deal, err)
                        : st;
}

/* Collective. */
static void dealing_fini(dealing *d)
{
    pod_deal_free(d->deal);
    pod_search_final_fini(&d->final);
    free(d->best.time_ps);
    free(d->told_ps);
    free(d->owner);
    free(d->order);
}

/* Simulate the candidates whose bounds are known.
 * @param listener  as of pod_experiment_search_times; NULL where bounds don't come first */
static pod_status run_times(search *s, int top, const pod_experiment_search_listener *listener,
                            pod_error *err)
{
    pod_par *par = s->experiment->par;
    const pod_experiment_search_listener *own = pod_par_rank(par) == 0 ? listener : NULL;
    int64_t heard = own != NULL ? 1 : 0;
    pod_par_max_i64(par, &heard, 1);
    dealing d = {.heard = heard != 0};
    pod_status st = dealing_init(&d, s, top, own, err);
    if (st == POD_OK && own != NULL) {
        own->bounded(own->context, s->outcomes, s->count);
    }
    if (st == POD_OK) {
        st = pod_par_agree(par, run_dealt(s, &d, err), err);
    }
    st = st == POD_OK ? share_dealt(s, d.owner, err) : st;
    dealing_fini(&d);
    return st;
}

static bool has_time(const pod_experiment_step_outcome *outcome)
{
    return outcome->status == POD_OK && outcome->slower == 0;
}

/* Figures stay for layouts whose bound doesn't exceed the last of the best times, and for no others, whatever else was
 * simulated: so the output is the same for any order and number of ranks. */
static pod_status leave_slower(pod_experiment_step_outcome *outcomes, int count, int top,
                               pod_error *err)
{
    best_times best;
    const pod_status st = best_init(&best, top, err);
    for (int i = 0; i < count && st == POD_OK; i++) {
        if (has_time(&outcomes[i])) {
            best_add(&best, outcomes[i].time_ps);
        }
    }
    for (int i = 0; i < count && st == POD_OK; i++) {
        outcomes[i].slower |= has_time(&outcomes[i]) && outcomes[i].bound_ps > best_limit(&best);
    }
    free(best.time_ps);
    return st;
}

/* The best of several placements are found by simulating them, so bounds of those come with the simulation. */
static bool bounds_come_first(const pod_experiment_candidate *candidates, int count)
{
    return count > 0 && !pod_experiment_step_wants_best(candidates[0].request);
}

pod_status pod_experiment_search_times(pod_experiment *experiment,
                                       const pod_experiment_candidate *candidates, int count,
                                       int top, const pod_experiment_search_listener *listener,
                                       pod_experiment_step_outcome *outcomes, pod_error *err)
{
    search s;
    const bool bounds_first = bounds_come_first(candidates, count);
    pod_status st = search_init(&s, experiment, candidates, count, outcomes, err);
    if (st == POD_OK && bounds_first) {
        st = run_shares(&s, DEPTH_BOUND, err);
    }
    st = st == POD_OK ? run_times(&s, top, bounds_first ? listener : NULL, err) : st;
    search_fini(&s);
    return st == POD_OK ? leave_slower(outcomes, count, top, err) : st;
}

/* One candidate with real numbers, on all ranks together. */
static pod_status run_data(pod_experiment *experiment, const pod_experiment_candidate *candidate,
                           const pod_experiment_terms *terms, pod_experiment_step_outcome *outcome,
                           pod_experiment_reference *reference, pod_error *err)
{
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    pod_experiment_step_numbers numbers;
    const pod_chip_spec *chip = &candidate->setup->chip;
    pod_status st = pod_experiment_step_lay(experiment, &run_case, candidate->request,
                                            candidate->setup, &candidate->mesh, err);
    const bool infers = candidate->request->mode > POD_STEP_FORWARD;
    if (st == POD_OK && infers) {
        st = pod_experiment_step_infer(experiment, &run_case, chip, NULL, NULL, &result, &numbers,
                                       err);
    } else if (st == POD_OK
               && (!pod_experiment_reference_is_there(reference)
                   || reference->capacity_chips
                          != pod_experiment_capacity_chips(&run_case.request,
                                                           &run_case.work.layout))) {
        pod_experiment_reference_free(reference);
        st = pod_experiment_step_reference(experiment, &run_case, terms, NULL, reference, err);
    }
    if (st == POD_OK && !infers) {
        st = pod_experiment_step_run_data(experiment, &run_case, chip, reference, NULL, NULL,
                                          &result, &numbers, err);
    }
    if (st == POD_OK) {
        pod_experiment_step_outcome_get(&run_case, chip, &result, &numbers, outcome);
        st = pod_experiment_step_limit_settle(experiment, &run_case, chip, outcome, err);
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

static bool has_numbers(const pod_experiment_candidate *candidates, int count)
{
    const pod_experiment_step_request *request = count > 0 ? candidates[0].request : NULL;
    return request != NULL && (pod_model_has_numbers(&request->model) || request->numbers);
}

/* The most partial sums of a layout in its activations and in its gradients. */
static pod_experiment_terms terms_of(const pod_experiment_candidate *candidates,
                                     const pod_experiment_step_outcome *outcomes, int count)
{
    pod_experiment_terms terms = {.activations = 1, .context = 1, .gradients = 1};
    for (int i = 0; i < count; i++) {
        const pod_logical_mesh *mesh = &candidates[i].mesh;
        int64_t chips = 1;
        for (int l = 0; l < mesh->naxes; l++) {
            const int64_t size = (int64_t)mesh->size[l] * mesh->dcn_size[l];
            const bool tensor = mesh->axis[l] == POD_MESH_TENSOR;
            const bool sequence = mesh->axis[l] == POD_MESH_SEQUENCE;
            terms.activations = pod_max_i64(terms.activations, tensor ? size : 1);
            terms.context = pod_max_i64(terms.context, sequence ? size : 1);
            chips *= size;
        }
        terms.gradients =
            pod_max_i64(terms.gradients, chips * pod_max_i64(outcomes[i].microbatches, 1));
    }
    return terms;
}

pod_status pod_experiment_search(pod_experiment *experiment,
                                 const pod_experiment_candidate *candidates, int count, int top,
                                 const pod_experiment_search_listener *listener,
                                 pod_experiment_step_outcome *outcomes, pod_error *err)
{
    if (experiment->data == POD_DATA_NONE || !has_numbers(candidates, count)) {
        return pod_experiment_search_times(experiment, candidates, count, top, listener, outcomes,
                                           err);
    }
    search s;
    pod_status st = search_init(&s, experiment, candidates, count, outcomes, err);
    bool data = false;
    st = st == POD_OK ? run_shares(&s, DEPTH_BUILD, err) : st;
    search_fini(&s);
    int run = 0;
    for (int i = 0; i < count && st == POD_OK; i++) {
        run += outcomes[i].status == POD_OK ? 1 : 0;
    }
    if (st == POD_OK) {
        st = pod_experiment_step_choose_data(experiment, s.size.bytes, s.size.multiply_adds, run,
                                             &data, err);
    }
    if (st == POD_OK && !data) {
        return pod_experiment_search_times(experiment, candidates, count, top, listener, outcomes,
                                           err);
    }
    const pod_experiment_terms terms = terms_of(candidates, outcomes, count);
    pod_experiment_reference reference = {0};
    for (int i = 0; i < count && st == POD_OK; i++) {
        if (outcomes[i].status == POD_OK) {
            st = run_data(experiment, &candidates[i], &terms, &outcomes[i], &reference, err);
        }
    }
    pod_experiment_reference_free(&reference);
    return st;
}

static bool goes_before(const pod_experiment_step_outcome *a, const pod_experiment_step_outcome *b)
{
    if (a->status == POD_OK && b->status == POD_OK && (a->slower != 0 || b->slower != 0)) {
        return a->slower != b->slower ? a->slower == 0 : a->bound_ps < b->bound_ps;
    }
    if ((a->status == POD_OK) != (b->status == POD_OK)) {
        return a->status == POD_OK;
    }
    return a->status == POD_OK && a->time_ps < b->time_ps;
}

void pod_experiment_outcomes_sort(pod_experiment_step_outcome *outcomes, int count)
{
    for (int i = 1; i < count; i++) {
        const pod_experiment_step_outcome moved = outcomes[i];
        int j = i;
        for (; j > 0 && goes_before(&moved, &outcomes[j - 1]); j--) {
            outcomes[j] = outcomes[j - 1];
        }
        outcomes[j] = moved;
    }
}
