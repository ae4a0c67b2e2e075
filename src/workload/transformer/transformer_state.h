/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_state.h  Private to workload/transformer/: what the builder of one stage's
 *  program knows (workload/transformer/transformer.h).
 *
 *  Ownership: transformer.c makes and frees it. Errors stick in build.st. Threads: none. */
#pragma once

#include "models/model_layer.h"
#include "workload/build/stage.h"

/** Initialiser of the buffers that an op touches. */
#define TOUCH(...) ((const int32_t[POD_OP_TOUCHES_MAX]){__VA_ARGS__})

/** Weights that are gathered together: parts of a layer (pod_layer_part), then the ends. */
typedef enum pod_tf_part {
    POD_TF_EMBEDDING = POD_PLACE_EMBEDDING,
    POD_TF_HEAD = POD_PLACE_HEAD
} pod_tf_part;

typedef struct pod_tf_bundle {
    const char *name; /**< "attention", static */
    int32_t layer;
    bool there;
    bool experts;   /**< gathered over fsdp only */
    bool shared;    /**< all stages of a circular pipeline have it, or the first and the last one */
    int64_t shard;  /**< elements a chip stores */
    int64_t whole;  /**< elements a chip uses */
    int64_t common; /**< of the shard, the first: those that other stages have, too */
    pod_axis_list cut;  /**< over which it is gathered */
    pod_axis_list late; /**< over which gradients are all-reduced */
    int32_t weights;    /**< buffers */
    int32_t moments;
    int32_t gradient;
    int32_t gathered;    /**< of the use under way */
    int32_t gradient_op; /**< that completes the gradient */
    int32_t moment[2];   /**< buffers of numbers */
    int32_t direction;   /**< numbers of lamb: adam's step; of muon: how matrices are to move */
    int64_t norm_row;    /**< its first sum of squares among those of the stage */
    int32_t once; /**< buffer gathered once for all passes, or those of a round; POD_OP_NONE */
    int32_t uses; /**< so far, of bundles that are gathered by rounds */
    int32_t sum;  /**< of its gradients, whole, until the last pass; POD_OP_NONE */
    int32_t
        pieces; /**< numbers of its gradient on its way round the stages, one after the other; POD_OP_NONE */
} pod_tf_bundle;

/** Whole gradients that may wait to be scattered: those of one dense layer. Then the next one's room is that of the
 *  oldest, and the core waits for it. */
enum { POD_TF_SCATTERS = 3 };

/** Numbers of a layer's experts; those of expert e of the chip in place s of the mesh axis expert are `room` rows from
 *  (s · experts of a chip + e) · room on. */
typedef struct pod_tf_routes {
    int32_t logits; /**< of the router */
    int32_t row;    /**< of each token's experts */
    int32_t count;  /**< inference: of each expert's rows */
    int32_t share;
    int32_t dshare;
    int32_t dshare_sum; /**< over tensor */
    int32_t xn;         /**< tokens */
    int32_t sent;       /**< at their experts */
    int32_t wi;         /**< before the function: gate and up side by side */
    int32_t h;
    int32_t back; /**< results, at their tokens */
    int32_t dh;
    int32_t dwi;
} pod_tf_routes;

/** Numbers of attention over sequence (transformer_context.h), of the layer under way. */
typedef struct pod_tf_context {
    int32_t
        positions; /**< of all chips' tokens: sequence by sequence, or in the order of a ring, of one sequence */
    int32_t gathered[2];  /**< keys and values from all chips; ulysses: queries, keys and values, */
    int32_t regrouped[2]; /**< sequence by sequence; POD_OP_NONE: not yet */
    int64_t first[2];     /**< column of keys, of values */
    int32_t at_hand;      /**< in a ring: keys and values of this step, */
    int32_t passed[2];    /**< and what comes next, from chips before and after */
    int32_t step
        [3]; /**< what a step gives: results and sums, or derivatives by queries, keys and values */
    int32_t sum[3]; /**< with those of the steps before */
    int32_t
        along; /**< of queries, for the way back (ATTEND_ALONG); ulysses: derivatives on their way */
    int32_t by_result; /**< in a ring: derivatives by what attention gives */
    int32_t
        scattered; /**< derivatives by this chip's keys and values; POD_OP_NONE: there are none */
    int32_t
        returned; /**< likewise, ulysses: by queries, too, in the order of the chips that had them */
    bool home;    /**< those of the ring are in `sum` */
} pod_tf_context;

