/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/registry.h"

#include "base/names.h"
#include "collectives/schedule/algorithm_list.h"

#include <string.h>

#define ROW(name) &pod_coll_##name,
static const pod_coll_algorithm *const rows[] = {POD_COLL_ALGORITHM_LIST(ROW)};
#undef ROW
enum { ROWS = sizeof rows / sizeof *rows };

int pod_coll_algorithm_count(void)
{
    return ROWS;
}

const pod_coll_algorithm *pod_coll_algorithm_at(int index)
{
    return rows[index];
}

pod_status pod_coll_algorithm_find(const char *name, const pod_coll_algorithm **algorithm,
                                   pod_error *err)
{
    const char *names[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        names[i] = rows[i]->name;
        if (strcmp(name, names[i]) == 0) {
            *algorithm = rows[i];
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "algorithm", name, names, ROWS);
}

pod_status pod_coll_algorithm_applies(const pod_coll_algorithm *algorithm,
                                      const pod_coll_request *request, pod_error *err)
{
    if ((algorithm->ops >> request->op & 1U) == 0) {
        return pod_fail(err, POD_E_USAGE,
                        "algorithm '%s' has no %s; podsim list algorithms shows what each does",
                        algorithm->name, pod_coll_op_name(request->op));
    }
    const bool across = request->group->slices > 1;
    if (across != algorithm->across_slices && algorithm != &pod_coll_none) {
        return pod_fail(err, POD_E_INVALID,
                        across ? "algorithm '%s' stays inside one slice; use hier or flat"
                               : "algorithm '%s' joins several slices, and here is one; use auto",
                        algorithm->name);
    }
    return algorithm->applies(request, err);
}

bool pod_coll_algorithm_fits(const pod_coll_algorithm *algorithm, const pod_coll_request *request)
{
    return pod_coll_algorithm_applies(algorithm, request, NULL) == POD_OK;
}

/* @param[out] fits  the row is a candidate of `auto` for the request */
static pod_status candidate_check(int row, const pod_coll_request *request, bool *fits,
                                  pod_error *err)
{
    const bool small = request->group->size <= POD_COLL_SMALL_RANKS;
    const unsigned ops = rows[row]->auto_ops | (small ? rows[row]->small_ops : 0);
    const bool asked = (ops >> request->op & 1U) != 0;
    const pod_status st =
        asked ? pod_coll_algorithm_applies(rows[row], request, NULL) : POD_E_INVALID;
    *fits = st == POD_OK;
    return st == POD_E_NOMEM ? pod_fail(err, st, "no memory to choose an algorithm") : POD_OK;
}

pod_status pod_coll_only_candidate(const pod_coll_request *request, const pod_coll_algorithm **only,
                                   pod_error *err)
{
    int count = pod_coll_algorithm_fits(&pod_coll_none, request) ? 2 : 0; /* it comes first */
    *only = NULL;
    for (int i = 0; i < ROWS && count < 2; ++i) {
        bool fits = false;
        const pod_status st = candidate_check(i, request, &fits, err);
        if (st != POD_OK) {
            return st;
        }
        *only = fits ? rows[i] : *only;
        count += fits ? 1 : 0;
    }
    *only = count == 1 && !(*only)->plans ? *only : NULL;
    return POD_OK;
}

/* Where predictions follow messages. */
static bool has_enough(const pod_coll_request *request)
{
    return request->group->slices <= 1;
}

pod_status pod_coll_choose(const pod_coll_request *request, const pod_coll_algorithm **algorithm,
                           pod_coll_prediction *prediction, pod_error *err)
{
    *algorithm = NULL;
    if (pod_coll_algorithm_fits(&pod_coll_none, request)) {
        *algorithm = &pod_coll_none;
        return pod_coll_none.predict(request, prediction, err);
    }
    pod_coll_request asked = *request;
    int chosen = ROWS;
    for (int turn = 0; turn < 2 * ROWS; ++turn) {
        const int i = turn % ROWS;
        bool fits = false;
        const bool last = (rows[i]->last_ops >> request->op & 1U) != 0;
        if (last != (turn >= ROWS)) {
            continue;
        }
        pod_status st = candidate_check(i, request, &fits, err);
        if (st != POD_OK) {
            return st;
        }
        if (!fits) {
            continue;
        }
        pod_coll_prediction mine = {.nterms = 0};
        const pod_time_ps least_lost_ps = chosen < ROWS ? prediction->total_ps + (i < chosen) : 0;
        asked.enough_ps = has_enough(request) ? least_lost_ps : 0;
        st = rows[i]->predict(&asked, &mine, err);
        if (st != POD_OK) {
            return st;
        }
        if (chosen == ROWS || mine.total_ps < least_lost_ps) {
            chosen = i;
            *algorithm = rows[i];
            *prediction = mine;
            prediction->planner = mine.planner == rows[i] ? rows[i] : NULL;
        }
    }
    return *algorithm ? POD_OK
                      : pod_fail(err, POD_E_INVALID,
                                 "no algorithm does %s on this group of %d chips; choose --axes, "
                                 "or a mesh axis that JAX "
                                 "lays as a grid (podsim mesh shows it), or fewer chips",
                                 pod_coll_op_name(request->op), (int)request->group->size);
}
