/* SPDX-License-Identifier: Apache-2.0 */
/* A step's result from those of two steps with fewer layers (workload/transformer/periodic.h). */
#include "sim/step.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Parts still add up to the whole, but one that is nearly nothing may have come out below 0: compute
 * takes it in. */
static void parts_mend(pod_step_result *result)
{
    int64_t *parts[] = {&result->exposed_ici_ps, &result->exposed_dcn_ps, &result->exposed_host_ps,
                        &result->exposed_hbm_ps, &result->idle_ps};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (*parts[i] < 0) {
            result->compute_ps += *parts[i];
            *parts[i] = 0;
        }
    }
}

static int64_t extend(int64_t few, int64_t more, int64_t times)
{
    return more + times * (more - few);
}

static void links_extend(const pod_link_summary *few, const pod_link_summary *more, int64_t times,
                         pod_link_summary *links)
{
    links->max_bytes = extend(few->max_bytes, more->max_bytes, times);
    links->busy_ps = extend(few->busy_ps, more->busy_ps, times);
    links->busiest_bytes = extend(few->busiest_bytes, more->busiest_bytes, times);
    links->total_bytes = extend(few->total_bytes, more->total_bytes, times);
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        links->direction_bytes[d] =
            extend(few->direction_bytes[d], more->direction_bytes[d], times);
        links->direction_busy_ps[d] =
            extend(few->direction_busy_ps[d], more->direction_busy_ps[d], times);
    }
    links->dcn_bytes = extend(few->dcn_bytes, more->dcn_bytes, times);
    links->dcn_max_bytes = extend(few->dcn_max_bytes, more->dcn_max_bytes, times);
    links->dcn_busy_ps = extend(few->dcn_busy_ps, more->dcn_busy_ps, times);
    links->hops = extend(few->hops, more->hops, times);
}

void pod_step_result_extend(const pod_step_result *few, const pod_step_result *more, int64_t times,
                            pod_step_result *result)
{
    *result = *more;
    result->nstages = 0;
    result->nfallbacks = 0;
    result->fallbacks = NULL;
    result->link_records = NULL;
    result->ops = NULL;
    result->time_ps = extend(few->time_ps, more->time_ps, times);
    result->compute_ps = extend(few->compute_ps, more->compute_ps, times);
    result->exposed_ici_ps = extend(few->exposed_ici_ps, more->exposed_ici_ps, times);
    result->exposed_dcn_ps = extend(few->exposed_dcn_ps, more->exposed_dcn_ps, times);
    result->exposed_host_ps = extend(few->exposed_host_ps, more->exposed_host_ps, times);
    result->exposed_hbm_ps = extend(few->exposed_hbm_ps, more->exposed_hbm_ps, times);
    result->idle_ps = extend(few->idle_ps, more->idle_ps, times);
    result->hbm_bound_ps = extend(few->hbm_bound_ps, more->hbm_bound_ps, times);
    parts_mend(result);
    links_extend(&few->links, &more->links, times, &result->links);
}

static int64_t grown(int64_t from, int64_t few, int64_t more, int64_t times)
{
    return from + times * (more - few);
}

static void records_add(pod_step_result *result, const pod_step_result *few,
                        const pod_step_result *more, int64_t times)
{
    pod_net_link_record *to = result->link_records;
    if (to == NULL || few->link_records == NULL || more->link_records == NULL) {
        return;
    }
    for (int64_t i = 0; i < result->cells * POD_NET_PORTS_MAX; i++) {
        to[i].bytes =
            grown(to[i].bytes, few->link_records[i].bytes, more->link_records[i].bytes, times);
        to[i].busy_ps = grown(to[i].busy_ps, few->link_records[i].busy_ps,
                              more->link_records[i].busy_ps, times);
    }
}

pod_status pod_step_result_links_extend(const pod_step_result *few, const pod_step_result *more,
                                        int64_t times, pod_step_result *result, pod_error *err)
{
    const size_t size = (size_t)more->cells * POD_NET_PORTS_MAX * sizeof *result->link_records;
    if (few->link_records == NULL || more->link_records == NULL) {
        return POD_OK;
    }
    result->link_records = malloc(size);
    if (result->link_records == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the links of a step");
    }
    memcpy(result->link_records, more->link_records, size);
    records_add(result, few, more, times);
    return POD_OK;
}

