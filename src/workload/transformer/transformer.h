/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer.h  Private to workload/: what one chip does for a transformer.
 *
 *  Model: like workload/mlp/train.c, a stage runs microbatches in 1F1B order through its layers; the first
 *  stage embeds, the last has the head and the loss; at the end the optimizer updates all weights. Ops
 *  say only how long they take and which memory they need: they hold no data.
 *
 *  Cuts. Sequences are cut over data, fsdp and expert, tokens of a sequence over sequence; heads, d_ff
 *  and vocab over tensor; experts over expert; layers over pipeline. A *bundle* is the weights that are
 *  gathered together: those of attention, those before and those behind the elementwise function of an
 *  MLP, likewise of experts, the embedding and the head. Bundles are stored in f32 (for adam), cut over
 *  tensor, fsdp, sequence and expert, whatever divides, padded up. Before each use a bundle is rounded to bf16 and
 *  gathered, once forward and once backward (recomputing uses the same copy); gradients, in bf16, are
 *  reduce-scattered over the same axes and all-reduced over data. Use number u may be
 *  gathered once use u - 1 - ahead has begun.
 *
 *  Communication of weights and gradients hides behind products, but not its HBM traffic: what is received is
 *  written, read to be passed on, and copied into the layout that products want. That is four bytes moved for
 *  each byte of a whole bundle; the chip's gather_hbm_ratio is what steps show. The core's work waits for the HBM
 *  meanwhile.
 *
 *  Over tensor activations are all-reduced behind each pair of products, forward and backward; over sequence
 *  keys and values are gathered, and their gradients reduced; over expert tokens go to their experts and back
 *  (all-to-all); over pipeline stages exchange activations.
 *
 *  Elementwise work moves HBM bytes, what XLA fuses into products does not: norms, rotation, the
 *  function of the MLP and residuals as in transformer_layer.c.
 *
 *  What is kept from forward to backward: pod_remat_plan (workload/transformer/remat.h).
 *  Ownership: init/fini. Errors stick in build.st. Threads: none. */
#pragma once

#include "models/model_layer.h"
#include "workload/build/build.h"
#include "workload/step_request.h"

/** Weights that are gathered together. */
typedef enum pod_tf_part {
    POD_TF_ATTENTION,
    POD_TF_IN, /**< before the function of the MLP: up and gate */
    POD_TF_OUT,
    POD_TF_EXPERTS_IN,
    POD_TF_EXPERTS_OUT,
    POD_TF_LAYER_PARTS,
    POD_TF_EMBEDDING = POD_TF_LAYER_PARTS,
    POD_TF_HEAD
} pod_tf_part;

typedef struct pod_tf_bundle {
    const char *name; /**< "attention", static */
    int32_t layer;
    bool there;
    bool experts;       /**< gathered over fsdp only */
    int64_t shard;      /**< elements a chip stores */
    int64_t whole;      /**< elements a chip uses */
    pod_axis_list cut;  /**< over which it is gathered */
    pod_axis_list late; /**< over which gradients are all-reduced */
    int32_t weights;    /**< buffers */
    int32_t moments;
    int32_t gradient;
    int32_t gathered;    /**< of the use under way */
    int32_t gather;      /**< op that fills it */
    int32_t gradient_op; /**< that completes the gradient */
} pod_tf_bundle;

/** Whole gradients that may wait to be scattered: those of one dense layer. Then the next one's room is that of the
 *  oldest, and the core waits for it. */
enum { POD_TF_SCATTERS = 3 };

/** What a layer leaves for its backward pass. */
enum { POD_TF_SAVED = POD_KEEP_COUNT };

typedef struct pod_tf_saved {
    int32_t buffer[POD_TF_SAVED]; /**< POD_OP_NONE: not kept in HBM */
    int32_t store[POD_TF_SAVED];  /**< op that moved it to the host */
    int32_t load[POD_TF_SAVED];   /**< op that brings it back */
} pod_tf_saved;

typedef struct pod_tf_use {
    pod_tf_bundle *bundle;
    const char *phase;
} pod_tf_use;

typedef struct pod_tf {
    const pod_step_request *request;
    const pod_model *model;
    const pod_work_layout *layout;
    pod_remat_plan plan;
    pod_build build;
    pod_program *program;
    int32_t number; /**< of the stage */
    int32_t count;
    int32_t first_layer;
    int32_t layers;
    /* of a chip and microbatch */
    int64_t sequences;
    int64_t seq;    /**< tokens of a sequence on this chip */
    int64_t tokens; /**< sequences · seq */
    int64_t tensor;
    int64_t expert;
    pod_axis_list sequence;
    pod_tf_bundle *bundles; /**< bundles[layer · POD_TF_LAYER_PARTS + part], then embedding, head */
    int32_t nbundles;
    pod_tf_saved *saved; /**< saved[part · layers + layer] */
    int32_t *ends;       /**< ends[part]: buffer of the output, then of its derivative */
    pod_tf_use *uses;
    int32_t nuses;
    int32_t next_use;
    int32_t gathered;
    int32_t last_core; /**< op */
    int32_t scatters
        [POD_TF_SCATTERS]; /**< of gradients under way, the oldest is nscatters modulo its size */
    int32_t nscatters;
    int32_t waits[8]; /**< ops that the next core op waits for */
    int nwaits;
    int32_t layer; /**< being built, for the names of ops; -1 = none */
    int32_t part;  /**< microbatch */
} pod_tf;

pod_status pod_transformer_program(const pod_step_request *request, pod_step_work *work,
                                   int32_t number, pod_error *err);

