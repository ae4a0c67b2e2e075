/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/table.h  A CSV table in memory, with positions for error messages.
 *
 *  Model: the first row names the columns; every later row has as many fields. RFC 4180 quoting,
 *  LF or CRLF, an optional UTF-8 BOM, a last line without newline. libcsv does the parsing
 *  (strict). Refused with file:line:column: an empty file, an empty or duplicate column name, a row
 *  of the wrong width, stray quotes, NUL bytes. Readers of figures refuse NaN, infinities, text
 *  after the number, and values out of range.
 *
 *  Ownership: the table owns all strings it returns. Threads: none.
 *  Errors: POD_E_IO (can't be read), POD_E_TABLE (contents), POD_E_NOMEM. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pod_table pod_table;

/** Parse a table from memory. Not collective.
 *  @param name  what errors call it, e.g. "topologies/chips.csv"
 *  @param data  `size` bytes, borrowed for the call */
pod_status pod_table_parse(const char *name, const char *data, size_t size, pod_table **table,
                           pod_error *err);
void pod_table_free(pod_table *table);

int pod_table_rows(const pod_table *table); /**< without the header */
int pod_table_columns(const pod_table *table);
const char *pod_table_name(const pod_table *table);
/** Column index of a name, or -1. */
int pod_table_column(const pod_table *table, const char *column);
const char *pod_table_column_name(const pod_table *table, int column);

/** Require that the header is exactly this set of columns (any order), or, with allow_more, at
 *  least this set. @param columns  `ncolumns` names */
pod_status pod_table_expect(const pod_table *table, const char *const *columns, int ncolumns,
                            bool allow_more, pod_error *err);

/** Field as text, never NULL. Indices from 0; must be in range. */
const char *pod_table_text(const pod_table *table, int row, int column);
/** Position of a field in the file (from 1), for pod_fail_at. */
void pod_table_position(const pod_table *table, int row, int column, int *line, int *file_column);
/** POD_E_TABLE at this field. */
__attribute__((format(printf, 5, 6))) pod_status pod_table_fail(const pod_table *table, int row,
                                                                int column, pod_error *err,
                                                                const char *format, ...);

/** Field as a finite number in [min, max]. */
pod_status pod_table_double(const pod_table *table, int row, int column, double min, double max,
                            double *value, pod_error *err);
/** Field as a finite number in [min, max], or *present = false and *value = 0 when empty. */
pod_status pod_table_optional_double(const pod_table *table, int row, int column, double min,
                                     double max, double *value, bool *present, pod_error *err);
pod_status pod_table_i64(const pod_table *table, int row, int column, int64_t min, int64_t max,
                         int64_t *value, pod_error *err);
/** First row whose `column` holds `text`, or -1. */
int pod_table_find(const pod_table *table, int column, const char *text);
/** Refuse two rows with the same text in all `nkeys` columns. */
pod_status pod_table_unique(const pod_table *table, const int *key_columns, int nkeys,
                            pod_error *err);
