/* SPDX-License-Identifier: Apache-2.0 */
/** @file api/rows.h  An answer of libpodsim: every cell of a command's rows, and the structs of podsim.h made of them.
 *
 *  Ownership: podsim_result owns everything. Threads: one. */
#pragma once

#include "api/podsim.h"

#include "base/emit.h"
#include "base/text.h"

/** The struct of a command's rows. */
typedef struct pod_api_kind {
    const char *command;
    size_t size;
    const struct pod_api_field *fields;
    int nfields;
} pod_api_kind;

typedef struct pod_api_cell {
    char *text;    /* NULL = none */
    double number; /* NaN = none */
} pod_api_cell;

struct podsim_result {
    const pod_api_kind *kind; /* NULL: the command has no struct */
    size_t nrows;
    size_t ncolumns;
    char **columns;      /* columns[ncolumns] */
    pod_api_cell *cells; /* row by row */
    char *rows;          /* nrows structs */
    pod_text json;
    pod_text messages;
};

/** @param command  as "step" */
podsim_result *pod_api_result_new(const char *command, pod_error *err);
/** Take over what an emitter was given, in place of what was there. POD_E_NOMEM.
 *  @param result  a podsim_result (pod_cli_taker) */
pod_status pod_api_result_take(void *result, const pod_emit *emit, pod_error *err);
/** Columns that the structs name and a result of their command lacks, appended to `out`, a line each: for tests. */
void pod_api_result_missing(const podsim_result *result, pod_text *out);