/** A step of inference instead, prefill or decode (transformer_infer.c). */
pod_status pod_tf_infer(pod_tf *tf, pod_error *err);

/* ---- ops (transformer_ops.c) ---- */

/** A buffer of this chip. */
int32_t pod_tf_buffer(pod_tf *tf, const char *name, pod_memory_kind kind, pod_dtype dtype,
                      int64_t rows, int64_t columns);
/** The next core op waits for a communication. */
void pod_tf_wait(pod_tf *tf, int32_t op);
/** `count` products [m, k] · [k, n] one after another. @param touch  buffers, POD_OP_NONE fills up */
void pod_tf_matmul(pod_tf *tf, const char *name, const int64_t size[3], int64_t count,
                   const int32_t touch[POD_OP_TOUCHES_MAX]);
/** Elementwise work that moves `bytes` through HBM. */
void pod_tf_vector(pod_tf *tf, const char *name, double elements, int64_t bytes,
                   const int32_t touch[POD_OP_TOUCHES_MAX]);
void pod_tf_attention(pod_tf *tf, const char *name, const pod_attention_args *args,
                      const int32_t touch[POD_OP_TOUCHES_MAX]);
/** A collective behind the last core op, and behind `after`. @return its op, or POD_OP_NONE when the
 *  axes are one chip @param elements  of the full buffer */
int32_t pod_tf_collective(pod_tf *tf, pod_coll_op what, const char *name, const pod_axis_list *axes,
                          int64_t elements, pod_dtype dtype, int32_t after,
                          const int32_t touch[POD_OP_TOUCHES_MAX]);
/** Over PCIe, behind the last core op and `after`. */
int32_t pod_tf_host(pod_tf *tf, const char *name, int64_t bytes, int32_t after, int32_t buffer);
/** Sum activations over tensor, in place. @return the op or POD_OP_NONE */
int32_t pod_tf_sum(pod_tf *tf, const char *name, int32_t buffer, int64_t width);

/* ---- weights (transformer_weights.c) ---- */

pod_status pod_tf_bundles_make(pod_tf *tf);
pod_tf_bundle *pod_tf_bundle_of(const pod_tf *tf, int32_t layer, pod_tf_part part);
void pod_tf_use_declare(pod_tf *tf, pod_tf_bundle *bundle, const char *phase);
/** The next declared use begins: its weights are there for the next core op. */
pod_tf_bundle *pod_tf_use_begin(pod_tf *tf);
/** The same for a bundle that is used now, if there is such a bundle. @return its gathered weights */
int32_t pod_tf_use_part(pod_tf *tf, pod_tf_part part);
/** Gather up to `ahead` uses behind the one under way, from here on. */
void pod_tf_prefetch(pod_tf *tf, int32_t ahead);
/** Products of a gradient: the collectives that complete it. @param partial  buffer of the product */
void pod_tf_gradient(pod_tf *tf, pod_tf_bundle *bundle, int32_t partial);
/** A gradient that needs no products any more: sum it over data, now or after the last layer. */
void pod_tf_gradient_complete(pod_tf *tf, pod_tf_bundle *bundle);
/** Room for the whole gradient of a bundle. */
int32_t pod_tf_gradient_buffer(pod_tf *tf, const pod_tf_bundle *bundle);
void pod_tf_update(pod_tf *tf);

/* ---- layers ---- */

/** Width of the projections of attention, and of keys with values, on one chip. */
int64_t pod_tf_qkv_width(const pod_tf *tf, const pod_layer *layer);
int64_t pod_tf_context_width(const pod_tf *tf, const pod_layer *layer);
/** Columns before the function of an MLP with its experts, per token. */
int64_t pod_tf_hidden_width(const pod_tf *tf, const pod_layer *layer);

pod_tf_saved *pod_tf_saved_of(const pod_tf *tf, int32_t layer);
/** Keep an array for the backward pass if the plan says so, in HBM or on the host. */
void pod_tf_keep(pod_tf *tf, int what, int32_t buffer);
/** Bring back from the host what backward of a layer needs. */
void pod_tf_load(pod_tf *tf, int32_t layer);
/** What is kept is at hand: its buffer, or POD_OP_NONE. The next core op waits for its loading. */
int32_t pod_tf_kept(pod_tf *tf, int what);

/** What attention gives (transformer_attention.c). */
typedef struct pod_tf_scores {
    int32_t context;       /**< buffer of its output */
    int32_t probabilities; /**< of plain attention, f32 and bf16; else POD_OP_NONE */
} pod_tf_scores;
/** @param qkv  queries, keys and values of this chip's tokens, rotated */
pod_tf_scores pod_tf_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv);
/** @param of  what pod_tf_attend gave, kept or done again @param dqkv  derivatives come here */
void pod_tf_attend_backward(pod_tf *tf, const pod_layer *layer, int32_t qkv,
                            const pod_tf_scores *of, int32_t dcontext, int32_t dqkv);

/** A layer, from the buffer of its input to that of its output; backward, from the derivative by the output
 *  to the one by the input. */
int32_t pod_tf_layer_forward(pod_tf *tf, int32_t x);
int32_t pod_tf_layer_backward(pod_tf *tf, int32_t dy);
/** Declare the uses of weights of a layer, in their order. */
void pod_tf_layer_declare(pod_tf *tf, int32_t layer, bool backward);

/** The MLP of a layer (transformer_mlp.c): from the normed input `xn` to its output. `again`: only as far as
 *  backward needs. */
int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, bool again);
/** @param wi  what is before the function; @return derivative by the normed input */
int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t wi, int32_t dy);
