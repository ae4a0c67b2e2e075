/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/experiment.h  What turns a question into figures: who runs it, and who hears of it.
 *
 *  Model: a question is a plain struct (a slice, a collective or a model, a mesh, a batch, …), and so is
 *  the answer (times, bytes and bandwidths as numbers). Between the two lie, in this order,
 *
 *      setup            a slice ready to simulate: shape, chip, routes, hosts       experiment/setup.h
 *      collective_case  groups of chips that run one collective at once             …/collective_case.h
 *      collective_row   one algorithm at one size: simulated, held to its bound     …/collective_row.h
 *      step_case        one layout of a step: mesh, programs, memory                …/step_case.h
 *      step_simulate    its simulation;  step_routes: its time;  step_best: the best placement;
 *      step_numbers     with real numbers;  step_outcome: all its figures
 *      search           many layouts or settings, dealt out to the ranks            …/search.h
 *      serving          requests that arrive, wait and share steps; serving_steps: …/serving.h
 *                       the time of each mix of a step
 *      measurement      published figures, and how far off podsim is                …/measurement.h
 *
 *  Nothing here prints or reads options. What a person might want to hear while it runs goes to one
 *  listener; without functions it is silent.
 *
 *  Ownership: the caller's storage; borrows par and the listener's context. Threads: one per rank. */
#pragma once

#include "base/units.h"
#include "engine/par.h"

/** Who hears of what goes on. Called on every rank; whether rank 0 alone speaks is the listener's choice. */
typedef struct pod_experiment_listener {
    void *context;
    /** A choice that was made for the caller, one line without its end; or NULL. */
    void (*note)(void *context, const char *text);
    /** So much is done, `total` 0 when nobody knows of how much; what == NULL: it is over. Or NULL.
     *  @param what  what is counted, as "layouts" */
    void (*progress)(void *context, int64_t done, int64_t total, const char *what);
} pod_experiment_listener;

/** Whether chips hold and move real numbers. */
typedef enum pod_experiment_data {
    POD_DATA_BY_SIZE, /**< real while all chips together need at most 1 GiB */
    POD_DATA_NONE,
    POD_DATA_REAL
} pod_experiment_data;

typedef struct pod_experiment {
    pod_par *par; /**< the ranks that run it together */
    pod_experiment_listener listener;
    pod_experiment_data data;
    bool force;        /**< even where it may not fit the machine's memory */
    bool link_records; /**< steps keep what each link carried (sim/step.h) */
    uint64_t seed;     /**< of real numbers and of random patterns */
    struct pod_coll_choices
        *choices; /**< of algorithms, remembered from step to step; NULL = for one step only */
    /** What an oracle answered in steps of one layout (sim/oracle.h); NULL = none is asked. */
    struct pod_oracle_memo *memo;
} pod_experiment;

/** Tell the listener. */
__attribute__((format(printf, 2, 3))) void pod_experiment_note(const pod_experiment *experiment,
                                                               const char *format, ...);

/** For pod_machine.progress with the experiment as context. */
void pod_experiment_progress(void *experiment, pod_time_ps now_ps, int64_t events);
/** The simulation is over. */
void pod_experiment_progress_end(const pod_experiment *experiment);

/** True if real numbers are the default where all chips together need so many bytes. */
bool pod_experiment_data_fits(int64_t bytes);
/** Bytes that may be used: 80 % of what the machine has free. INFINITY if nothing says, or with force. Collective. */
double pod_experiment_room_bytes(const pod_experiment *experiment);
/** POD_E_NOFIT with both figures and what to do.
 *  @param what      that needs it, as a plural: "real numbers of all chips"
 *  @param room      of pod_experiment_room_bytes, less than `needed` bytes
 *  @param remedies  as "use --data none, fewer chips" */
pod_status pod_experiment_room_fail(const char *what, double needed, double room,
                                    const char *remedies, pod_error *err);
/** Real numbers fit what the machine has free. What moves between chips is held, too, while it is under way: up to
 *  half of what they hold (measured: 0.5 for sums and all-to-alls, 0.2 to 0.4 for steps). Collective.
 *  @param bytes    what all chips together hold
 *  @param buffer   the size that may be made smaller, to be proposed; 0 = none. bytes grow with it
 *  @param option   its option, as "--bytes"
 *  @return POD_E_NOFIT with both figures, and what fits, beyond 80 % of what is free */
pod_status pod_experiment_memory_check(const pod_experiment *experiment, int64_t bytes,
                                       int64_t buffer, const char *option, pod_error *err);
/** "--data real, as all chips together need 3 MiB (limit 1 GiB)", into text. @return text */
const char *pod_experiment_data_text(bool real, int64_t bytes, char *text, size_t size);

enum { POD_EXPERIMENT_TEXT_MAX = 256 };

/** Every rank has the items of its share; afterwards every rank has all. Collective.
 *  @param items  items[count] of item_size bytes each: plain values without pointers
 *  @param owner  owner[count]: the rank that has an item, the same on every rank; NULL: rank r has items r, r + size, …
 *  @return POD_E_NOMEM, the same on every rank */
pod_status pod_experiment_share(pod_par *par, void *items, int count, size_t item_size,
                                const int32_t *owner, pod_error *err);
