/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/rates.h  Which figures of chips.csv are in force, and how long its names and shapes are.
 *
 *      measured  data sheet times efficiencies, plus launch costs, fitted to published measurements
 *      book      constants of the scaling book, no launch cost, no losses; where the book has no
 *                figure, 0.9 of the vendor's link rate and the vendor's other figures
 *      vendor    data sheet, no launch cost, no losses
 *
 *  Threads: any. */
#pragma once

#include "base/status.h"

enum { POD_CHIP_NAME_SIZE = 16, POD_CHIP_AXES = 3 };

typedef enum pod_rates { POD_RATES_MEASURED, POD_RATES_BOOK, POD_RATES_VENDOR } pod_rates;

/** Name of rates, static. Not collective. */
const char *pod_rates_name(pod_rates rates);
