/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/gnuplot.h  Run gnuplot on a script. Threads: none. */
#pragma once

#include "base/status.h"
#include "base/text.h"

/** What gnuplot writes to its standard output for a script. Not collective.
 *  @param[out] picture  appended to
 *  @return POD_E_IO when it is not installed, can't be run, or refuses the script (with its words);
 *          POD_E_NOMEM */
pod_status pod_gnuplot_run(const pod_text *script, pod_text *picture, pod_error *err);
