/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/emit.h  One emitter for `--format table|csv|json`.
 *
 *  Model: a result is a list of rows with the same columns. A column says which field of a row it shows
 *  (pod_emit_fields); where none says it, calls name a cell by order of the columns.
 *  - table: aligned columns with the unit line of nccl-tests (numbers right, text left); doubles to
 *    `decimals` digits; below them the notes, which only the table shows. With lines above the table
 *    (pod_emit_heading) it reads as that of nccl-tests: all lines but the rows begin with "#", and
 *    columns whose value those lines give can stay out of it (`table_hidden`).
 *  - csv: one header line, then the rows, quoted where RFC 4180 asks for it.
 *  - json: {"schema":1,"command":…,"rows":[{…}]}, a row per line, and what pod_emit_member adds.
 *  - a table that must fit a terminal (pod_emit_fit) leaves out columns without any figure and minor ones, cuts texts,
 *    breaks the other lines at blanks, and says which columns are missing.
 *  Doubles in csv and json read back exactly (pod_format_double). NaN and infinity are never
 *  emitted (POD_ASSERT). Text is UTF-8.
 *
 *  Rows can be handed over one by one (pod_emit_take): of csv; of a table whose columns are laid out before the first
 *  (pod_emit_settle).
 *
 *  Output goes to memory; pod_emit_finish hands the whole text over, so that nothing half-written
 *  stays on disk. Ownership: the emitter copies what it is given. Threads: none. */
#pragma once

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pod_format { POD_FORMAT_TABLE, POD_FORMAT_CSV, POD_FORMAT_JSON } pod_format;

/** What a field of a row is, which a cell shows. */
typedef enum pod_emit_field {
    POD_FIELD_TEXT,   /**< const char *; NULL or "" is none */
    POD_FIELD_CHARS,  /**< char[]; "" is none */
    POD_FIELD_I32,    /**< int32_t; INT32_MIN is none */
    POD_FIELD_I64,    /**< int64_t; INT64_MIN is none */
    POD_FIELD_BOOL,   /**< bool, as 0 or 1 */
    POD_FIELD_DOUBLE, /**< double; NaN is none */
    POD_FIELD_US,     /**< int64_t, picoseconds shown in microseconds; INT64_MIN is none */
    POD_FIELD_S       /**< the same in seconds */
} pod_emit_field;

/** The field of a column, for its initialiser; POD_TIME_FIELD says the unit of a time, US or S. */
#define POD_FIELD(type, member)                                                                    \
    .field = _Generic(((type *)NULL)->member,                                                      \
        const char *: POD_FIELD_TEXT,                                                              \
        char *: POD_FIELD_CHARS,                                                                   \
        int32_t: POD_FIELD_I32,                                                                    \
        int64_t: POD_FIELD_I64,                                                                    \
        bool: POD_FIELD_BOOL,                                                                      \
        double: POD_FIELD_DOUBLE),                                                                 \
    .offset = offsetof(type, member)
#define POD_TIME_FIELD(type, member, unit)                                                         \
    .field = POD_FIELD_##unit, .offset = offsetof(type, member)

typedef struct pod_emit_column {
    const char *name;  /**< CSV and JSON name, e.g. "time_us" */
    const char *title; /**< table heading; NULL = name */
    const char *unit;  /**< second heading line of the table, e.g. "us"; NULL = none */
    int decimals;      /**< digits after the point of a double in the table; -1 = shortest exact */
    bool percent;      /**< the table shows 100 times a double, csv and json the double */
    bool table_hidden; /**< only in csv and json */
    bool terminal;     /**< tables have it only with pod_emit_fit; csv and json always */
    int minor; /**< where a table must fit a width, columns with the largest go first; 0: last */
    pod_emit_field field; /**< what pod_emit_fields shows */
    size_t offset;        /**< of it in a row */
} pod_emit_column;

typedef struct pod_emit pod_emit;

/** @param command  e.g. "collective"; @param columns  `ncolumns`, copied. Not collective. */
pod_status pod_emit_new(pod_format format, const char *command, const pod_emit_column *columns,
                        int ncolumns, pod_emit **emit, pod_error *err);