static void links_add(pod_link_summary *links, const pod_link_summary *few,
                      const pod_link_summary *more, int64_t times)
{
    links->max_bytes = grown(links->max_bytes, few->max_bytes, more->max_bytes, times);
    links->busy_ps = grown(links->busy_ps, few->busy_ps, more->busy_ps, times);
    links->busiest_bytes =
        grown(links->busiest_bytes, few->busiest_bytes, more->busiest_bytes, times);
    links->total_bytes = grown(links->total_bytes, few->total_bytes, more->total_bytes, times);
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        links->direction_bytes[d] = grown(links->direction_bytes[d], few->direction_bytes[d],
                                          more->direction_bytes[d], times);
        links->direction_busy_ps[d] = grown(links->direction_busy_ps[d], few->direction_busy_ps[d],
                                            more->direction_busy_ps[d], times);
    }
    links->dcn_bytes = grown(links->dcn_bytes, few->dcn_bytes, more->dcn_bytes, times);
    links->dcn_max_bytes =
        grown(links->dcn_max_bytes, few->dcn_max_bytes, more->dcn_max_bytes, times);
    links->dcn_busy_ps = grown(links->dcn_busy_ps, few->dcn_busy_ps, more->dcn_busy_ps, times);
    links->hops = grown(links->hops, few->hops, more->hops, times);
}

bool pod_step_result_add(pod_step_result *result, const pod_step_result *few,
                         const pod_step_result *more, int64_t times)
{
    if (result->cells != few->cells || result->cells != more->cells) {
        return false;
    }
    int64_t *const to[] = {&result->time_ps,         &result->compute_ps,
                           &result->exposed_ici_ps,  &result->exposed_dcn_ps,
                           &result->exposed_host_ps, &result->exposed_hbm_ps,
                           &result->idle_ps,         &result->hbm_bound_ps};
    const int64_t less[] = {few->time_ps,        few->compute_ps,      few->exposed_ici_ps,
                            few->exposed_dcn_ps, few->exposed_host_ps, few->exposed_hbm_ps,
                            few->idle_ps,        few->hbm_bound_ps};
    const int64_t greater[] = {more->time_ps,        more->compute_ps,      more->exposed_ici_ps,
                               more->exposed_dcn_ps, more->exposed_host_ps, more->exposed_hbm_ps,
                               more->idle_ps,        more->hbm_bound_ps};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        *to[i] = grown(*to[i], less[i], greater[i], times);
    }
    links_add(&result->links, &few->links, &more->links, times);
    records_add(result, few, more, times);
    return true;
}

void pod_step_result_mend(pod_step_result *result)
{
    parts_mend(result);
}

/* ---- records of ops ---- */

/* Ops of a stage with the same name. */
typedef struct op_class {
    const char *name;
    bool communicates;
    int64_t few_ps; /* charged to them in the step with few layers, and in that with more */
    int64_t more_ps;
    int64_t copied_ps; /* charged in all to those that stand for the ops of the full step */
    int64_t count;     /* ops of the full step */
    int64_t total_ps;  /* to charge */
    int64_t passed;    /* of copied_ps, or of count where that is 0, by the ops charged so far */
    int64_t charged_ps;
} op_class;

typedef struct op_classes {
    op_class *list;
    int32_t count;
    int64_t room;
    int32_t *of_more; /* of_more[op of `more`]: index in list */
} op_classes;

/* Index of an op's class, new if need be; -1 without memory. */
static int32_t class_of(op_classes *classes, const pod_op *op)
{
    for (int32_t i = 0; i < classes->count; i++) {
        if (strcmp(classes->list[i].name, op->name) == 0) {
            return i;
        }
    }
    if (!POD_GROW(classes->list, classes->room, classes->count + 1)) {
        return -1;
    }
    classes->list[classes->count] = (op_class){
        .name = op->name,
        .communicates = pod_op_is_collective(op) || pod_op_sends(op) || pod_op_receives(op)};
    return classes->count++;
}

