/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/xla/xla_choice.h  Which collective the TPU compiler picks for a slice, and how to
 * run it.
 *
 *  Model: the compiler (libtpu 0.0.42.1) decides from shape and size alone, by a few rules that
 *  reproduce every reported row of tests/data/xla (docs/xla.md has the evidence and the gaps).
 *
 *  All-reduce over the axes of a group (axes of one chip don't count):
 *   1. *Colours*: orders of axes whose phases keep different axes busy at the same time.
 *        equal sizes                       one colour per axis
 *        k,k,2k or k,2k,2k; 2D: k,2k       one per axis, though the phases are unequal
 *        two of three equal                two: the equal axes change places, the third comes last
 *        else                              one, and one axis of the group is busy at a time
 *   2. *Way*: with colours of equal rings of at most 8 chips (the last of three phases doesn't
 * count) a colour becomes two one-way streams that go round in opposite directions; otherwise it is
 * one stream that goes both ways at once.
 *   3. *Short form* (small payloads; never on v4): unequal colours are not used, streams go
 *      both ways. It is refused for an axis of more than 192 chips, which leaves the same streams
 * in the long form.
 *   4. Whole 2x2 and 2x4 slices of 2D chips: one ring through all chips. Whole twisted slices:
 * three colours over the closed rings of 2k,k,k or 2k,2k,k chips. All-gather: axis by axis (ag2d,
 * ag3d) when every ring of the group is closed (an axis of 2 is), else one ring (ag1d).
 * Reduce-scatter: the all-reduce's streams without their second half, or one ring (rs1d). Either
 * ring gives way to the short form when a chip's share is at most 16 KiB. All-to-all: direct.
 *
 *  Running a choice. The payload is cut into `streams` equal parts, one per stream; a both-way
 *  stream cuts its part into two halves, one for each direction (a "pincer"). With phases p = 0, 1,
 * … of a stream, over rings of n_p chips along axis[p]:
 *
 *      all-reduce of 4x4x16, 4xone        stream 0   stream 1   stream 2   stream 3
 *        reduce-scatter phase 0           y plus     x plus     y minus    x minus
 *                       phase 1           x plus     y plus     x minus    y minus
 *                       phase 2           z plus     z plus     z minus    z minus
 *        all-gather: phases 2, 1, 0, the same axes and directions
 *
 *   - reduce-scatter phase p: on each ring, the block that a chip holds is cut into n_p; after it
 * the chip owns the sum over that ring of one n_p-th. Then phase p + 1 works on that.
 *   - all-gather: the phases in reverse order. All-reduce is both, one after the other.
 *   - direction +1 or -1: n_p - 1 steps to that neighbour. 0: each half goes its own way.
 *   - short form: the same phases and streams, for latency: blocks go straight to their owners by
 *     the shorter way round, max(1, floor(n_p / 2)) hops a phase, without waiting for others.
 *   - ring: one phase over a cycle through all chips of the group (snake order on open slices).
 *   - direct: every chip sends each other chip its block over the minimal routes.
 *  On a line (an open axis of more than two chips) a ring's missing link is a walk back along the
 * line. A slice's z links carry little in the example: that is what the compiler does, and the
 * point.
 *
 *  Ownership: a choice is plain storage of the caller; its strings are static or inside it.
 *  Threads: none (no state). Errors: POD_E_INVALID and POD_E_RANGE, for arguments only. */
#pragma once

#include "base/status.h"
#include "ici/generation.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    POD_XLA_AXES_MAX = 3,
    POD_XLA_STREAMS_MAX = 6,
    POD_XLA_ORDERS_MAX = 32, /**< "yxz/xzy/zyx/yxz/xzy/zyx" */
    POD_XLA_NAME_MAX = 64
};

typedef enum pod_xla_op {
    POD_XLA_ALL_REDUCE,
    POD_XLA_ALL_GATHER,
    POD_XLA_REDUCE_SCATTER,
    POD_XLA_ALL_TO_ALL
} pod_xla_op;

