/* SPDX-License-Identifier: Apache-2.0 */
/* Small models that have every op of the reference of transformers between them. */
#pragma once

#include <criterion/criterion.h>

#include "workload/verify/transformer_reference.h"

#define SMALL  "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,vocab=48,"
#define SMALL3 SMALL "mlp_matrices=3"

static const char *const small_models[] = {
    SMALL3,
    SMALL3 ",qk_norms=1,post_norms=1",
    SMALL3 ",window=3,global_every=2,shared_kv=1",
    SMALL3 ",window=4,chunked=1,post_norms=2",
    SMALL "mlp_matrices=2",
    SMALL "mlp_matrices=2,positions=16,tied=1",
    SMALL3 ",parallel=1,gated=1",
    SMALL3 ",experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16",
    SMALL3 ",experts=4,top_k=2,moe_d_ff=16,dense_layers=1,capacity_percent=75",
    SMALL3 ",kv_lora=16,rope_dim=4,q_lora=16,v_head_dim=12",
    SMALL3 ",kv_lora=16,rope_dim=4,experts=4,top_k=1,moe_d_ff=16",
    SMALL "mlp_matrices=2,positions=16,encoder=1",
    SMALL3 ",encoder=1,window=3,global_every=2",
    SMALL3 ",biases=1",
    SMALL "mlp_matrices=2,positions=10,encoder=1,masked=1,biases=1,image=6,patch=2",
    "transformer:layers=4,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,vocab=48,mlp_matrices=3,"
    "kv_shared_layers=2,"
    "window=3,global_every=2,qk_norms=1",
    "transformer:layers=4,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,vocab=48,mlp_matrices=3,"
    "kv_shared_layers=3,"
    "gated=1,biases=1",
    SMALL "mlp_matrices=2,positions=16,encoder=1,tied=1,biases=1,head_dense=1,masked=4",
    SMALL3 ",window=3,global_every=2,shared_kv=1,biases=1,head_dense=1",
};

enum { SMALL_MODELS = sizeof small_models / sizeof small_models[0], BATCH = 3, SEQ = 9 };

static inline pod_model small_model(int number)
{
    pod_error err = {0};
    pod_model model;
    cr_assert_eq(pod_model_parse(small_models[number], NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

static inline pod_transformer_reference_args small_args(const pod_model *model)
{
    return (pod_transformer_reference_args){.model = model,
                                            .batch = BATCH,
                                            .seq = model->image > 0 ? model->positions : SEQ,
                                            .dtype = POD_DTYPE_BF16,
                                            .mode = POD_STEP_TRAIN,
                                            .optimizer = POD_OPTIMIZER_SGD,
                                            .rate = 16,
                                            .seed = 1,
                                            .activation_terms = 1,
                                            .context_terms = 1,
                                            .gradient_terms = 1};
}

static inline pod_transformer_reference *small_compute(const pod_transformer_reference_args *args)
{
    pod_error err = {0};
    pod_transformer_reference *reference = NULL;
    cr_assert_eq(pod_transformer_reference_new(args, &reference, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_transformer_reference_compute(reference, &err), POD_OK, "%s", err.text);
    return reference;
}