/** What a layer leaves for its backward pass. */
typedef enum pod_tf_slot {
    POD_TF_SLOT_INPUT,
    POD_TF_SLOT_PROJECTION, /**< queries, keys and values together, or the first projection */
    POD_TF_SLOT_CONTEXT = POD_TF_SLOT_PROJECTION + 7,
    POD_TF_SLOT_OUT,
    POD_TF_SLOT_MLPWI,
    POD_TF_SLOT_MLPWO,
    POD_TF_SLOT_NORMS,
    POD_TF_SLOT_SCORES,
    POD_TF_SLOTS
} pod_tf_slot;

typedef struct pod_tf_saved {
    int32_t buffer[POD_TF_SLOTS]; /**< POD_OP_NONE: not kept */
    int32_t store[POD_TF_SLOTS];  /**< op that moved it to the host */
    int32_t load[POD_TF_SLOTS];   /**< op that brings it back */
    bool on_host[POD_TF_SLOTS];
    int32_t number[POD_TF_SLOTS]; /**< what is kept, of a program with numbers */
    int32_t normed[2];            /**< likewise of POD_TF_SLOT_NORMS: results of both norms, */
    int32_t rotated;              /**< and queries and keys after rotation */
    int32_t plain;                /**< what attention gives before its gates */
    int32_t sums; /**< of attention in a ring: largest score and sum of exponents of each head */
    int32_t kv;   /**< of a layer whose keys and values others read: packed, rotated, */
    int32_t dkv;  /**< and derivatives by them, as far as others have made them; */
    int32_t shared[2]; /**< buffers of both; POD_OP_NONE: there are none yet */
    pod_tf_routes rows;
    int32_t raw[2]; /**< what the output projection and the MLP give, where a norm follows */
} pod_tf_saved;

/** What the backward pass of an MLP starts from, kept or done again. */
typedef struct pod_tf_mlp {
    int32_t wi;    /**< what is before the function */
    int32_t y;     /**< numbers: its result before a norm */
    bool in_used;  /**< weights before the function are at hand: they were used again */
    bool out_used; /**< likewise those after it */
    bool dh_there; /**< the derivative after the function is */
    int32_t dh;
} pod_tf_mlp;

enum { POD_TF_LATER = 3 + 2 * POD_LAYER_MATMULS_MAX };

typedef enum pod_tf_factor_kind {
    POD_TF_FACTOR_NONE,
    POD_TF_FORWARD,   /**< out = a · W */
    POD_TF_BY_INPUT,  /**< out = a · Wᵀ, a derivatives by results */
    POD_TF_BY_WEIGHTS /**< out = aᵀ · b, b derivatives by results */
} pod_tf_factor_kind;

/** What products compute, of a program with numbers: `count` matrices W lie one after the other in a bundle, and their
 *  results side by side. Buffers are those of numbers. */
typedef struct pod_tf_factor {
    pod_tf_factor_kind kind;
    int32_t a;
    int32_t b;       /**< the gathered bundle; by weights: the derivatives */
    int32_t out;     /**< by weights POD_OP_NONE: the gradient's */
    int64_t weights; /**< the first element of the first W */
    int64_t column;  /**< the first column of the first result */
    bool add;        /**< to what `out` holds */
    int64_t a_row;   /**< of some rows: the first of `a`, */
    int64_t out_row; /**< and of `out` */
    int64_t first;   /**< by weights, of some columns of each: the first, */
    int64_t columns; /**< and how many; 0: all */
    bool partial;    /**< forward, of some of the rows of W: chips of tensor add up their results */
    int32_t before;  /**< a is the MLP's function of these; POD_OP_NONE: it is there */
    int32_t
        raw; /**< numbers of projections with a latent whose norm is multiplied; POD_OP_NONE: none */
    int64_t latent; /**< its first column */
} pod_tf_factor;

