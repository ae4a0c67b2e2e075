/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/opcode.h  The opcodes that are known, and what they need.
 *
 *  Model: a name in the text is an opcode of the table, or one of its asynchronous forms NAME-start,
 *  NAME-update, NAME-done (send and recv have only done). Any other name is POD_HLO_OTHER: it costs
 *  what `elementwise` does and is listed as unknown.
 *
 *  Classes: of arithmetic opcodes each result element is one operation of the vector units; those
 *  that move only copy bytes. Threads: any (no state). */
#pragma once

#include "hlo/text.h"

typedef enum pod_hlo_class {
    POD_HLO_CLASS_NOTHING,    /**< no time: names, tuples, bitcasts */
    POD_HLO_CLASS_MATMUL,     /**< convolution, dot */
    POD_HLO_CLASS_ARITHMETIC, /**< one operation a result element */
    POD_HLO_CLASS_REDUCE,     /**< one operation an input element */
    POD_HLO_CLASS_WINDOW,     /**< window size operations a result element */
    POD_HLO_CLASS_MOVE,       /**< bytes only */
    POD_HLO_CLASS_GATHER,     /**< rows picked from a table */
    POD_HLO_CLASS_SORT,
    POD_HLO_CLASS_COLLECTIVE,
    POD_HLO_CLASS_TRANSFER, /**< send, recv */
    POD_HLO_CLASS_CALL,     /**< what it calls */
    POD_HLO_CLASS_CUSTOM,   /**< custom-call */
    POD_HLO_CLASS_UNKNOWN   /**< as elementwise, and listed */
} pod_hlo_class;

