/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/program.h  What a chip does in one step: a list of ops with dependencies.
 *
 *  Model: every chip of a pipeline stage runs the same program (SPMD). An op uses one resource
 *  (program/op_kinds.h has a row a kind):
 *
 *      matmul, conv, vector, attention, compute
 *                                the chip's core: one at a time, in program order
 *      copy                      HBM, beside the core: on a lane, one copy at a time, in the order
 *                                in which they become ready
 *      collective                links between the chips of a group (ICI), and between slices (DCN);
 *                                starts as soon as its dependencies are done, any number at once
 *      send, recv                a message to or from the same chip of another stage
 *      host                      the host's processors, one op at a time, or PCIe to the chip
 *      join                      nothing: it ends when its dependencies have, or when another op begins
 *
 *  Compute and copy ops say what they need themselves: a start, then unit time and bytes through the HBM at
 *  once, whichever takes longer. The HBM is one resource: core and copies share it fairly in the
 *  fluid limit. The other ops of the core have their HBM time within, as if they had it to themselves.
 *
 *  A collective may run an algorithm of its own instead of the step's (pod_program_algorithm), a permute may
 *  go by a list of sources instead of by a shift (pod_program_permute).
 *
 *  An op may start when all ops it depends on are done. Dependencies point backwards (dep < op), so
 *  program order is a topological order. How far ahead gathers run is a dependency like any other.
 *
 *  Traces (exchange/) give every chip a program of its own: stage and chip are one then, core ops begin in the order in
 *  which they become ready (ready_order), and the chips of a collective find each other by its number (meeting), not by
 *  its place in one program.
 *
 *  Numerics. With real data an op also computes: on *buffers*, row-major matrices of one chip's shard.
 *  An op reads `in` and writes `out` (and for matmuls may add to it); the arithmetic is in
 *  program/exec.h. Collectives move `in` to `out`:
 *
 *      all-reduce      out = sum over the group of in                     [r, c] → [r, c]
 *      all-gather      out = the shards of the group one after the other along `dim`
 *      reduce-scatter  out = this chip's shard along `dim` of the sum of in
 *      permute         out = in of the chip `shift` positions before in the group's order
 *
 *  All-reduces, and vector functions, may work in place (in = out).
 *
 *  Position of a chip in its group: position_of_rank[rank] of the program's group. Timing-only
 *  programs have the same ops; buffers then only say sizes.
 *
 *  Memory. Persistent buffers live for the whole step; others from their first writer to their last
 *  reader, in program order. What a loop over layers keeps from forward to backward is one stacked
 *  array on a TPU and leaves as a whole: buffers of one stack (program/memory.h).
 *
 *  Ownership: init/fini; the program owns all it points to. Building functions may fail for memory
 *  only and say so once, in pod_program_finish. Threads: read-only once finished. */
#pragma once

#include "base/dtype.h"
#include "base/map.h"
#include "base/units.h"
#include "chip/attention.h"
#include "chip/conv.h"
#include "chip/grouped.h"
#include "collectives/schedule/schedule.h"
#include "collectives/xla/xla_choice.h"
#include "program/op_kinds.h"

#include <stdbool.h>

enum { POD_OP_INPUTS_MAX = 3, POD_OP_TOUCHES_MAX = 4, POD_OP_NONE = -1, POD_PROGRAM_AXES_MAX = 64 };
/** Lanes for copies: the DMA engines, and the SparseCores. */
enum { POD_LANE_COPY, POD_LANE_SPARSE, POD_PROGRAM_LANES };

/** Arithmetic of a vector op, elementwise unless said otherwise; a, b, c = in[0..2], in f32 with
 *  the result rounded to out's dtype. */
typedef enum pod_vector_function {
    POD_VEC_NONE,      /**< time only */
    POD_VEC_COPY,      /**< a */
    POD_VEC_RELU,      /**< max(a, 0) */
    POD_VEC_RELU_GRAD, /**< a > 0 ? b : 0 */
    POD_VEC_ADD,       /**< a + b */
    POD_VEC_SUB,       /**< a - b */
    POD_VEC_SGD,       /**< a - rate · b */
    POD_VEC_MOMENTUM,  /**< 0.9 · a + b */
    POD_VEC_ZERO,      /**< 0 */
    /* Adam at its first step, moments 0 before it: weight a, gradient b, moments m and v */
    POD_VEC_ADAM_M, /**< 0.9 · a + 0.1 · b */
    POD_VEC_ADAM_V, /**< 0.999 · a + 0.001 · b² */
    POD_VEC_ADAM_W  /**< a - rate · (b/0.1) / (sqrt(c/0.001) + 1e-8), b and c the moments */
} pod_vector_function;

