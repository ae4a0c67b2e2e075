/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/findings.h  What a run has to say beside its rows, as data: sentences, and tables with units.
 *
 *  Model: a list of findings in the order in which they are read. A finding is a sentence, or a heading with a table
 *  below it, whose columns are those of base/emit.h and whose rows are structs; each row also says how it reads as
 *  text. Text prints sentences and rows as lines above the table of results, below it, or on stderr after it. JSON has
 *  the key "findings" beside "rows", an object each:
 *
 *      {"id":"mesh","text":"Mesh:","columns":[{"name":"axis","title":"axis","unit":""},…],"rows":[{"axis":"data",…}]}
 *      {"id":"busiest_link","text":"Busiest link: …"}
 *
 *  so that a page made from it says the same.
 *
 *  Errors: running out of memory is remembered; pod_findings_print tells. Ownership: storage of the caller, initialised
 *  with {0}; ids are static, all else is copied; pod_findings_fini. Threads: none. */
#pragma once

#include "base/emit.h"
#include "base/text.h"

/** Where text has it. */
typedef enum pod_finding_place {
    POD_FINDING_ABOVE, /**< heading of the results */
    POD_FINDING_BELOW, /**< below them */
    POD_FINDING_AFTER, /**< on stderr after them (the caller says it) */
    POD_FINDING_DATA   /**< nowhere: only JSON has it */
} pod_finding_place;

typedef struct pod_finding {
    const char *id; /**< "time", "remedy": what it is about */
    pod_finding_place place;
    pod_text text;   /**< the sentence, or the heading */
    pod_emit *table; /**< its rows as data, or NULL */
    int ncolumns;
    pod_text lines; /**< its rows as text, a line each */
} pod_finding;

typedef struct pod_findings {
    pod_finding *list;
    int count;
    int64_t room;
    bool out_of_memory;
} pod_findings;

void pod_findings_fini(pod_findings *findings);

/** Add a sentence, without the end of its line. */
__attribute__((format(printf, 4, 5))) void pod_findings_say(pod_findings *findings,
                                                            pod_finding_place place, const char *id,
                                                            const char *format, ...);
/** Begin a table below a heading, which may be "": rows that come next are its own.
 *  @param columns  all with fields (POD_FIELD) */
__attribute__((format(printf, 5, 6))) void
pod_findings_table(pod_findings *findings, const char *id, const pod_emit_column *columns,
                   int ncolumns, const char *format, ...);
/** A row of the table that was begun last, and how it reads; NULL: not in text. */
__attribute__((format(printf, 3, 4))) void pod_findings_row(pod_findings *findings, const void *row,
                                                            const char *format, ...);

/** A table that was emitted in json, for data only; the findings own it. */
void pod_findings_adopt(pod_findings *findings, const char *id, const char *heading,
                        pod_emit *table);

/** The finding that was added last is said elsewhere: only JSON has it here. */
void pod_findings_data_only(pod_findings *findings);

/** Headings only, for rows that come before the rest is known: pod_findings_print doesn't repeat them. */
void pod_findings_head(pod_findings *findings, pod_emit *emit);
/** Headings, notes and the key "findings" into an emitter. POD_E_NOMEM. */
pod_status pod_findings_print(const pod_findings *findings, pod_emit *emit, pod_error *err);
