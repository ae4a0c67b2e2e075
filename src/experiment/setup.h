/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/setup.h  A slice ready to simulate, and what is made of it.
 *
 *  Model: a slice (a spec, an accelerator type, or a table of a slice file) with its wrap and its faults,
 *  its chip under some rates, its router, and the hosts and the data-centre network that join several
 *  slices. From a setup come the machine that runs (net/machine.h) and the requests for collectives
 *  (collectives/schedule/algorithm.h), so that each of their fields is filled in one place.
 *
 *  Slow cables. What crosses one takes as long as it; what goes round it shares links with others. Which is quicker
 *  hangs on the question, so whoever runs one with `auto`, a step or a program tries both: the setup, and its detour,
 *  the same slice with its slowest cables dead, which may have a detour of its own.
 *
 *  Ownership: init/fini on the caller's storage; a setup must not move once it is initialised (the
 *  router borrows the slice), and borrows the tables it was made from. Threads: one per rank. */
#pragma once

#include "chip/chip.h"
#include "collectives/schedule/algorithm.h"
#include "dcn/dcn.h"
#include "experiment/experiment.h"
#include "experiment/tables.h"
#include "ici/route.h"
#include "net/machine.h"

/** Texts in the notation of the options, as "0,0,0:+x". */
typedef struct pod_experiment_texts {
    int count;
    const char *const *text; /**< text[count] */
} pod_experiment_texts;

typedef struct pod_experiment_setup_request {
    const char *slice;     /**< "v5p:4x4x4", "2*v6e:16x16", "v5p-128"; not looked at with a file */
    const pod_table *file; /**< a slice file, or NULL */
    const char *wrap;      /**< NULL = as the table says */
    pod_rates rates;
    pod_experiment_texts settings; /**< KEY=VALUE of chips.csv */
    pod_experiment_texts fail_links;
    pod_experiment_texts slow_links;
    pod_experiment_texts slow_chips;
    pod_experiment_texts slow_hosts;
    pod_experiment_texts slow_nics;
    pod_experiment_texts failed_dcn;
    bool hosts_work; /**< hosts of a single slice have something to do, so that they may be slow */
} pod_experiment_setup_request;

typedef struct pod_experiment_setup pod_experiment_setup;
struct pod_experiment_setup {
    pod_slice slice;
    pod_chip_spec chip;
    pod_router *router;
    pod_dcn dcn; /**< what joins the slices when there are several */
    bool listed; /**< the slice is in slices.csv; else its wrap is by rule */
    /** NULL: no cable is slow, or nothing holds the slice together without them */
    pod_experiment_setup *detour;
};

/** Not collective.
 *  @param[out] setup  for pod_experiment_setup_fini, also after an error
 *  @return POD_E_USAGE, POD_E_INVALID, POD_E_TABLE, POD_E_NOMEM */
pod_status pod_experiment_setup_init(pod_experiment_setup *setup,
                                     const pod_experiment_setup_request *request,
                                     const pod_experiment_tables *tables, pod_error *err);
void pod_experiment_setup_fini(pod_experiment_setup *setup);

/** Chips of all slices. */
int32_t pod_experiment_setup_chips(const pod_experiment_setup *setup);
/** Faults of any kind. */
int pod_experiment_setup_faults(const pod_experiment_setup *setup);

/** How the faults of a setup are changed. */
typedef enum pod_experiment_fault_change {
    POD_FAULTS_NONE,    /**< there are none */
    POD_FAULT_REPAIRED, /**< one is not there */
    POD_FAULT_OUT       /**< one, a slow cable, is dead */
} pod_experiment_fault_change;

/** The same slice with other faults, for comparison. Not collective.
 *  @param fault  its number: those of chips and links first, then those of hosts
 *  @return POD_E_INVALID if a slice without the cable falls apart */
pod_status pod_experiment_setup_changed(pod_experiment_setup *changed,
                                        const pod_experiment_setup *setup,
                                        pod_experiment_fault_change change, int fault,
                                        pod_error *err);
/** "chip 1,2,3", "link 1,2:+x", "NICs of host 3 of slice 0"; "1.3 times slower", "dead", "lost". @return buf */
const char *pod_experiment_fault_name(const pod_experiment_setup *setup, int fault, char *buf,
                                      size_t size);
const char *pod_experiment_fault_state(const pod_experiment_setup *setup, int fault, char *buf,
                                       size_t size);
/** "--fail-link 1,2:+x", what takes a slow cable out of all slices. @return false, and "": it is no such fault */
bool pod_experiment_fault_out_option(const pod_experiment_setup *setup, int fault, char *buf,
                                     size_t size);

/** At most one rank per chip: POD_E_USAGE. Not collective. */
pod_status pod_experiment_ranks_check(const pod_experiment_setup *setup, const pod_par *par,
                                      pod_error *err);
/** Refuse sizes whose sums of times and bytes over all links would leave 64 bits: all chips' bytes on one
 *  link, or one chip's on its share of the DCN, may take 20 hours. Not collective.
 *  @return POD_E_RANGE */
pod_status pod_experiment_bytes_check(const pod_experiment_setup *setup, double link_bytes_per_s,
                                      int64_t bytes, pod_error *err);

/** What a chip's figures say of hosts and network. */
void pod_experiment_dcn_rates(pod_dcn_options *options, const pod_chip_spec *chip);
/** The hosts of a slice's chips, and the network between slices, without faults. Not collective.
 *  @return what pod_dcn_init says */
pod_status pod_experiment_dcn_init(pod_dcn *dcn, const pod_slice *slice, const pod_chip_spec *chip,
                                   pod_error *err);

/** The machine of a setup: borrows it, and the experiment for progress.
 *  @param link_bytes_per_s  rate in force; @param launch_ps  see machine.h */
pod_machine pod_experiment_machine(pod_experiment *experiment, const pod_experiment_setup *setup,
                                   double link_bytes_per_s, pod_time_ps launch_ps);

/** A collective of `bytes` per chip on groups of a setup, which it borrows; the caller may add root, source_of or
 *  file.
 *  @param link_bytes_per_s  rate in force
 *  @param bytes             whole elements of dtype */
pod_coll_request pod_experiment_coll_request(const pod_experiment_setup *setup,
                                             const pod_group *group, double link_bytes_per_s,
                                             pod_coll_op op, int64_t bytes, pod_dtype dtype);