void pod_emit_free(pod_emit *emit);

/** Next cell of the current row; a row ends after its last column. */
void pod_emit_text(pod_emit *emit, const char *value);
void pod_emit_i64(pod_emit *emit, int64_t value);
void pod_emit_double(pod_emit *emit, double value);
/** "-" in table and csv, null in json. */
void pod_emit_none(pod_emit *emit);
/** The next `count` cells of the current row, from the fields of a row; and so many of none. */
void pod_emit_fields(pod_emit *emit, const void *row, int count);
void pod_emit_nones(pod_emit *emit, int count);

/** A line above the table ("# " is put in front); ignored in csv and json. */
__attribute__((format(printf, 2, 3))) void pod_emit_heading(pod_emit *emit, const char *format,
                                                            ...);
/** A free line below the table; ignored in csv and json. */
__attribute__((format(printf, 2, 3))) void pod_emit_note(pod_emit *emit, const char *format, ...);

/** A further member of the object that json is, "rows" apart: a list. Once; ignored in table and csv.
 *  @param items  its items, as JSON, copied; @param utf8  false: they hold a text that isn't UTF-8 */
void pod_emit_member(pod_emit *emit, const char *name, const char *items, bool utf8);
/** JSON is wanted beside the format: before the first row. */
void pod_emit_keep_json(pod_emit *emit);
/** What format json would print, appended. Every cell of the last row must have been given (POD_ASSERT).
 *  @return POD_E_INVALID if a text isn't UTF-8; POD_E_NOMEM */
pod_status pod_emit_json(pod_emit *emit, pod_text *out, pod_error *err);
/** Columns and rows of a json emitter as members of an object that is being written:
 *  `,"columns":[…],"rows":[…]`. @return false if a text isn't UTF-8 */
bool pod_emit_table_json(pod_emit *emit, pod_text *out);

enum { POD_EMIT_WIDE = -1 };

/** A table is for a terminal of so many columns, of which it needs no more; POD_EMIT_WIDE: its columns for terminals,
 *  too, and as wide as it gets. Without effect on csv and json. */
void pod_emit_fit(pod_emit *emit, int width);

/** The rows so far were samples: a table's columns become as wide as these need, and the rows go away. A later number
 *  that is wider loses decimals, a text is cut. Once, after pod_emit_fit and all headings; csv only drops its
 *  samples; not for json. POD_E_NOMEM */
pod_status pod_emit_settle(pod_emit *emit, pod_error *err);
/** What has been added to csv or a settled table since the last call: first the lines above its rows. Owned by the
 *  emitter until the next call. POD_E_NOMEM */
pod_status pod_emit_take(pod_emit *emit, const char **text, size_t *size, pod_error *err);

/** What was given so far, for who wants values and not a text. A row must be whole (POD_ASSERT). */
int pod_emit_column_count(const pod_emit *emit);
const char *pod_emit_column_name(const pod_emit *emit, int index);
int64_t pod_emit_row_count(const pod_emit *emit);
/** @param[out] text    owned by the emitter; of a number, too, as csv has it; NULL = none
 *  @param[out] number  NaN where there is none */
void pod_emit_cell(const pod_emit *emit, int64_t row, int index, const char **text, double *number);

/** The number of the only row in the column of a name. Every cell of it must have been given (POD_ASSERT).
 *  @return POD_E_USAGE: other than one row, no such column, or no number there; POD_E_NOMEM */
pod_status pod_emit_figure(const pod_emit *emit, const char *name, double *value, pod_error *err);

/** The whole text, or what was not taken of it, owned by the emitter, `*size` bytes without the final NUL.
 *  Every cell of the last row must have been given (POD_ASSERT). POD_E_NOMEM if any call before ran out of memory,
 *  POD_E_INVALID if a text in json is not UTF-8. */
pod_status pod_emit_finish(pod_emit *emit, const char **text, size_t *size, pod_error *err);

/** The finished text into a file, whole or not at all. Not collective. @return as pod_emit_finish and pod_file_write */
pod_status pod_emit_write(pod_emit *emit, const char *path, pod_error *err);
