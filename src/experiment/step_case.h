/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_case.h  A step of a model under one layout: what is asked for, its mesh, its programs.
 *
 *  Model: a request doesn't depend on the layout. A request, a setup and a mesh make a case; a case is
 *  simulated (step_simulate.h and on) and gives an outcome (step_outcome.h).
 *
 *  Ownership: init/fini on the caller's storage; a case borrows request and setup and must not move.
 *  Threads: one per rank. */
#pragma once

#include "experiment/setup.h"
#include "mesh/device_mesh.h"
#include "workload/step_request.h"

enum { POD_MICROBATCHES_OF_STAGES = -1 };

/** The batch's input by the sample: a sequence, or a row of matmul and mlp. */
typedef struct pod_experiment_samples {
    int64_t bytes; /**< of one, 0 = none */
    double per_s;  /**< that a host makes, 0 = they are there */
} pod_experiment_samples;

typedef struct pod_experiment_step_request {
    pod_model model;
    int64_t batch;          /**< 0 = not given */
    int64_t batch_per_chip; /**< 0 = not given; at most one of the two */
    int64_t seq;            /**< tokens of a sequence; 1 for matmul and mlp */
    pod_dtype dtype;
    pod_step_mode mode;
    pod_optimizer optimizer;
    pod_remat remat;
    pod_remat_plan remat_plan; /**< of POD_REMAT_LIST */
    pod_attention_kind attention;
    pod_step_settings settings;
    /** POD_MICROBATCHES_OF_STAGES: as many as a circular pipeline has stages, delayed twice as
     * many; 0 = auto: as few as fit (pod_experiment_step_case_init) */
    int32_t microbatches;
    int32_t microbatches_doublings; /**< of auto: so many times twice as many */
    int32_t microbatches_fewest; /**< of auto: the fewest that fit, where they are known; else 0 */
    int32_t gather_ahead;
    bool collective_matmul;
    bool vmem_prefetch;
    bool numbers; /**< of transformers: programs compute real numbers, too */
    bool plain; /**< a step that doesn't fit HBM is only refused, without a search for what would */
    bool exact; /**< simulate every chip and layer, instead of one for all that do the same */
    pod_step_input input;
    pod_experiment_samples samples; /**< say input's bytes and time by the sample */
    pod_step_serving serving;       /**< inference */
    int64_t decode_steps;           /**< tokens of each sequence with real numbers; 0: one */
    const char *placement; /**< "jax", "best" or by hand, as "data:xy,tensor:z"; NULL = "jax" */
} pod_experiment_step_request;

/** A training step of a model in bf16, with what podsim does when nothing else is said; the batch is missing. */
pod_experiment_step_request pod_experiment_step_request_of(const pod_model *model);

/** Microbatches of a step of so many stages; 0 = auto. */
int32_t pod_experiment_step_microbatches(const pod_experiment_step_request *asked, int32_t stages);

/** Hosts have something to do for the step. */
bool pod_experiment_step_has_input(const pod_experiment_step_request *request);
/** Hosts of the slices. */
int64_t pod_experiment_step_hosts(const pod_experiment_setup *setup);
/** Its placement is the fastest of all. */
bool pod_experiment_step_wants_best(const pod_experiment_step_request *request);

enum { POD_EXPERIMENT_PLACEMENT_MAX = 128 };

typedef struct pod_experiment_step_case {
    const pod_experiment_step_request *asked;
    const pod_experiment_setup *setup;
    pod_mesh mesh;
    char placement[POD_EXPERIMENT_PLACEMENT_MAX]; /**< "jax", or which axes lie where */
    pod_step_request request;
    pod_step_work work;
} pod_experiment_step_case;

/** Lay the mesh, build the programs, check that they fit. Not collective.
 *
 *  Automatic microbatches are a power of two, of a pipeline times its stages: the fewest that fit, of a pipeline
 *  at least four times as many as stages where the batch allows it (a bubble of (S - 1)/(M + S - 1)), and at most
 *  16 times as many. Doublings are refused where nothing is computed again: more microbatches can then only cost.
 *  Only training steps of transformers have more than one.
 *  @param placement  NULL = as the request says, "best" as "jax"
 *  @param[out] run_case  for pod_experiment_step_case_fini, also after an error
 *  @return what pod_mesh_init, pod_step_build and pod_step_fits say */
pod_status pod_experiment_step_case_init(pod_experiment_step_case *run_case,
                                         const pod_experiment_step_request *request,
                                         const pod_experiment_setup *setup,
                                         const pod_logical_mesh *logical,
                                         const pod_placement *placement, pod_error *err);
void pod_experiment_step_case_fini(pod_experiment_step_case *run_case);
