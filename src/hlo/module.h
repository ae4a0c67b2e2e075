/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/module.h  An HLO text in memory: the program that every chip of a slice executes.
 *
 *  Model: computations hold instructions; an instruction has a shape, operands (earlier instructions
 *  of its computation) and attributes, and may call computations. All instructions lie in one array in
 *  the order of the text, computations likewise; names and shapes are shared numbers.
 *
 *      computation c   instruction[c.first .. c.first + c.count), root c.root
 *      instruction i   operand[i.operands .. + i.noperands)       instruction numbers
 *                      attribute[i.attributes .. + i.nattributes)  those of POD_HLO_ATTRIBUTE_LIST
 *                      call[i.calls .. + i.ncalls)                 computations and their roles
 *
 *  Attributes that nothing reads aren't kept; values stay pieces of the text until somebody asks
 *  (hlo/attributes.h, hlo/config.h, hlo/groups.h, hlo/matmul.h, …).
 *
 *  Ownership: pod_hlo_parse allocates, pod_hlo_free frees; the text is borrowed and must live as
 *  long. Threads: read-only after pod_hlo_parse. */
#pragma once

#include "hlo/opcode.h"
#include "hlo/shape.h"

/** enumerator, name in the text */
#define POD_HLO_ATTRIBUTE_LIST(X)                                                                  \
    X(POD_HLO_AT_LITERAL, "") /* what a constant says, between its brackets */                     \
    X(POD_HLO_AT_CALLS, "calls")                                                                   \
    X(POD_HLO_AT_TO_APPLY, "to_apply")                                                             \
    X(POD_HLO_AT_BODY, "body")                                                                     \
    X(POD_HLO_AT_CONDITION, "condition")                                                           \
    X(POD_HLO_AT_BRANCHES, "branch_computations")                                                  \
    X(POD_HLO_AT_TRUE, "true_computation")                                                         \
    X(POD_HLO_AT_FALSE, "false_computation")                                                       \
    X(POD_HLO_AT_CALLED, "called_computations")                                                    \
    X(POD_HLO_AT_KIND, "kind")                                                                     \
    X(POD_HLO_AT_DIMENSIONS, "dimensions")                                                         \
    X(POD_HLO_AT_INDEX, "index")                                                                   \
    X(POD_HLO_AT_CHANNEL, "channel_id")                                                            \
    X(POD_HLO_AT_GROUPS, "replica_groups")                                                         \
    X(POD_HLO_AT_PAIRS, "source_target_pairs")                                                     \
    X(POD_HLO_AT_GLOBAL_IDS, "use_global_device_ids")                                              \
    X(POD_HLO_AT_WINDOW, "window")                                                                 \
    X(POD_HLO_AT_DIM_LABELS, "dim_labels")                                                         \
    X(POD_HLO_AT_FEATURE_GROUPS, "feature_group_count")                                            \
    X(POD_HLO_AT_BATCH_GROUPS, "batch_group_count")                                                \
    X(POD_HLO_AT_PRECISION, "operand_precision")                                                   \
    X(POD_HLO_AT_LHS_CONTRACTING, "lhs_contracting_dims")                                          \
    X(POD_HLO_AT_RHS_CONTRACTING, "rhs_contracting_dims")                                          \
    X(POD_HLO_AT_LHS_BATCH, "lhs_batch_dims")                                                      \
    X(POD_HLO_AT_RHS_BATCH, "rhs_batch_dims")                                                      \
    X(POD_HLO_AT_LHS_RAGGED, "lhs_ragged_dims")                                                    \
    X(POD_HLO_AT_RHS_GROUP, "rhs_group_dims")                                                      \
    X(POD_HLO_AT_SLICE, "slice")                                                                   \
    X(POD_HLO_AT_DYNAMIC_SLICE_SIZES, "dynamic_slice_sizes")                                       \
    X(POD_HLO_AT_SLICE_SIZES, "slice_sizes")                                                       \
    X(POD_HLO_AT_DIRECTION, "direction")                                                           \
    X(POD_HLO_AT_TARGET, "custom_call_target")                                                     \
    X(POD_HLO_AT_ALIASING, "output_to_operand_aliasing")                                           \
    X(POD_HLO_AT_THREAD, "async_execution_thread")                                                 \
    X(POD_HLO_AT_HOST_TRANSFER, "is_host_transfer")                                                \
    X(POD_HLO_AT_METADATA, "metadata")                                                             \
    X(POD_HLO_AT_FRONTEND, "frontend_attributes")                                                  \
    X(POD_HLO_AT_CONFIG, "backend_config")

