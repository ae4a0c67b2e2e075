/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_step.h  Private to workload/verify: some sequences on their way through the
 *  reference, and products with its weights.
 *
 *  Ownership: states lie in the arena of the step. Threads: none. */
#pragma once

#include "workload/verify/inexact_attention.h"
#include "workload/verify/reference_request.h"

/** A weight, and its gradient as far as it is added up. */
typedef struct pod_reference_weight {
    pod_transformer_array array;
    pod_inexact value; /**< exact */
    pod_inexact
        rounded; /**< to a byte, as chips' matmuls read it; value NULL: it isn't, or not known how */
    pod_inexact gradient; /**< value NULL: not asked for */
} pod_reference_weight;

/** Some sequences on their way through the model. */
typedef struct pod_reference_step {
    const pod_transformer_reference_args *args;
    pod_transformer_form form;
    pod_inexact_context ix;
    pod_reference_weight *weights;
    int64_t nweights;
    int64_t sequence; /**< the first one */
    int64_t sequences;
    int64_t near;   /**< choices of experts nearer than their error */
    int64_t differ; /**< choices of chips that differ where they aren't near */
} pod_reference_step;

enum { POD_REFERENCE_MATRICES = 2 };

/** Rows of experts: those of expert e are [first[e], first[e + 1]). */
typedef struct pod_reference_rows {
    int64_t *first;
    int32_t *token;    /**< of a row */
    int32_t *row;      /**< of a choice [tokens, top_k]; -1: dropped */
    int32_t *expert;   /**< of a choice */
    pod_inexact share; /**< [tokens, top_k], the weights of the choices */
    pod_inexact x;     /**< what the rows are */
    pod_inexact hidden[POD_REFERENCE_MATRICES];
    pod_inexact h;
    pod_inexact y;
} pod_reference_rows;

/** What a layer keeps for its way back. */
typedef struct pod_reference_state {
    int64_t number;
    struct pod_reference_state *source; /**< whose keys and values it reads; NULL: its own */
    pod_inexact
        dk; /**< of layers that share them: derivatives by keys and values, the sum so far */
    pod_inexact dv;
    bool shared; /**< there are any */
    pod_layer layer;
    pod_inexact x;
    pod_inexact xn;
    pod_inexact query_latent; /**< latent attention: before their norms, and after */
    pod_inexact query_normed;
    pod_inexact kv_latent;
    pod_inexact kv_normed;
    pod_inexact kv;        /**< latent attention: keys and values as they come from the latent */
    pod_inexact query_raw; /**< as projected */
    pod_inexact key_raw;
    pod_inexact_qkv qkv; /**< as attention reads them */
    pod_inexact context;
    pod_inexact gated; /**< the context times its gate, or itself */
    pod_inexact out;   /**< before a norm after it */
    pod_inexact x1;    /**< the residual path between attention and MLP */
    pod_inexact xn2;
    pod_inexact hidden[POD_REFERENCE_MATRICES]; /**< gate and up, or up */
    pod_inexact h;
    pod_reference_rows rows;
    pod_inexact y;
} pod_reference_state;

/** How an array is updated: muon leaves the ends of a model to adam. */
static inline pod_optimizer pod_reference_optimizer_of(const pod_reference_step *step,
                                                       const pod_transformer_array *array)
{
    const pod_optimizer optimizer = step->args->optimizer;
    return optimizer == POD_OPTIMIZER_MUON && array->layer < 0 ? POD_OPTIMIZER_ADAM : optimizer;
}

int64_t pod_reference_tokens(const pod_reference_step *step);
/** Partial sums of products by d_model, forward. */
int64_t pod_reference_input_terms(const pod_reference_step *step);

/** The weight of a layer's matmul. */
pod_reference_weight *pod_reference_weight_of(const pod_reference_step *step,
                                              const pod_reference_state *state, const char *name);
/** A weight beside the layers, or NULL. */
pod_reference_weight *pod_reference_end_of(const pod_reference_step *step, const char *name);
/** That of a weight's columns, or NULL. */
pod_reference_weight *pod_reference_bias_of(const pod_reference_step *step,
                                            pod_reference_weight *weight);
/** out = a · weight + bias, stored. @param bias  or NULL */
void pod_reference_multiply(pod_reference_step *step, const pod_inexact_product *product,
                            const pod_reference_weight *bias, const pod_inexact *a,
                            const pod_inexact *weight, const pod_inexact *out);
/** The gradient of a bias, or of NULL, += the sum of the rows of dout. */
void pod_reference_bias_back(pod_reference_step *step, const pod_reference_weight *bias,
                             const pod_inexact *dout);
/** Round a weight that is filled as chips do, where that is known. @return POD_E_NOMEM */
pod_status pod_reference_weight_round(const pod_reference_step *step, pod_reference_weight *weight,
                                      pod_error *err);
/** out = a · weight + its bias, stored. @param terms  partial sums that chips add up */
void pod_reference_project(pod_reference_step *step, pod_reference_weight *weight, int64_t terms,
                           const pod_inexact *a, const pod_inexact *out);
/** da += dout · weightᵀ, and the gradient += aᵀ · dout. @param terms  of da; the caller stores it */
void pod_reference_project_back(pod_reference_step *step, pod_reference_weight *weight,
                                int64_t terms, const pod_inexact *a, const pod_inexact *dout,
                                const pod_inexact *da);

/** Whether there is a reference of such a step. @return POD_E_INVALID: the text says which part there isn't */
pod_status pod_reference_support_check(const pod_transformer_reference_args *args, pod_error *err);
