/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/step_request.h  From a model and a layout to programs, memory and figures: the
 *  one door to workload/ for `podsim step` and `podsim compare`.
 *
 *  Use: fill a request, pod_step_build, check pod_step_fits, run work.programs (sim/step.h), and
 *  turn the time into the columns of the command line with pod_step_figures_get.
 *
 *  What a training step does:
 *   - rows (tokens) are cut over data, fsdp and sequence; weights over fsdp and tensor; layers over
 *     pipeline (workload/build/layout.h);
 *   - weights cut over fsdp are gathered before each use, forward and backward, `gather_ahead` uses
 *     ahead; their gradients are reduce-scattered over fsdp, then all-reduced over data and sequence;
 *   - activations are all-reduced over tensor after each pair of products, forward and backward;
 *   - microbatches: the batch in so many parts one after another, gradients added up; sums over data
 *     wait for the last part;
 *   - pipeline: stages exchange activations and their gradients; microbatches in 1F1B order, so that
 *     stage s of S idles (S - 1) of (microbatches + S - 1) slots;
 *   - the optimizer updates all weights at the end.
 *  The loss is the sum of target · relu(output), whose derivative is (output > 0) · target.
 *
 *  Optimizers: sgd, weights in the model's dtype: w - w' = rate · gradient; adam: f32 weights and
 *  moments, cast to the model's dtype before use. fp8 and int8 set the speed of matmuls; activations,
 *  gradients and sgd's weights are bf16 then.
 *
 *  Ownership: a request borrows slice and mesh, a work owns its parts until pod_step_work_fini and
 *  borrows slice and mesh as well. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "models/model.h"
#include "program/memory.h"
#include "program/program.h"
#include "workload/build/layout.h"
#include "workload/build/tensors.h"
#include "workload/transformer/remat.h"

typedef enum pod_step_mode {
    POD_STEP_TRAIN,
    POD_STEP_FORWARD,
    POD_STEP_PREFILL, /**< of transformers: prompts of seq tokens into a KV cache */
    POD_STEP_DECODE   /**< of transformers: one token behind seq others */
} pod_step_mode;
typedef enum pod_optimizer { POD_OPTIMIZER_SGD, POD_OPTIMIZER_ADAM } pod_optimizer;

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
    const pod_remat_plan *plan;   /**< instead of remat, or NULL */
    pod_attention_kind attention; /**< transformers */
    const pod_chip_spec *chip;    /**< whose HBM and rates `auto` looks at; NULL: auto keeps all */
    int32_t microbatches;         /**< >= 1 */
    int32_t gather_ahead;         /**< >= 0 */
    bool collective_matmul; /**< gather and reduce over tensor piece by piece inside the products */
    pod_step_input input;
} pod_step_request;

typedef struct pod_step_work {
    pod_work_layout layout;
    pod_programs programs;
    pod_tensors tensors;
    int64_t rows;          /**< tokens of the step, all chips */
    double model_flops;    /**< useful FLOPs of the step, all chips */
    pod_remat_plan plan;   /**< what is kept, of transformers */
    int32_t stage;         /**< the stage that needs most memory */
    pod_memory_use memory; /**< of a chip of that stage */
    int64_t data_bytes;    /**< what real data needs, all chips; INT64_MAX if too much, -1 if there
                                is none */
} pod_step_work;

/** "train", "forward", "prefill", "decode"; "sgd", "adam". Static. */
const char *pod_step_mode_name(pod_step_mode mode);
const char *pod_optimizer_name(pod_optimizer optimizer);
/** @return POD_E_USAGE with the nearest name */
pod_status pod_step_mode_parse(const char *text, pod_step_mode *mode, pod_error *err);
pod_status pod_optimizer_parse(const char *text, pod_optimizer *optimizer, pod_error *err);

/** Programs of all stages, checked. Not collective.
 *  @param[out] work  to be finished with pod_step_work_fini, also after an error
 *  @return POD_E_INVALID: something doesn't divide (naming it and its divisors), an axis has no
 *          use; POD_E_USAGE: batch missing or at odds with m; POD_E_RANGE; POD_E_NOMEM */
pod_status pod_step_build(const pod_step_request *request, pod_step_work *work, pod_error *err);
void pod_step_work_fini(pod_step_work *work);

/** Whether the work fits the HBM that a program may use. Not collective.
 *  @return POD_OK; POD_E_NOFIT with the sizes, the largest kind, and the smallest change that fits */
pod_status pod_step_fits(const pod_step_request *request, const pod_step_work *work,
                         const pod_chip_spec *chip, pod_error *err);

/** Columns of `podsim step` that follow from the time of a step. */
typedef struct pod_step_figures {
    double step_time_s;
    double tokens_per_s_per_chip;
    double model_tflops_per_chip;
    double mfu_frac; /**< of the chip's peak in the request's dtype; 0 if it has none */
    int64_t hbm_bytes_per_chip;
    double hbm_frac; /**< of what a program may use */
} pod_step_figures;

void pod_step_figures_get(const pod_step_request *request, const pod_step_work *work,
                          const pod_chip_spec *chip, pod_time_ps time_ps,
                          pod_step_figures *figures);

/** All layouts of data, fsdp and tensor that JAX lays on the slice, without their axes of size 1 and
 *  without repeats. Not collective.
 *  @param split_axes  also those that share physical axes
 *  @param[out] list   *count meshes, for free() */
pod_status pod_step_layouts(const pod_slice *slice, bool split_axes, pod_logical_mesh **list,
                            int *count, pod_error *err);
