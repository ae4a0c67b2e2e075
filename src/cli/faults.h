/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/faults.h  What faults cost, in words below a table.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/faults.h"
#include "report/findings.h"

/** "faults: WHAT1.625 s, without 1.251 s: +29.9 %; chips wait 0.364 s for chip 1,2,3 (1.3 times slower)", and a line
 *  for each slow cable: whether it would be better out. Nothing without faults.
 *  @param what    what ran, as "fsdp=64: ", or ""
 *  @param how     by what it ran, as " (tree)", or ""; @param how_healthy  likewise without faults
 *  @param wait_s  of a chip in the mean, for the blamed one */
typedef struct pod_faults_words {
    const char *what;
    const char *how;
    const char *how_healthy;
    double wait_s;
} pod_faults_words;
void pod_faults_note(pod_findings *findings, const pod_experiment_faults *faults,
                     const pod_faults_words *words);
/** Repairing the blamed one gains 1 % at least: no other remedy comes first. */
bool pod_faults_are_remedied(const pod_experiment_faults *faults);
/** That remedy. @return false: it gains less */
bool pod_faults_note_remedy(pod_findings *findings, const pod_experiment_faults *faults,
                            const char *of);