/** Kinds of memory, as `--memory` lists them. */
#define POD_MEMORY_KIND_LIST(X)                                                                    \
    X(POD_MEMORY_WEIGHTS, "weights")                                                               \
    X(POD_MEMORY_OPTIMIZER, "optimizer")                                                           \
    X(POD_MEMORY_GRADIENTS, "gradients")                                                           \
    X(POD_MEMORY_ACTIVATIONS, "activations")                                                       \
    X(POD_MEMORY_GATHERED, "gathered")                                                             \
    X(POD_MEMORY_INPUT, "input")                                                                   \
    X(POD_MEMORY_CACHE, "kv_cache")                                                                \
    X(POD_MEMORY_LOGITS, "logits")                                                                 \
    X(POD_MEMORY_COPIES, "copies")
#define POD_MEMORY_KIND_ENUM(id, name) id,
typedef enum pod_memory_kind {
    POD_MEMORY_KIND_LIST(POD_MEMORY_KIND_ENUM) POD_MEMORY_KINDS
} pod_memory_kind;
#undef POD_MEMORY_KIND_ENUM

/** What a buffer stands for. */
typedef enum pod_buffer_use {
    POD_BUFFER_WHOLE, /**< memory, and with real data the numbers in it */
    POD_BUFFER_SIZE,  /**< memory alone */
    POD_BUFFER_NUMBERS /**< numbers alone (program/numbers.h): made when first written, gone after its last reader */
} pod_buffer_use;

typedef struct pod_buffer {
    const char *name; /**< "w1.0"; of the program's names */
    pod_memory_kind kind;
    pod_buffer_use use;
    bool persistent; /**< lives from before the step to after it */
    bool given;      /**< is there before the step and lives until its last reader */
    int32_t made;    /**< op that makes it without touching it; POD_OP_NONE */
    int32_t stack;   /**< buffers with the same number >= 0 leave together; -1: by itself */
    pod_dtype dtype;
    int64_t rows; /**< of one chip's shard */
    int64_t columns;
} pod_buffer;

/** Chips that work together in collectives. A copy of what mesh/device_mesh.h gives. */
typedef struct pod_program_group {
    char axes[POD_PROGRAM_AXES_MAX]; /**< mesh axes it spans, "fsdp" or "data,fsdp" */
    pod_group group;                 /**< of one slice, or of all if it spans several */
    int32_t *position_of_rank;       /**< position_of_rank[group.size]: place along the mesh axes */
} pod_program_group;

/** How a collective runs, where an op says so. */
typedef struct pod_program_algorithm {
    const char *name;             /**< "auto", or a row of the registry; static */
    const struct pod_msccl *file; /**< of the algorithm `file`, which lives longer, else NULL */
    bool given; /**< xla only: `wish` says how; where that can't be, xla's rules do */
    pod_xla_wish wish;
} pod_program_algorithm;

/** A permute over the chips of a slice: each receives from one chip at most. */
typedef struct pod_program_permute {
    int32_t *source_of; /**< source_of[chip of the slice], -1 = receives nothing */
} pod_program_permute;