/** `count` products [rows, k] · [k, n]. */
typedef struct pod_tf_product {
    const char *name; /**< static */
    int64_t k;
    int64_t n;
    int64_t count;
    int32_t touch[POD_OP_TOUCHES_MAX];
    pod_tf_factor factor;
} pod_tf_product;

/** A matmul of the backward pass that is put off until the core has nothing else to do. */
typedef struct pod_tf_later {
    pod_tf_product product;
    bool by_weights;       /**< a derivative by weights: [k, rows] · [rows, n] */
    pod_tf_bundle *bundle; /**< whose gradient it completes, or NULL */
} pod_tf_later;

/** Rows `i` of numbers `whole` that are to be copied to `part`; POD_OP_NONE: they have been. */
typedef struct pod_tf_rows_wait {
    int32_t whole;
    int32_t part;
    int32_t i;
} pod_tf_rows_wait;

typedef struct pod_tf {
    pod_stage stage; /**< first: pod_stage_ops get it; ends are buffers */
    const pod_model *model;
    const pod_work_layout *layout;
    pod_remat_plan plan;
    pod_program *program;
    /* of a chip */
    int64_t part_sequences; /**< of a microbatch; of what is under way: */
    int64_t sequences;
    int64_t seq;    /**< tokens of a sequence on this chip */
    int64_t tokens; /**< sequences · seq */
    int64_t tensor;
    int64_t expert;
    pod_axis_list sequence;
    pod_tf_bundle *bundles; /**< bundles[layer · POD_LAYER_PARTS + part], then embedding, head */
    int32_t nbundles;
    pod_tf_saved *saved; /**< saved[part · layers + layer] */
    bool pieces;   /**< collective matmul: sums over tensor taken apart (transformer_pieces.h) */
    bool rows_cut; /**< rows between matmuls are a share of tensor */
    int32_t
        turned_rows; /**< numbers: names of all rows in the order of pieces; POD_OP_NONE: not yet */
    int32_t
        bias_rows[2];   /**< likewise of rows that have a bias: all; of partial sums, one chip's */
    int32_t whole_dy;   /**< likewise what the MLP gathered for attention beside it */
    pod_tf_routes rows; /**< of the layer under way */
    int32_t norms;      /**< numbers of lars, lamb and muon: sums of squares of all bundles */
    int32_t newton;     /**< steps of Newton and Schulz that are done */
    pod_tf_context context;
    pod_tf_rows_wait *rows_wait; /**< rows_wait[nrows_wait] */
    int64_t nrows_wait;
    int64_t rows_wait_room;
    struct pod_number
        *before; /**< what the core op after `before_op` computes first; NULL: nothing more */
    int32_t before_op;
    int32_t positions; /**< numbers: of this chip's tokens in their sequences */
    int32_t logits;    /**< of the piece under way */
    int32_t last_core; /**< op */
    int32_t came; /**< op that brought what comes next, until a core op waits for it; POD_OP_NONE */
    int32_t keys_gather; /**< of keys and values, begun for the next attention; POD_OP_NONE */
    int32_t scatters
        [POD_TF_SCATTERS]; /**< of gradients under way, the oldest is nscatters modulo its size */
    int32_t nscatters;
    int32_t waits[8]; /**< ops that the next core op waits for */
    int nwaits;
    bool puts_off; /**< matmuls of the backward pass run beside a collective of attention */
    pod_tf_later later[POD_TF_LATER];
    int nlater;
    int32_t layer; /**< being built, for the names of ops; -1 = none */
} pod_tf;

/** The optimizer of a bundle: Muon leaves embedding and head to adam. */
static inline pod_optimizer pod_tf_optimizer_of(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    const pod_optimizer optimizer = tf->stage.request->optimizer;
    return optimizer == POD_OPTIMIZER_MUON && bundle->layer < 0 ? POD_OPTIMIZER_ADAM : optimizer;
}
