/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/program_collectives.h  Groups of chips, permutes and algorithms of a program's collectives.
 *
 *  Threads: none. Errors: those of hlo/program.h. */
#pragma once

#include "hlo/program_plan.h"

/** Fill program->run_as and the shared groups, permutes and algorithms. */
pod_status pod_hlo_collectives_plan(pod_hlo_program *program, pod_error *err);
