/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/emit_state.h  What an emitter holds: shared by its table and CSV (emit.c) and its JSON (emit_json.c). */
#pragma once

#include "base/emit.h"
#include "base/text.h"

typedef enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER } cell_kind;

/* A cell holds its final text; JSON puts quotes around CELL_TEXT and writes null for CELL_NONE. A number is kept
 * as well. */
typedef struct cell {
    cell_kind kind;
    double number;
    bool rounded; /* the text is; JSON formats the number anew */
    char *text;
} cell;

typedef struct column {
    char *name;
    char *title;
    char *unit;       /* "(us)", or "" */
    char *plain_unit; /* "us", or "" */
    int decimals;
    double scale; /* what the table shows is so many times the number */
    bool table_hidden;
    bool terminal;
    int minor;
    pod_emit_field field;
    size_t offset;
} column;

struct pod_emit {
    pod_format format;
    int width; /* 0 = any; POD_EMIT_WIDE */
    char *command;
    column *columns;
    int ncolumns;
    cell *cells; /* row-major */
    size_t ncells;
    int64_t cells_room;
    size_t taken; /* cells that pod_emit_take has handed over */
    pod_text headings;
    pod_text notes;
    pod_text output;
    bool json;       /* is, or will be, asked for */
    pod_text member; /* of json: ,"findings":[…] */
    /* settled[ncolumns]: how columns are laid out before their rows are there; or NULL */
    struct layout *settled;
    bool started; /* the lines above the rows have been put, or handed over */
    bool cut;     /* a text was */
    bool out_of_memory;
    bool not_utf8;
};

/** POD_E_NOMEM if any call ran out of memory. */
static inline pod_status pod_emit_memory_check(const pod_emit *emit, pod_error *err)
{
    return emit->out_of_memory || emit->headings.out_of_memory || emit->notes.out_of_memory
                   || emit->output.out_of_memory || emit->member.out_of_memory
               ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
               : POD_OK;
}

/** POD_E_INVALID if a text isn't UTF-8. */
static inline pod_status pod_emit_utf8_check(const pod_emit *emit, pod_error *err)
{
    return emit->not_utf8
               ? pod_fail(err, POD_E_INVALID, "json output needs names in UTF-8; use csv or table")
               : POD_OK;
}

/** The object that JSON is, appended. */
void pod_emit_json_render(pod_emit *emit, pod_text *out);
