/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/command_list.h  The commands of podsim.
 *
 *  X(name, summary) stands for a `pod_cmd_<name>` in cmd_<name>.c. Adding a command is that file and a row here. */
#pragma once

#include "cli/cli.h"

/* clang-format off */
#define POD_COMMAND_LIST(X) \
    X(slice, "what a slice is: chips, hosts, links, distances, bisection") \
    X(list, "the tables: chips, slices, models, algorithms") \
    X(chip, "one chip: peaks, memories, the ladder from VMEM to DCN, with sources") \
    X(matmul, "a matmul on one chip") \
    X(attention, "an attention kernel on one chip") \
    X(copy, "a copy on one chip: in HBM, or between host and HBM") \
    X(elementwise, "elementwise work on one chip") \
    X(collective, "all-reduce, all-gather, ..., and how near they come to the bound") \
    X(traffic, "point-to-point traffic on a slice") \
    X(mesh, "how a logical mesh lies on a slice") \
    X(step, "a training step under one layout, and where its time goes") \
    X(compare, "a step under many layouts, fastest first") \
    X(serve, "a server under load: tokens a second, time to the first token and between tokens") \
    X(plan, "which slice, and which layout on it") \
    X(hlo, "a program that the TPU compiler wrote: its step time, and where it goes") \
    X(chakra, "Chakra execution traces: their step on a slice, and where its time goes") \
    X(profile, "where the time of a measured step went, by a profile of XProf") \
    X(report, "a page from one or more runs, as --format json printed them") \
    X(validate, "published measurements rerun, and how far off they come out") \
    X(host, "this machine, and how chips are placed on ranks")
/* clang-format on */

#define POD_COMMAND_DECLARE(name, summary) pod_cli_run pod_cmd_##name;
POD_COMMAND_LIST(POD_COMMAND_DECLARE)
#undef POD_COMMAND_DECLARE
