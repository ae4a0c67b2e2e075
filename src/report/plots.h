/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/plots.h  The pictures of podsim's commands, from plain figures.
 *
 *  Each adds one or two panels to a plot (report/plot.h). Threads: none.
 *  Errors: POD_E_NOMEM; POD_E_INVALID when nothing of the figures can be drawn, with the reason. */
#pragma once

#include "ici/slice.h"
#include "report/plot.h"

#include <stdint.h>

enum { POD_PLOT_NAME_MAX = 192 };

/** A collective by one algorithm at one size. */
typedef struct pod_plot_collective_row {
    char series[POD_PLOT_NAME_MAX]; /**< slice and algorithm: rows of one name are one curve */
    double bytes;
    double time_us;
    double busbw_GBps;
    double bound_us;   /**< 0 = none */
    double bus_factor; /**< busbw / algbw, for the bound's bandwidth */
} pod_plot_collective_row;
/** Bus bandwidth and time against size, each with its bound. Sizes of 0 are left out.
 *  @param rows  in order of sizes within a series */
pod_status pod_plot_collectives(pod_plot *plot, const char *title,
                                const pod_plot_collective_row *rows, int count, pod_error *err);
/** The same of traffic: throughput a chip (busbw_GBps) and time of a burst against bytes; with `load` throughput and
 *  latency of open-loop traffic against load, which is in `bytes`. */
pod_status pod_plot_traffic(pod_plot *plot, const char *title, bool load,
                            const pod_plot_collective_row *rows, int count, pod_error *err);

enum { POD_PLOT_PARTS = 6 };
/** Where a step's time goes, in seconds: compute that HBM doesn't bound, exposed ICI, DCN, compute that HBM bounds,
 *  exposed host, idle. */
typedef struct pod_plot_step_row {
    char label[POD_PLOT_NAME_MAX];
    double part_s[POD_PLOT_PARTS];
} pod_plot_step_row;
/** A stacked bar for each layout, from top to bottom. */
pod_status pod_plot_steps(pod_plot *plot, const char *title, const pod_plot_step_row *rows,
                          int count, pod_error *err);

/** Elasticities: by how many % the step becomes shorter when a resource is 1 % faster.
 *  @param names  names[count] */
pod_status pod_plot_elasticities(pod_plot *plot, const char *title, const char *const *names,
                                 const double *elasticity, int count, pod_error *err);

/** A choice that costs something and takes some time. */
typedef struct pod_plot_front_row {
    const char *series; /**< rows of one name have one colour */
    const char *label;
    double cost;
    double time_s;
    /** no other row is both cheaper and faster: it is labelled, and joined to the others of the
     * front */
    bool front;
} pod_plot_front_row;
/** Time of a step against cost, both positive. @param cost_label  with its unit */
pod_status pod_plot_front(pod_plot *plot, const char *title, const char *cost_label,
                          const pod_plot_front_row *rows, int count, pod_error *err);

/** An operation below its roofs. */
typedef struct pod_plot_roof_row {
    char label[64];
    double intensity; /**< FLOPs per byte through HBM */
    double ops_per_s;
} pod_plot_roof_row;
/** FLOP rate against intensity, both logarithmic, below the roofs of the MXU and the HBM, which meet at the ridge. Rows
 *  without FLOPs or bytes are left out. */
pod_status pod_plot_roofline(pod_plot *plot, const char *title, const pod_plot_roof_row *rows,
                             int count, double peak_ops_per_s, double hbm_bytes_per_s,
                             pod_error *err);

/** A published figure and podsim's. */
typedef struct pod_plot_validation_row {
    const char *class_name; /**< rows of a class have one colour */
    double published;
    double predicted;
} pod_plot_validation_row;
/** Predicted over published against published: 1 is exact, dashed lines are 10 % off. Positive figures only. */
pod_status pod_plot_validation(pod_plot *plot, const pod_plot_validation_row *rows, int count,
                               pod_error *err);

/** A slice: chips, cables, those that wrap or are twisted, faults, and what its links carry. */
typedef struct pod_plot_slice_args {
    const pod_slice *slice;
    const char *title;
    /** busy_frac[chip * POD_DIRECTIONS + direction], 0 to 1; NULL = no colours */
    const double *busy_frac;
    /** axis_of[chip * POD_DIRECTIONS + direction]: mesh axis that a cable serves, -1 = none;
     * NULL = no mesh */
    const int32_t *axis_of;
    const char *const *axis_names; /**< axis_names[naxes] */
    int naxes;
} pod_plot_slice_args;
pod_status pod_plot_slice(pod_plot *plot, const pod_plot_slice_args *args, pod_error *err);
