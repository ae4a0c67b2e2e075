/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/plan_slices.h  The slices and prices of `podsim plan`.
 *
 *  Ownership: init/fini on the caller's storage. Threads: one per rank. */
#pragma once

#include "cli/cli.h"
#include "experiment/market.h"

typedef struct pod_plan_slices {
    int count;
    pod_experiment_setup *setup; /**< setup[count] */
} pod_plan_slices;

/** Slices that a list names: specs ("v5p:4x4x8", "2*v6e:16x16", "v5p-128"), generations ("v5e": all its rows of
 *  slices.csv) and patterns ("v5p:*", "2*v5e:*"). Each once, in the list's order, those of a pattern as in
 *  slices.csv. Not collective.
 *  @param list       NULL = all rows of slices.csv
 *  @param max_chips  NULL = 256 for generations and patterns; specs are taken as they are
 *  @return POD_E_USAGE (unknown generation; nothing within max_chips), what pod_experiment_setup_init says */
pod_status pod_plan_slices_init(pod_plan_slices *slices, const pod_experiment_market *market,
                                const char *list, const char *max_chips, pod_error *err);
void pod_plan_slices_fini(pod_plan_slices *slices);

enum { POD_PLAN_PRICES_MAX = 16 };

/** Of a chip for an hour. */
typedef struct pod_plan_prices {
    int count;
    char chip[POD_PLAN_PRICES_MAX][16];
    double price[POD_PLAN_PRICES_MAX];
} pod_plan_prices;

/** "v5e=1.2,v6e=2.7". @param text  NULL = none. POD_E_USAGE. */
pod_status pod_plan_prices_read(pod_plan_prices *prices, const pod_cli *cli, const char *text,
                                pod_error *err);
/** POD_E_USAGE when prices are given, but not of every chip that is considered. */
pod_status pod_plan_prices_check(const pod_plan_prices *prices, const pod_plan_slices *slices,
                                 pod_error *err);
/** 1 without prices, which makes costs chip-hours; -1 for a chip that prices leave out. */
double pod_plan_price(const pod_plan_prices *prices, const char *chip);