static bool classes_find(const pod_step_extension *x, int32_t stage, op_classes *classes)
{
    const pod_program *few = &x->few_programs->stages[stage];
    const pod_program *more = &x->more_programs->stages[stage];
    classes->of_more = calloc((size_t)more->nops + 1, sizeof *classes->of_more);
    bool ok = classes->of_more != NULL;
    for (int32_t i = 0; ok && i < more->nops; i++) {
        const int32_t at = class_of(classes, &more->ops[i]);
        ok = at >= 0;
        if (ok) {
            classes->of_more[i] = at;
            classes->list[at].more_ps += x->more->ops[stage][i].exposed_ps;
        }
    }
    for (int32_t i = 0; ok && i < few->nops; i++) {
        const int32_t at = class_of(classes, &few->ops[i]);
        ok = at >= 0;
        if (ok) {
            classes->list[at].few_ps += x->few->ops[stage][i].exposed_ps;
        }
    }
    for (int32_t i = 0; ok && i < x->full->stages[stage].nops; i++) {
        const int32_t like = x->stand_in[stage][i];
        if (like >= 0) {
            op_class *own = &classes->list[classes->of_more[like]];
            own->copied_ps += x->more->ops[stage][like].exposed_ps;
            own->count++;
        }
    }
    return ok;
}

/* How much of `total` the first `until` of `all` weights get, so that parts add up to it. */
static int64_t part_until(int64_t total, int64_t until, int64_t all)
{
    return until == all ? total : (int64_t)((double)until / (double)all * (double)total);
}

/* What each class is charged. One that nears nothing may come out below 0: the others of its kind, which together
 * are charged what is extended of all, take that in. */
static void classes_charge(op_classes *classes, int64_t times, bool communicates)
{
    int64_t want = 0;
    int64_t have = 0;
    for (int32_t i = 0; i < classes->count; i++) {
        op_class *own = &classes->list[i];
        if (own->communicates == communicates) {
            own->total_ps = extend(own->few_ps, own->more_ps, times);
            want += own->total_ps;
            own->total_ps = own->count > 0 && own->total_ps > 0 ? own->total_ps : 0;
            have += own->total_ps;
        }
    }
    int64_t passed = 0;
    for (int32_t i = 0; i < classes->count && have > 0; i++) {
        op_class *own = &classes->list[i];
        if (own->communicates == communicates) {
            const int64_t before = part_until(want > 0 ? want : 0, passed, have);
            passed += own->total_ps;
            own->total_ps = part_until(want > 0 ? want : 0, passed, have) - before;
        }
    }
}

/* The next op's part of what its class is charged. */
static int64_t class_part(op_class *own, int64_t copied_ps)
{
    const bool even = own->copied_ps == 0;
    own->passed += even ? 1 : copied_ps;
    const int64_t until =
        part_until(own->total_ps, own->passed, even ? own->count : own->copied_ps);
    const int64_t part = until - own->charged_ps;
    own->charged_ps = until;
    return part;
}

static bool stage_records(const pod_step_extension *x, int32_t stage, pod_op_record *records)
{
    op_classes classes = {.list = NULL};
    const bool ok = classes_find(x, stage, &classes);
    if (ok) {
        classes_charge(&classes, x->times, true);
        classes_charge(&classes, x->times, false);
    }
    for (int32_t i = 0; ok && i < x->full->stages[stage].nops; i++) {
        const int32_t like = x->stand_in[stage][i];
        if (like >= 0) {
            records[i] = x->more->ops[stage][like];
            records[i].exposed_ps =
                class_part(&classes.list[classes.of_more[like]], records[i].exposed_ps);
        }
    }
    free(classes.list);
    free(classes.of_more);
    return ok;
}

pod_status pod_step_result_records(const pod_step_extension *extension, pod_step_result *result,
                                   pod_error *err)
{
    const pod_programs *full = extension->full;
    result->ops = calloc((size_t)full->nstages, sizeof *result->ops);
    bool ok = result->ops != NULL;
    result->nstages = ok ? full->nstages : 0;
    for (int32_t s = 0; ok && s < full->nstages; s++) {
        result->ops[s] = calloc((size_t)full->stages[s].nops + 1, sizeof *result->ops[s]);
        ok = result->ops[s] != NULL && stage_records(extension, s, result->ops[s]);
    }
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step");
}
