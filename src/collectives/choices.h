/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/choices.h  What `auto` chose, remembered: the same question is asked for few layers and for more,
 *  and for many layouts.
 *
 *  Model: a table from requests to choices. Requests are the same if all that decides is: operation, sizes, rates,
 *  the slice (by address; with it goes one network between slices) and the chips of all groups in their order.
 *
 *  Ownership: copies what it needs, but slices, which must live as long and stay as they are.
 *  Threads: one. */
#pragma once

#include "collectives/registry.h"

typedef struct pod_coll_choices pod_coll_choices;

/** POD_E_NOMEM. */
pod_status pod_coll_choices_new(pod_coll_choices **choices, pod_error *err);
void pod_coll_choices_free(pod_coll_choices *choices);
/** Trees that choices have grown, for building what was chosen (request->packings); of NULL it is NULL. */
struct pod_coll_packings *pod_coll_choices_packings(const pod_coll_choices *choices);
/** As pod_coll_choose (collectives/registry.h), which is asked where nothing is known.
 *  @param choices  NULL: remembers nothing
 *  @param[out] prediction  what building may use (request->predicted); empty where only one algorithm can do it */
pod_status pod_coll_choices_get(pod_coll_choices *choices, const pod_coll_request *request,
                                const pod_coll_algorithm **algorithm,
                                pod_coll_prediction *prediction, pod_error *err);