/* clang-format off */
/** enumerator, name, fewest operands, most operands (-1 = any number), class */
#define POD_HLO_OPCODE_LIST(X)                                             \
    X(PARAMETER, "parameter", 0, 0, NOTHING)                               \
    X(CONSTANT, "constant", 0, 0, NOTHING)                                 \
    X(GET_TUPLE_ELEMENT, "get-tuple-element", 1, 1, NOTHING)               \
    X(TUPLE, "tuple", 0, -1, NOTHING)                                      \
    X(BITCAST, "bitcast", 1, 1, NOTHING)                                   \
    X(AFTER_ALL, "after-all", 0, -1, NOTHING)                              \
    X(PARTITION_ID, "partition-id", 0, 0, NOTHING)                         \
    X(REPLICA_ID, "replica-id", 0, 0, NOTHING)                             \
    X(OPT_BARRIER, "opt-barrier", 1, 1, NOTHING)                           \
    X(DOMAIN, "domain", 1, 1, NOTHING)                                     \
    X(ADD_DEPENDENCY, "add-dependency", 2, 2, NOTHING)                     \
    X(CONVOLUTION, "convolution", 2, 2, MATMUL)                            \
    X(DOT, "dot", 2, 2, MATMUL)                                            \
    X(RAGGED_DOT, "ragged-dot", 3, 3, MATMUL)                              \
    X(FUSION, "fusion", 0, -1, CALL)                                       \
    X(CALL, "call", 0, -1, CALL)                                           \
    X(WHILE, "while", 1, 1, CALL)                                          \
    X(CONDITIONAL, "conditional", 1, -1, CALL)                             \
    X(ASYNC, "async", 0, -1, CALL)                                         \
    X(CUSTOM_CALL, "custom-call", 0, -1, CUSTOM)                           \
    X(ALL_GATHER, "all-gather", 1, -1, COLLECTIVE)                         \
    X(ALL_REDUCE, "all-reduce", 1, -1, COLLECTIVE)                         \
    X(REDUCE_SCATTER, "reduce-scatter", 1, -1, COLLECTIVE)                 \
    X(ALL_TO_ALL, "all-to-all", 1, -1, COLLECTIVE)                         \
    X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", 6, 6, COLLECTIVE)            \
    X(COLLECTIVE_PERMUTE, "collective-permute", 1, -1, COLLECTIVE)         \
    X(COLLECTIVE_BROADCAST, "collective-broadcast", 1, -1, COLLECTIVE)     \
    X(SEND, "send", 2, 2, TRANSFER)                                        \
    X(RECV, "recv", 1, 1, TRANSFER)                                        \
    X(COPY, "copy", 1, 1, MOVE)                                            \
    X(SLICE, "slice", 1, 1, MOVE)                                          \
    X(DYNAMIC_SLICE, "dynamic-slice", 1, -1, MOVE)                         \
    X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", 2, -1, MOVE)           \
    X(BROADCAST, "broadcast", 1, 1, MOVE)                                  \
    X(IOTA, "iota", 0, 0, MOVE)                                            \
    X(PAD, "pad", 2, 2, MOVE)                                              \
    X(CONCATENATE, "concatenate", 1, -1, MOVE)                             \
    X(RESHAPE, "reshape", 1, 1, MOVE)                                      \
    X(TRANSPOSE, "transpose", 1, 1, MOVE)                                  \
    X(REVERSE, "reverse", 1, 1, MOVE)                                      \
    X(BITCAST_CONVERT, "bitcast-convert", 1, 1, MOVE)                      \
    X(GATHER, "gather", 2, 2, GATHER)                                      \
    X(SCATTER, "scatter", 3, -1, GATHER)                                   \
    X(SORT, "sort", 1, -1, SORT)                                           \
    X(TOPK, "topk", 1, 1, SORT)                                            \
    X(REDUCE, "reduce", 2, -1, REDUCE)                                     \
    X(REDUCE_WINDOW, "reduce-window", 2, -1, WINDOW)                       \
    X(SELECT_AND_SCATTER, "select-and-scatter", 3, 3, WINDOW)              \
    X(ABS, "abs", 1, 1, ARITHMETIC)                                        \
    X(ADD, "add", 2, 2, ARITHMETIC)                                        \
    X(AND, "and", 2, 2, ARITHMETIC)                                        \
    X(ATAN2, "atan2", 2, 2, ARITHMETIC)                                    \
    X(CBRT, "cbrt", 1, 1, ARITHMETIC)                                      \
    X(CEIL, "ceil", 1, 1, ARITHMETIC)                                      \
    X(CLAMP, "clamp", 3, 3, ARITHMETIC)                                    \
    X(COMPARE, "compare", 2, 2, ARITHMETIC)                                \
    X(COMPLEX, "complex", 2, 2, ARITHMETIC)                                \
    X(CONVERT, "convert", 1, 1, ARITHMETIC)                                \
    X(COSINE, "cosine", 1, 1, ARITHMETIC)                                  \
    X(COUNT_LEADING_ZEROS, "count-leading-zeros", 1, 1, ARITHMETIC)        \
    X(DIVIDE, "divide", 2, 2, ARITHMETIC)                                  \
    X(ERF, "erf", 1, 1, ARITHMETIC)                                        \
    X(EXPONENTIAL, "exponential", 1, 1, ARITHMETIC)                        \
    X(EXPONENTIAL_MINUS_ONE, "exponential-minus-one", 1, 1, ARITHMETIC)    \
    X(FLOOR, "floor", 1, 1, ARITHMETIC)                                    \
    X(IMAG, "imag", 1, 1, ARITHMETIC)                                      \
    X(IS_FINITE, "is-finite", 1, 1, ARITHMETIC)                            \
    X(LOG, "log", 1, 1, ARITHMETIC)                                        \
    X(LOG_PLUS_ONE, "log-plus-one", 1, 1, ARITHMETIC)                      \
    X(LOGISTIC, "logistic", 1, 1, ARITHMETIC)                              \
    X(MAP, "map", 0, -1, ARITHMETIC)                                       \
    X(MAXIMUM, "maximum", 2, 2, ARITHMETIC)                                \
    X(MINIMUM, "minimum", 2, 2, ARITHMETIC)                                \
    X(MULTIPLY, "multiply", 2, 2, ARITHMETIC)                              \
    X(NEGATE, "negate", 1, 1, ARITHMETIC)                                  \
    X(NOT, "not", 1, 1, ARITHMETIC)                                        \
    X(OR, "or", 2, 2, ARITHMETIC)                                          \
    X(POPCNT, "popcnt", 1, 1, ARITHMETIC)                                  \
    X(POWER, "power", 2, 2, ARITHMETIC)                                    \
    X(REAL, "real", 1, 1, ARITHMETIC)                                      \
    X(REDUCE_PRECISION, "reduce-precision", 1, 1, ARITHMETIC)              \
    X(REMAINDER, "remainder", 2, 2, ARITHMETIC)                            \
    X(ROUND_AFZ, "round-nearest-afz", 1, 1, ARITHMETIC)                    \
    X(ROUND_EVEN, "round-nearest-even", 1, 1, ARITHMETIC)                  \
    X(RSQRT, "rsqrt", 1, 1, ARITHMETIC)                                    \
    X(SELECT, "select", 3, 3, ARITHMETIC)                                  \
    X(SHIFT_LEFT, "shift-left", 2, 2, ARITHMETIC)                          \
    X(SHIFT_RIGHT_ARITHMETIC, "shift-right-arithmetic", 2, 2, ARITHMETIC)  \
    X(SHIFT_RIGHT_LOGICAL, "shift-right-logical", 2, 2, ARITHMETIC)        \
    X(SIGN, "sign", 1, 1, ARITHMETIC)                                      \
    X(SINE, "sine", 1, 1, ARITHMETIC)                                      \
    X(SQRT, "sqrt", 1, 1, ARITHMETIC)                                      \
    X(STOCHASTIC_CONVERT, "stochastic-convert", 2, 2, ARITHMETIC)          \
    X(SUBTRACT, "subtract", 2, 2, ARITHMETIC)                              \
    X(TAN, "tan", 1, 1, ARITHMETIC)                                        \
    X(TANH, "tanh", 1, 1, ARITHMETIC)                                      \
    X(XOR, "xor", 2, 2, ARITHMETIC)                                        \
    X(OTHER, "", 0, -1, UNKNOWN)
/* clang-format on */

#define POD_HLO_OPCODE_ENUM(id, name, fewest, most, class) POD_HLO_##id,
typedef enum pod_hlo_opcode {
    POD_HLO_OPCODE_LIST(POD_HLO_OPCODE_ENUM) POD_HLO_OPCODES
} pod_hlo_opcode;
#undef POD_HLO_OPCODE_ENUM

/** Part of an asynchronous operation that an instruction is. */
typedef enum pod_hlo_phase {
    POD_HLO_WHOLE,
    POD_HLO_START, /**< X-start; also send and recv, which are waited for by their done */
    POD_HLO_UPDATE,
    POD_HLO_DONE
} pod_hlo_phase;

/** Opcode and phase of a name; POD_HLO_OTHER if it is unknown: whole, even as "foo-start". */
void pod_hlo_opcode_find(const char *text, pod_hlo_span name, pod_hlo_opcode *opcode,
                         pod_hlo_phase *phase);
/** Name of a known opcode without suffix, static; "" for POD_HLO_OTHER. */
const char *pod_hlo_opcode_name(pod_hlo_opcode opcode);
pod_hlo_class pod_hlo_opcode_class(pod_hlo_opcode opcode);
/** Fewest and most operands (-1 = any number). A done has one, its start; an update may bring further ones. */
void pod_hlo_opcode_operands(pod_hlo_opcode opcode, pod_hlo_phase phase, int *fewest, int *most);
