/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/page.h  One HTML file that shows one or more runs, and opens without network.
 *
 *  Model: the page is the parts of page/ (its text, style and programs, with uPlot for curves) around the data of
 *  the runs: what `--format json` prints of each, and the events of a timeline (report/trace.h) where there is one. The
 *  page's own programs draw the views from these, so that text, JSON and page say the same. Data beyond
 *  POD_PAGE_PLAIN_MAX is deflated (zlib) and written in base64.
 *
 *  Hostile names can't become markup: in the data `<`, `>` and `&` are escaped, and the programs make text nodes only.
 *
 *  Threads: none. */
#pragma once

#include "base/status.h"

#include <stddef.h>

enum { POD_PAGE_PLAIN_MAX = 256 << 10 };

/** A run as JSON texts; both borrowed. */
typedef struct pod_page_run {
    const char *result; /**< an object of --format json */
    size_t result_size;
    const char *trace; /**< of pod_trace_finish; NULL = no timeline */
    size_t trace_size;
} pod_page_run;

/** Is `path` a page that can be written: does it end in .html? POD_E_USAGE. */
pod_status pod_page_path_check(const char *path, pod_error *err);

/** What a text of --format json is, or why it is none.
 *  @param name  of the file, for errors
 *  @param[out] command  "step", heap, for free(); @param[out] rows  how many
 *  @return POD_E_TABLE with the place; POD_E_NOMEM */
pod_status pod_page_run_check(const char *name, const char *text, size_t size, char **command,
                              int64_t *rows, pod_error *err);

/** Write the page of `count` runs to `path`, whole or not at all. Not collective.
 *  @param version  of podsim, for the last line
 *  @return POD_E_IO: a part of the page is missing, or the file can't be written; POD_E_NOMEM */
pod_status pod_page_write(const char *path, const char *version, const pod_page_run *runs,
                          int count, pod_error *err);