#define POD_HLO_ATTRIBUTE_ENUM(id, name) id,
typedef enum pod_hlo_attribute_key {
    POD_HLO_ATTRIBUTE_LIST(POD_HLO_ATTRIBUTE_ENUM) POD_HLO_ATTRIBUTES
} pod_hlo_attribute_key;
#undef POD_HLO_ATTRIBUTE_ENUM

/** No such instruction, computation, name. */
#define POD_HLO_NONE UINT32_MAX

typedef struct pod_hlo_attribute {
    uint8_t key; /**< pod_hlo_attribute_key */
    pod_hlo_span value;
} pod_hlo_attribute;

typedef struct pod_hlo_call {
    uint32_t computation;
    uint32_t offset; /**< of its name, for errors */
    uint8_t role;    /**< the attribute that names it: calls, to_apply, body, … */
} pod_hlo_call;

typedef struct pod_hlo_instruction {
    uint32_t offset; /**< of its name in the text */
    uint32_t name;   /**< number of its name */
    uint32_t opcode_name;
    uint32_t shape;
    uint32_t computation;
    uint32_t operands;
    uint32_t noperands;
    uint32_t attributes;
    uint32_t calls;
    uint32_t ncalls;
    uint32_t number;     /**< of a parameter, or index of a get-tuple-element; else 0 */
    uint8_t opcode;      /**< pod_hlo_opcode */
    uint8_t phase;       /**< pod_hlo_phase */
    uint8_t nattributes; /**< each key at most once */
} pod_hlo_instruction;

typedef struct pod_hlo_computation {
    uint32_t offset; /**< of its name in the text */
    uint32_t name;
    uint32_t first; /**< its first instruction */
    uint32_t count;
    uint32_t root;
    uint32_t nparameters;
} pod_hlo_computation;

/** Tables of source lines before the computations, those of which something is looked up. */
typedef enum pod_hlo_table {
    POD_HLO_FILE_NAMES,
    POD_HLO_FILE_LOCATIONS,
    POD_HLO_STACK_FRAMES,
    POD_HLO_TABLES
} pod_hlo_table;

/** "3 {file_name_id=1 line=42}": number and rest of a line. */
typedef struct pod_hlo_row {
    int64_t id;
    pod_hlo_span value;
} pod_hlo_row;

typedef struct pod_hlo_module {
    const char *file;
    const char *text; /**< as given, or own_text */
    char *own_text;   /**< without what stood around it (hlo/source.h), or NULL */
    uint32_t size;
    pod_hlo_span name;
    int64_t partitions;     /**< num_partitions, 1 if absent */
    int64_t replicas;       /**< replica_count, 1 if absent */
    int64_t devices;        /**< replicas times partitions: chips of one slice that run it */
    pod_hlo_span alias;     /**< value of input_output_alias; empty = none */
    bool tiled;             /**< a tile stands somewhere in the text */
    bool scheduled;         /**< else its order is just that of the text */
    uint32_t entry;         /**< computation */
    pod_hlo_interned names; /**< of computations, instructions and opcodes */
    pod_hlo_shapes shapes;
    pod_hlo_computation *computation;
    pod_hlo_instruction *instruction;
    uint32_t *operand;
    pod_hlo_attribute *attribute;
    pod_hlo_call *call;
    /** computations such that callees come first: callee_first[ncomputations] */
    uint32_t *callee_first;
    uint32_t ncomputations;
    uint32_t ninstructions;
    uint32_t noperands;
    uint32_t nattributes;
    uint32_t ncalls;
    uint32_t capacity[5];             /**< of the five arrays above, in their order */
    pod_hlo_row *row[POD_HLO_TABLES]; /**< row[table][nrows[table]] */
    uint32_t nrows[POD_HLO_TABLES];
    uint32_t rows_capacity[POD_HLO_TABLES];
    /** unknown[nunknown]: names of opcodes that aren't known, each once, in their order */
    uint32_t *unknown;
    uint32_t nunknown;
    uint32_t unknown_capacity;
} pod_hlo_module;

/** How a file is read; NULL = as a scheduled text, or the only program of a binary file. */
typedef struct pod_hlo_reading {
    bool text_order;    /**< an unscheduled text is taken too, in its own order */
    const char *module; /**< name of the program, where a profile holds several; or NULL */
} pod_hlo_reading;

