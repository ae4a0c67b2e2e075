/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/request.h
 *  What a step is asked to be, and what comes of it: the types of workload/step_request.h, for
 *  those that build its parts.
 *
 *  Ownership: a request borrows slice and mesh; a work owns its parts and borrows slice and mesh as well.
 *  Threads: none. */
#pragma once

#include "chip/chip.h"
#include "chip/kernels.h"
#include "models/model.h"
#include "program/memory.h"
#include "program/program.h"
#include "workload/build/layout.h"
#include "workload/build/remat.h"
#include "workload/build/settings.h"
#include "workload/build/tensors.h"
#include "workload/build/vmem_prefetch.h"

typedef enum pod_step_mode {
    POD_STEP_TRAIN,
    POD_STEP_FORWARD,
    POD_STEP_PREFILL, /**< of transformers: prompts of seq tokens into a KV cache */
    POD_STEP_DECODE,  /**< of transformers: one token after seq others */
    POD_STEP_SERVE    /**< of transformers: decode, and a piece of a prompt beside it */
} pod_step_mode;

/** X(optimizer, name, moments, norms): sgd keeps weights in the model's dtype and no moments; the others keep weights
 *  in f32 and one or two moments of each. norms: an update needs norms of whole layers, which chips that share a layer
 *  add up. */
#define POD_OPTIMIZER_LIST(X)                                                                      \
    X(POD_OPTIMIZER_SGD, "sgd", 0, false)                                                          \
    X(POD_OPTIMIZER_MOMENTUM, "sgd-momentum", 1, false)                                            \
    X(POD_OPTIMIZER_ADAM, "adam", 2, false)                                                        \
    X(POD_OPTIMIZER_LARS, "lars", 1, true)                                                         \
    X(POD_OPTIMIZER_LAMB, "lamb", 2, true)                                                         \
    X(POD_OPTIMIZER_MUON, "muon", 1, true)

#define POD_OPTIMIZER_ENUM(optimizer, name, moments, norms) optimizer,
typedef enum pod_optimizer { POD_OPTIMIZER_LIST(POD_OPTIMIZER_ENUM) POD_OPTIMIZERS } pod_optimizer;
#undef POD_OPTIMIZER_ENUM

/** Moments of a weight. */
static inline int pod_optimizer_moments(pod_optimizer optimizer)
{
#define POD_OPTIMIZER_MOMENTS(optimizer, name, moments, norms) [optimizer] = moments,
    static const int count[] = {POD_OPTIMIZER_LIST(POD_OPTIMIZER_MOMENTS)};
#undef POD_OPTIMIZER_MOMENTS
    return count[optimizer];
}

/** Whether it needs norms of whole layers. */
static inline bool pod_optimizer_has_norms(pod_optimizer optimizer)
{
#define POD_OPTIMIZER_NORMS(optimizer, name, moments, norms) [optimizer] = norms,
    static const bool has[] = {POD_OPTIMIZER_LIST(POD_OPTIMIZER_NORMS)};
#undef POD_OPTIMIZER_NORMS
    return has[optimizer];
}

/** Where attention's scores and the logits are. */
typedef enum pod_attention_kind {
    POD_ATTENTION_FLASH, /**< a kernel keeps scores in VMEM; logits are in f32 some at a time; what a layer keeps of
                              its width d_model is cut over tensor */
    POD_ATTENTION_PLAIN /**< all of them in HBM, in f32, with their derivatives, and what a layer keeps is whole: JAX
                              without kernels and hints */
} pod_attention_kind;

enum { POD_GATHER_AHEAD_DEFAULT = 1, POD_PREFETCH_DEFAULT = 2 };

/** How the batch of a step comes to the chips of the first stage. The hosts work at the same time: each makes
 *  its share of a batch in host_ps (H), then every chip gets its rows over PCIe (X). In the steady state of a
 *  training loop, with a step of S without input:
 *
 *      prefetch 0    the step begins when its batch is there         H + X + S
 *      prefetch 1    the next batch is made and sent meanwhile       max(S, H + X)
 *      prefetch 2…   one is made while another is sent               max(S, H, X)
 *
 *  Batches that are ready lie in HBM: prefetch of them besides the one in use. PCIe is shared with what crosses
 *  slices. More than 2 gain nothing, as all batches take as long. */
