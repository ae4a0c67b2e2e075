/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/serving_steps.h  How long the steps of a server take: each mix is simulated once and remembered.
 *
 *  Model: a TPU runs programs of fixed shapes, so running requests are padded to a power of two (times the groups of
 *  chips that sequences are cut over), at most to the room. A step's time is linear in the lengths of what is cached,
 *  as attention reads it, so only a few lengths are simulated: 5 of running requests, from the prompt to the whole
 *  answer, and none and the most of a prompt under way; between them it is interpolated.
 *
 *  Ownership: init/fini; borrows experiment, setup, request. Threads: one per rank; all calls collective. */
#pragma once

#include "experiment/serving.h"
#include "experiment/setup.h"

typedef struct pod_serving_known {
    int64_t batch;
    int64_t seq;
    int64_t prompts; /**< of a group */
    int64_t piece;
    int64_t cached;
    pod_serving_step step;
} pod_serving_known;

typedef struct pod_serving_steps {
    pod_experiment *experiment;
    const pod_experiment_setup *setup;
    const pod_logical_mesh *mesh;
    pod_experiment_step_request request; /**< of a mix, but for its sizes */
    const pod_serving_args *args;
    int32_t groups;     /**< of chips that sequences are cut over */
    int64_t room_bytes; /**< of the HBM that programs may use, after a step with all requests */
    pod_serving_known *known;
    int64_t nknown;
    int64_t known_room;
    struct pod_coll_choices *choices;
    char mesh_text[POD_MESH_TEXT_MAX]; /**< with all sizes, once a mix was simulated */
} pod_serving_steps;

/** Lay the mesh, and find out how many requests the cache has room for, each with all of its tokens.
 *  @param request   model, dtypes, page, server's time; mode and sizes are set here
 *  @param args      borrowed; room: at most so many (0 = no limit), set to what there is; fits and prompts: set
 *  @return POD_E_NOFIT when not one fits; what pod_experiment_step_lay says */
pod_status pod_serving_steps_init(pod_serving_steps *steps, pod_experiment *experiment,
                                  const pod_experiment_step_request *request,
                                  const pod_experiment_setup *setup, const pod_logical_mesh *mesh,
                                  pod_serving_args *args, pod_error *err);
void pod_serving_steps_fini(pod_serving_steps *steps);

/** A pod_serving_time with the steps as context. */
pod_status pod_serving_steps_time(void *steps, const pod_serving_mix *mix, pod_serving_step *step,
                                  pod_error *err);