/** Read a text, or a program in binary form. Not collective.
 *  @param file   what errors call it
 *  @param text   `size` bytes, borrowed for the life of the module
 *  @param[out] module  NULL on error
 *  @return POD_E_INVALID with file, line and column for a text that isn't an optimized, partitioned and
 *          scheduled HLO module for TPUs, saying what to pass instead, or that is malformed;
 *          POD_E_RANGE (a limit of docs/commands/hlo.md, named), POD_E_NOMEM */
pod_status pod_hlo_parse(const char *file, const char *text, size_t size,
                         const pod_hlo_reading *reading, pod_hlo_module **module, pod_error *err);
void pod_hlo_free(pod_hlo_module *module);

/** Longest text, and most instructions, computations, partitions, nested calls. */
#define POD_HLO_TEXT_MAX         (INT64_C(64) << 20)
#define POD_HLO_INSTRUCTIONS_MAX (INT64_C(1) << 22)
#define POD_HLO_COMPUTATIONS_MAX (INT64_C(1) << 20)
#define POD_HLO_PARTITIONS_MAX   (INT64_C(1) << 20)
#define POD_HLO_NESTING_MAX      64

/* ---- what others ask of a module; all local, none fails ---- */

/** It begins here: in one piece, or as the start of an asynchronous pair. */
static inline bool pod_hlo_starts(const pod_hlo_instruction *instruction)
{
    return instruction->phase == POD_HLO_WHOLE || instruction->phase == POD_HLO_START;
}

/** It gives another name to what is there: bitcast, tuple, an element of one. */
static inline bool pod_hlo_only_names(const pod_hlo_instruction *instruction)
{
    return instruction->opcode == POD_HLO_BITCAST
           || instruction->opcode == POD_HLO_GET_TUPLE_ELEMENT
           || instruction->opcode == POD_HLO_TUPLE;
}

static inline const pod_hlo_instruction *
pod_hlo_operand(const pod_hlo_module *module, const pod_hlo_instruction *instruction, uint32_t i)
{
    return &module->instruction[module->operand[instruction->operands + i]];
}

static inline const pod_hlo_shape *pod_hlo_shape_of(const pod_hlo_module *module,
                                                    const pod_hlo_instruction *instruction)
{
    return &module->shapes.shape[instruction->shape];
}

static inline const int64_t *pod_hlo_dims(const pod_hlo_module *module, const pod_hlo_shape *shape)
{
    return shape->count == 0 ? NULL : &module->shapes.dim[shape->first];
}

/** Member `i` of a tuple shape. */
static inline uint32_t pod_hlo_member(const pod_hlo_module *module, const pod_hlo_shape *shape,
                                      uint32_t i)
{
    return module->shapes.member[shape->first + i];
}

/** Value of an attribute. @return false if the instruction doesn't have it */
bool pod_hlo_attribute_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_attribute_key key, pod_hlo_span *value);
/** Name of an attribute, static. */
const char *pod_hlo_attribute_name(pod_hlo_attribute_key key);
/** The computation called in a role; POD_HLO_NONE if there is none. */
uint32_t pod_hlo_callee(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        pod_hlo_attribute_key role);
/** The computation that a fusion (or a fusion-start) runs; POD_HLO_NONE of anything else. */
static inline uint32_t pod_hlo_fused(const pod_hlo_module *module,
                                     const pod_hlo_instruction *instruction)
{
    return instruction->opcode == POD_HLO_FUSION
                   && (instruction->phase == POD_HLO_WHOLE || instruction->phase == POD_HLO_START)
               ? pod_hlo_callee(module, instruction, POD_HLO_AT_CALLS)
               : POD_HLO_NONE;
}

/** A name of the module, for "%.*s". */
pod_hlo_span pod_hlo_name_of(const pod_hlo_module *module, uint32_t name);
/** Scan of a piece of the text. */
pod_hlo_scan pod_hlo_part(const pod_hlo_module *module, pod_hlo_span span, pod_error *err);
/** Record an error at an instruction. @return POD_E_INVALID */
__attribute__((format(printf, 4, 5))) pod_status
pod_hlo_fail_instruction(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         pod_error *err, const char *format, ...);
#ifdef __clang_analyzer__ /* as pod_fail in base/status.h */
#define pod_hlo_fail_instruction(...) (pod_hlo_fail_instruction(__VA_ARGS__), POD_E_INVALID)
#endif
