/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/op_kinds.h  The kinds of ops, one row each: all that differs between them but their building.
 *
 *  A new kind is a row here, the functions that the row names where none fits (beside those in op_time.c, finish.c and
 *  exec.c), and what builds its ops. Simulation, bounds, breakdowns and traces go by the row. */
#pragma once

/** What an op occupies. */
typedef enum pod_op_resource {
    POD_ON_CORE,   /**< the chip's core: one op at a time, in program order */
    POD_ON_LANE,   /**< a lane for copies beside the core */
    POD_ON_LINKS,  /**< links between the chips of a group, of one slice or several */
    POD_ON_SEND,   /**< links to the same chip of another stage */
    POD_ON_RECV,   /**< ends when the message from there has arrived */
    POD_ON_HOST,   /**< the host's processors, or PCIe to the chip */
    POD_ON_NOTHING /**< no time: it ends when it is ready */
} pod_op_resource;

/** What says how long an op takes. */
typedef enum pod_op_pace {
    POD_PACE_KNOWN, /**< its time, known beforehand */
    POD_PACE_HBM,   /**< a start, then unit time and bytes through an HBM shared with others */
    POD_PACE_NET    /**< messages over links */
} pod_op_pace;

/** The unit of the core that a breakdown counts an op to. */
typedef enum pod_op_unit { POD_UNIT_NONE, POD_UNIT_MXU, POD_UNIT_VPU } pod_op_unit;

/** X(kind, name, resource, pace, unit, time, FLOPs of the MXU, check of its buffers, arithmetic on real data).
 *  The last four name functions: time_… and flops_… of op_time.c, check_… of finish.c, exec_… of exec.c; none is
 *  nothing to count, check or compute. */
/* clang-format off */
#define POD_OP_KIND_LIST(X) \
    X(POD_OP_MATMUL,     "matmul",     POD_ON_CORE,  POD_PACE_KNOWN, POD_UNIT_MXU,  matmul, matmul, matmul, matmul) \
    X(POD_OP_CONV,       "conv",       POD_ON_CORE,  POD_PACE_KNOWN, POD_UNIT_MXU,  conv, conv, conv, conv) \
    X(POD_OP_VECTOR,     "vector",     POD_ON_CORE,  POD_PACE_KNOWN, POD_UNIT_VPU,  vector, none, vector, vector) \
    X(POD_OP_ATTENTION,  "attention",  POD_ON_CORE,  POD_PACE_KNOWN, POD_UNIT_MXU,  attention, attention, none, none) \
    X(POD_OP_COMPUTE,    "compute",    POD_ON_CORE,  POD_PACE_HBM,   POD_UNIT_NONE, said, none, work, none) \
    X(POD_OP_COPY,       "copy",       POD_ON_LANE,  POD_PACE_HBM,   POD_UNIT_NONE, said, none, work, none) \
    X(POD_OP_COLLECTIVE, "collective", POD_ON_LINKS, POD_PACE_NET,   POD_UNIT_NONE, said, none, collective, none) \
    X(POD_OP_SEND,       "send",       POD_ON_SEND,  POD_PACE_NET,   POD_UNIT_NONE, said, none, message, none) \
    X(POD_OP_RECV,       "recv",       POD_ON_RECV,  POD_PACE_NET,   POD_UNIT_NONE, said, none, message, none) \
    X(POD_OP_HOST,       "host",       POD_ON_HOST,  POD_PACE_KNOWN, POD_UNIT_NONE, said, none, none, none) \
    X(POD_OP_JOIN,       "join",       POD_ON_NOTHING, POD_PACE_KNOWN, POD_UNIT_NONE, said, none, none, none)
/* clang-format on */

#define POD_OP_KIND_ENUM(kind, name, resource, pace, unit, time, flops, check, exec) kind,
typedef enum pod_op_kind { POD_OP_KIND_LIST(POD_OP_KIND_ENUM) } pod_op_kind;
#undef POD_OP_KIND_ENUM

typedef struct pod_op_kind_row {
    const char *name; /**< "matmul", … */
    pod_op_resource resource;
    pod_op_pace pace;
    pod_op_unit unit;
} pod_op_kind_row;

/** What is said of a kind. */
static inline const pod_op_kind_row *pod_op_row(pod_op_kind kind)
{
#define POD_OP_KIND_ROW(kind, name, resource, pace, unit, time, flops, check, exec)                \
    [kind] = {name, resource, pace, unit},
    static const pod_op_kind_row rows[] = {POD_OP_KIND_LIST(POD_OP_KIND_ROW)};
#undef POD_OP_KIND_ROW
    return &rows[kind];
}