typedef struct pod_op {
    const char *name; /**< "fwd.gather.w1": without the layer, so that equal ops have equal names */
    /* What few ops have lies apart: programs have hundreds of thousands. The caller's until the op is added, then the
     * program's own copy. */
    const pod_attention_args *attention; /**< of attention */
    /** of matmul: a grouped matmul, whose m, k, n are these, too; NULL: a plain one */
    const pod_grouped_args *grouped;
    const pod_conv_args *conv; /**< of conv; m, k, n are those of its product, to tell them apart */
    pod_op_kind kind;
    int32_t layer;     /**< -1 = none */
    int32_t first_dep; /**< program->deps[first_dep … first_dep + ndeps) */
    int32_t ndeps;
    int32_t in[POD_OP_INPUTS_MAX];     /**< buffers, POD_OP_NONE */
    int32_t out;                       /**< buffer, POD_OP_NONE */
    int32_t touch[POD_OP_TOUCHES_MAX]; /**< further buffers that must be there, POD_OP_NONE; an op
                                            without data has all of its buffers here */
    bool recomputed; /**< does again for the backward pass what forward did and did not keep */
    bool transpose_a;
    bool transpose_b;
    bool accumulate;      /**< of matmul: add to out */
    bool weights_in_vmem; /**< of matmul: its second operand is there already */
    bool sustained;       /**< of matmul and conv: at what a long step sustains (mxu_step_frac) */
    bool unpadded;        /**< of all-reduces: not padded to whole blocks */
    /** of compute and host: its time was measured, so that slow chips take no longer */
    bool recorded;
    /** of the products of a matmul, which sets its speed; of a collective's elements */
    pod_dtype dtype;
    /* matmul: out[m, n] (+)= op(a)[m, k] · op(b)[k, n], `count` of them one after another */
    int64_t m;
    int64_t k;
    int64_t n;
    int64_t count;
    int64_t prefetch_bytes; /**< of core ops: weights that the next one needs, fetched beside */
    /* vector */
    pod_time_ps fixed_ps; /**< besides its operations and bytes */
    double flops;         /**< elementwise operations */
    double rate;          /**< of POD_VEC_SGD */
    int64_t hbm_bytes;    /**< read and written; of vector, compute and copy */
    /* compute and copy: start_ps, then both unit_ps and hbm_bytes */
    pod_time_ps start_ps;
    pod_time_ps unit_ps;
    pod_vector_function function; /**< of vector */
    int32_t lane;                 /**< of a copy: POD_LANE_… */
    /** what the op computes instead: the first in program->numbers; POD_OP_NONE */
    int32_t numbers;
    /* collective, send, recv, host */
    int64_t bytes; /**< full buffer per chip, as in CLI.md; of a message for send, recv, host */
    pod_time_ps host_ps; /**< host: work on the host that moves nothing (bytes = 0) */
    pod_coll_op op;
    int32_t group;   /**< index in program->groups */
    int dim;         /**< of gathers and scatters: 0 rows, 1 columns; of all-to-alls what is cut */
    int dim_out;     /**< of all-to-alls: what the pieces are put together along */
    int32_t shift;   /**< of permutes: positions ahead in the group's order */
    int32_t root;    /**< of broadcasts: rank in the group */
    int32_t sources; /**< of permutes: index in programs->permutes, or POD_OP_NONE: by shift */
    int32_t algorithm; /**< index in programs->algorithms, or POD_OP_NONE: the step's */
    int32_t to_stage;  /**< of send: stage that receives; of recv: stage that sends */
    /** of send and recv: the same number on both sides; the tag of programs that match */
    int32_t message;
    /* of traces */
    /** of collectives: the same number on all chips that meet; POD_OP_NONE: one program's */
    int32_t meeting;
    int32_t begins;   /**< of join: it ends when this op begins; POD_OP_NONE: when it is ready */
    int32_t priority; /**< of collectives that wait for their turn: the highest goes first */
} pod_op;

static inline bool pod_op_is_core(const pod_op *op)
{
    return pod_op_row(op->kind)->resource == POD_ON_CORE;
}

static inline bool pod_op_is_collective(const pod_op *op)
{
    return pod_op_row(op->kind)->resource == POD_ON_LINKS;
}

static inline bool pod_op_sends(const pod_op *op)
{
    return pod_op_row(op->kind)->resource == POD_ON_SEND;
}

static inline bool pod_op_receives(const pod_op *op)
{
    return pod_op_row(op->kind)->resource == POD_ON_RECV;
}

/** Names of ops and buffers, each once: those of layers are the same again and again. */
typedef struct pod_program_names {
    char **name; /**< name[count] */
    int32_t count;
    pod_map index; /**< in name, by 128 bits of two hashes */
} pod_program_names;

typedef struct pod_program {
    int32_t stage; /**< pipeline stage that runs it; 0 without a pipeline */
    int32_t nops;
    pod_op *ops;
    int32_t napart;
    void **apart;            /**< own what attention, grouped and conv of ops[i] point to */
    pod_program_names names; /**< own what ops[i].name and buffers[i].name point to */
    int32_t ndeps;
    int32_t *deps;
    int32_t entry;   /**< ops added without dependencies wait for this one; POD_OP_NONE: for none */
    bool recomputes; /**< while building: ops added now are recomputed ones */
    int32_t nbuffers;
    pod_buffer *buffers;
    int32_t nnumbers;
    struct pod_number *numbers; /**< numbers[nnumbers] (program/numbers.h) */
    double model_flops; /**< useful FLOPs of one chip in the step, as the model counts them */
    bool out_of_memory; /**< while building; pod_program_finish tells */
} pod_program;