typedef struct pod_xla_query {
    const pod_generation *generation; /**< borrowed; NULL: the rules of v6e (2D), v5p (3D) */
    int naxes;                        /**< axes of the chip's slices, 1 to 3 */
    int dims[POD_XLA_AXES_MAX]; /**< chips along x, y, z, each >= 1. A group over parts of axes: the
                                     shape of the group, as if it were the slice */
    bool wrap[POD_XLA_AXES_MAX]; /**< the axis is closed */
    bool twisted;                /**< only for k,k,2k and k,2k,2k in any order */
    pod_xla_op op;
    unsigned axes; /**< axes of the group, bit a = axis a */
    int64_t bytes; /**< the whole payload, as everywhere in podsim, >= 0 */
} pod_xla_query;

typedef enum pod_xla_form {
    POD_XLA_FORM_NONE,    /**< a group of one chip: nothing moves */
    POD_XLA_FORM_STREAMS, /**< phases along axes */
    POD_XLA_FORM_RING,    /**< all-reduce over one ring through all chips of the group */
    POD_XLA_FORM_AG1D, /**< all-gather: one ring, along an axis or through all chips of the group */
    POD_XLA_FORM_AG2D, /**< all-gather: axis by axis */
    POD_XLA_FORM_AG3D,
    POD_XLA_FORM_RS1D, /**< reduce-scatter: one ring, as ag1d */
    POD_XLA_FORM_DIRECT
} pod_xla_form;

typedef enum pod_xla_way { POD_XLA_BOTH, POD_XLA_ONE } pod_xla_way;

/** What one stream does: the phases of its reduce-scatter; its all-gather runs them backwards. */
typedef struct pod_xla_stream {
    int nphases;
    int axis[POD_XLA_AXES_MAX];       /**< 0 = x; -1 = the ring through all chips of the group */
    int ring_chips[POD_XLA_AXES_MAX]; /**< on twisted slices those of the closed rings, 2k before k
                                       */
    int direction;                    /**< +1, -1, or 0 = both, half the stream each way */
} pod_xla_stream;

typedef struct pod_xla_choice {
    pod_xla_form form;
    bool short_form; /**< the latency form */
    pod_xla_way way;
    int streams; /**< 0 for none and direct */
    pod_xla_stream stream[POD_XLA_STREAMS_MAX];
    /** Orders as the compiler reports them: "yxz/xzy/zyx", "ring", "" = nothing to report. Beyond
     *  the colours it repeats a table of its own (rule 2 of docs/xla.md), so when fewer colours
     * than axes go one way, stream[] says what runs and this says what the compiler prints. */
    char orders[POD_XLA_ORDERS_MAX];
    char name[POD_XLA_NAME_MAX]; /**< "xla:4xone:yxz/xyz/zyx/yxz", "xla:short:3xboth:…", "xla:ag1d"
                                  */
    const char *emitter;         /**< the compiler's class, "" for none; static */
    const char *caveat; /**< why the rules are unproven here, "" where rows back them; static, or
                            of the generation */
} pod_xla_choice;

/** How a collective shall run, instead of what the rules say: what a compiled program says of it. */
typedef struct pod_xla_wish {
    pod_xla_form form; /**< any but NONE */
    pod_xla_way way;   /**< these four of STREAMS */
    bool short_form;
    int streams; /**< going one way the second half walks the first half's orders in the other direction */
    int nphases;                                      /**< 0 = one, along the group's only axis */
    int order[POD_XLA_STREAMS_MAX][POD_XLA_AXES_MAX]; /**< order[stream][phase] = axis, 0 = x */
} pod_xla_wish;

/** The choice that a wish comes to for a group. Not collective.
 *  @param[out] choice  untouched on error; its emitter is ""
 *  @return POD_OK; POD_E_INVALID: the group hasn't the axes that the wish names, or what pod_xla_choose says */
pod_status pod_xla_choose_as(const pod_xla_query *query, const pod_xla_wish *wish,
                             pod_xla_choice *choice, pod_error *err);

/** What the compiler picks. Not collective.
 *  @param[out] choice  untouched on error
 *  @return POD_OK; POD_E_INVALID: no such axes, sizes, operation or twist; POD_E_RANGE: a slice of
 * more than 2^31 - 1 chips. */
pod_status pod_xla_choose(const pod_xla_query *query, pod_xla_choice *choice, pod_error *err);
