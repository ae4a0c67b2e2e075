/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/serving.h  A server under load: requests arrive, wait, and share steps.
 *
 *  Model: continuous batching. A step takes the next token of every running request, and beside them the next chunk of
 *  one prompt for each group of chips, or as many whole prompts as a chunk has room for (first come, first served). A
 *  prompt's last chunk gives the first token of its answer. A request is taken when the cache has room for all of its
 *  tokens, and keeps that room to its end; nobody is thrown out. Steps follow each other as long as somebody is served.
 *
 *      arrivals      by rate: gaps -ln(1 - u) / rate, u by counter-based random numbers; by concurrency: so many
 *                    clients, who send the next request when they have their answer
 *      first token   from a request's arrival to the end of its prompt's last step
 *      between       from one token of an answer to the next: the time of the step
 *
 *  Steady: requests are counted in windows of equally many answers; the first is left out, and the others go on
 *  until the standard errors of their means (first token, between; of clients tokens a second, too) are at most 2 %,
 *  at least 4 of them and at most 40.
 *
 *  Ownership: plain values. Threads: none; the same on every rank that gets the same step times. */
#pragma once

#include "experiment/step_outcome.h"

typedef struct pod_serving_args {
    int64_t input;       /**< tokens of a prompt, >= 1 */
    int64_t output;      /**< tokens of an answer, >= 1 */
    double rate;         /**< requests a second; 0 = by concurrency */
    int64_t concurrency; /**< clients */
    /** prompt tokens that a step takes of one prompt, >= 1; of a longer one than a prompt all */
    int64_t chunk;
    int64_t prompts; /**< prompts that a step takes at once */
    int64_t fits;    /**< requests that the cache has room for, >= 1 */
    int64_t room;    /**< requests at once: no more than fit, than a limit, or than clients */
    uint64_t seed;
} pod_serving_args;

/** What a step consists of. */
typedef struct pod_serving_mix {
    int64_t decoding;     /**< requests that get their next token */
    double cached;        /**< tokens that each of them has in the cache, mean */
    int64_t prompts;      /**< prompts of the step */
    int64_t piece;        /**< tokens of each of them; 0 = none */
    int64_t piece_cached; /**< that such a prompt has in the cache, at most */
} pod_serving_mix;

typedef struct pod_serving_step {
    pod_time_ps time_ps;
    double part_s[POD_STEP_PARTS];
} pod_serving_step;

/** How long a step takes. */
typedef pod_status pod_serving_time(void *context, const pod_serving_mix *mix,
                                    pod_serving_step *step, pod_error *err);

typedef struct pod_serving_spread {
    double mean_s;
    double p50_s;
    double p99_s;
} pod_serving_spread;

typedef struct pod_serving_result {
    int64_t requests; /**< answered in the windows that count */
    int64_t steps;    /**< in them */
    double requests_per_s;
    double tokens_per_s;              /**< of answers */
    pod_serving_spread first;         /**< NaN where nothing was counted */
    pod_serving_spread between;       /**< NaN for answers of one token */
    double batch;                     /**< running requests, mean over time */
    double waiting;                   /**< requests without a place, mean over time */
    double cache_frac;                /**< tokens in the cache over its room, mean over time */
    double idle_frac;                 /**< time without anybody to serve */
    double full_frac;                 /**< time in which somebody waits for room in the cache */
    double part_frac[POD_STEP_PARTS]; /**< of the time of steps */
    bool steady;
} pod_serving_result;

/** @return what `time` says; POD_E_NOMEM; POD_E_RANGE when windows would have over 2^22 steps */
pod_status pod_serving_run(const pod_serving_args *args, pod_serving_time *time, void *context,
                           pod_serving_result *result, pod_error *err);
