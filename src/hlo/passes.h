/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/passes.h  To which pass of a training step an instruction belongs.
 *
 *  Model: JAX marks op_names by the transformations that made them; the first mark that is there counts:
 *
 *      rematted_computation    recompute
 *      transpose(              backward
 *      jvp(                    forward
 *      none                    update; forward if nothing in the whole text is differentiated
 *
 *  An instruction without op_name, as the compiler's own copies and combined collectives have none, belongs to the pass
 *  of the loop, call or branch that runs it.
 *
 *  Threads: none. Not collective. Errors: POD_E_NOMEM. */
#pragma once

#include "hlo/analysis.h"

typedef enum pod_hlo_pass {
    POD_HLO_FORWARD,
    POD_HLO_RECOMPUTE,
    POD_HLO_BACKWARD,
    POD_HLO_UPDATE_PASS,
    POD_HLO_PASSES
} pod_hlo_pass;

/** @param[out] passes  passes[instruction]; for free(), NULL after an error */
pod_status pod_hlo_passes_new(const pod_hlo_analysis *analysis, pod_hlo_pass **passes,
                              pod_error *err);

/** "forward", … static. */
const char *pod_hlo_pass_name(pod_hlo_pass pass);