typedef struct pod_step_input {
    int64_t bytes; /**< of a batch, all chips together; chips along tensor get the same rows */
    pod_time_ps host_ps; /**< both 0: the batch is there */
    int32_t prefetch;
} pod_step_input;

/** What inference finds in its KV cache, and what a server's step takes besides the tokens that it decodes. */
typedef struct pod_step_serving {
    int64_t cached; /**< prefill and serve: tokens of the prompt that the cache has already */
    int64_t prefill_tokens; /**< serve: tokens of prompts; chips along data take a prompt each */
    int64_t prompts;        /**< serve: prompts that each of those takes; 0 = 1 */
    int64_t page;           /**< tokens of a page of the cache; 0 = as pod_step_page says */
    pod_dtype cache;        /**< of keys and values in the cache, if has_cache; else the step's */
    bool has_cache;
} pod_step_serving;

enum { POD_PAGE_DEFAULT = 16 };

/** What the sizes of a transformer leave open, for its numbers. */
typedef struct pod_step_form {
    double epsilon;     /**< of norms: x / sqrt(mean(x²) + epsilon) */
    bool centred;       /**< layer norms */
    double rotary_base; /**< of angles (program/numbers.h); 0: queries and keys aren't rotated */
    pod_kernel_activation function; /**< the MLP's */
    double rate;                    /**< of the optimizer */
} pod_step_form;

typedef struct pod_step_request {
    const pod_model *model;
    const pod_slice *slice;
    const pod_mesh *mesh;
    int64_t batch; /**< sequences in all; for matmul and mlp rows. matmul: 0 or its m */
    int64_t seq;   /**< tokens of a sequence; 1 for matmul and mlp */
    pod_dtype dtype;
    pod_step_mode mode;
    pod_optimizer optimizer;
    pod_remat remat;              /**< transformers */
    pod_remat_plan plan;          /**< of POD_REMAT_LIST */
    pod_attention_kind attention; /**< transformers */
    pod_step_settings settings;   /**< transformers */
    const pod_chip_spec *chip;    /**< whose HBM and rates `auto` looks at; NULL: auto keeps all */
    int32_t microbatches;         /**< >= 1 */
    int32_t gather_ahead;         /**< >= 0 */
    /** of transformers: ops say what they compute on real data (program/numbers.h) */
    bool numbers;
    pod_step_form form; /**< with numbers */
    bool plain; /**< a step that doesn't fit HBM is only refused, without a search for what would */
    bool
        vmem_prefetch; /**< weights come into VMEM before their matmul (workload/build/vmem_prefetch.h) */
    bool collective_matmul; /**< gather and reduce over tensor piece by piece inside the products */
    pod_step_input input;
    pod_step_serving serving; /**< inference */
} pod_step_request;

/** Tokens of a page of the cache; 0 = a sequence lies in one piece. */
static inline int64_t pod_step_page(const pod_step_request *request)
{
    const int64_t page = request->serving.page;
    return page > 0 || request->mode != POD_STEP_SERVE ? page : POD_PAGE_DEFAULT;
}

/** The dtype of keys and values in the cache. */
static inline pod_dtype pod_step_cache_dtype(const pod_step_request *request)
{
    return request->serving.has_cache ? request->serving.cache : request->dtype;
}

typedef struct pod_step_work {
    pod_work_layout layout;
    pod_programs programs;
    pod_tensors tensors;
    int64_t rows;        /**< tokens of the step, all chips */
    double model_flops;  /**< useful FLOPs of the step, all chips */
    pod_remat_plan plan; /**< what is kept, of transformers */
    pod_vmem_prefetched prefetched;
    int32_t stage;         /**< the stage that needs most memory */
    pod_memory_use memory; /**< of a chip of that stage */
    int64_t data_bytes;    /**< what real data needs, all chips; INT64_MAX if too much, -1 if there
                                is none */
} pod_step_work;