/** The programs of all stages and what they share. */
typedef struct pod_programs {
    int32_t nstages;
    pod_program *stages; /**< stages[nstages] */
    int32_t ngroups;
    pod_program_group *groups;
    bool memory_only; /**< for their memory alone: groups have their axes, and no chips */
    int32_t nalgorithms;
    pod_program_algorithm *algorithms;
    int32_t npermutes;
    pod_program_permute *permutes;
    bool ready_order;  /**< of core ops, instead of that of the program */
    int32_t nmeetings; /**< of collectives that chips with programs of their own have together */
    /** a message goes to the receive that was ready first of those that ask for its sender
     * (to_stage; POD_OP_NONE = any) and its tag (message; POD_OP_NONE = any) */
    bool matches;
    /* of the chips of all slices, slice after slice; NULL when nstages is 1 */
    int32_t *stage_of; /**< stage_of[chip] */
    /** place_of[chip]: the same for the chips of all stages with equal other coordinates */
    int32_t *place_of;
    int32_t *chip_at; /**< chip_at[place · nstages + stage] */
} pod_programs;

/* ---- building ---- */

/** Start an empty program. */
void pod_program_init(pod_program *program, int32_t stage);
void pod_program_fini(pod_program *program);
void pod_programs_fini(pod_programs *programs);

/** Slices that a group spans; 1 = it lies inside one. */
static inline int32_t pod_program_group_slices(const pod_program_group *group)
{
    return group->group.slices > 1 ? group->group.slices : 1;
}

/** The chip of a stage that exchanges messages with a chip of another. */
static inline int32_t pod_programs_stage_chip(const pod_programs *programs, int32_t chip,
                                              int32_t stage)
{
    return programs->chip_at[programs->place_of[chip] * programs->nstages + stage];
}

/** Mesh axes that a communicating op spans, "pipeline" for messages between stages, "messages" of
 *  traces; NULL of other ops. */
const char *pod_programs_axes(const pod_programs *programs, const pod_op *op);
/** The op that receives what an op of a stage sends; the programs are finished (pod_programs_finish). */
const pod_op *pod_programs_receiver(const pod_programs *programs, int32_t stage,
                                    const pod_op *send);

/** Add a buffer; returns its index. The name is copied. */
int32_t pod_program_buffer(pod_program *program, const char *name, pod_memory_kind kind,
                           bool persistent, pod_dtype dtype, int64_t rows, int64_t columns);
/** Bytes of a buffer. */
int64_t pod_buffer_bytes(const pod_buffer *buffer);
/** Add an op; returns its index. The op, its name and what it points to are copied, its first_dep and ndeps set.
 *  @param deps  `ndeps` ops; POD_OP_NONE entries and repeats are skipped */
int32_t pod_program_op(pod_program *program, const pod_op *op, const int32_t *deps, int ndeps);
/** An op with the fields that mean "nothing" set so: buffers and group POD_OP_NONE, count 1. */
pod_op pod_op_make(pod_op_kind kind, const char *name, int32_t layer);

/** Empty programs of so many chips, one each: stage and chip are one. POD_E_NOMEM. */
pod_status pod_programs_by_chip(pod_programs *programs, int32_t nchips, pod_error *err);
/** Take a group over into what programs share, unless it is there already: positions are ranks, and its name the
 *  physical axes that it spans, "xy", "-" of a list of chips. @param[out] number  its place. POD_E_NOMEM */
pod_status pod_programs_group(pod_programs *programs, pod_group *group, int32_t *number,
                              pod_error *err);
/** The chips that a permute moves things from: source_of[chip of all], -1 = it receives nothing. Local.
 *  @param nchips  of all slices */
void pod_programs_sources(const pod_programs *programs, const pod_op *op, int32_t nchips,
                          int32_t *source_of);
/** The same for the sources of a permute. @param source_of  source_of[chips], heap, taken over in any case */
pod_status pod_programs_permute(pod_programs *programs, int32_t *source_of, int32_t chips,
                                int32_t *number, pod_error *err);
/** The same for an algorithm, which is copied. */
pod_status pod_programs_algorithm(pod_programs *programs, const pod_program_algorithm *algorithm,
                                  int32_t *number, pod_error *err);

/** Check one program: deps point backwards, buffers and groups exist, shapes of matmuls, vectors,
 *  collectives and messages fit their buffers.
 *  @return POD_E_INTERNAL naming the op; POD_E_NOMEM if building ran out of memory */
pod_status pod_program_finish(const pod_programs *programs, const pod_program *program,
                              pod_error *err);
/** Check all programs, and that each message has one sender and one receiver with the same bytes. */
pod_status pod_programs_finish(const pod_programs *programs, pod_error *err);

const char *pod_memory_kind_name(pod_memory_kind kind);
