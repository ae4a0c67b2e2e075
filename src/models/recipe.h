/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/recipe.h  What the settings of a MaxText run ask for.
 *
 *  Model: MaxText's keys (models/settings.h) over the defaults of its base.yml become plain figures, which
 *  `podsim step` turns into the values of its own options. Source of keys and defaults:
 *  AI-Hypercomputer/maxtext src/maxtext/configs/base.yml. Older names of a key stand for the present one
 *  (fsdp_shard_on_exp is shard_exp_on_fsdp).
 *
 *      model        by name, or described by base_emb_dim, base_mlp_dim, …: then each power of 2 of
 *                   global_parameter_scale doubles in turn heads with widths of MLPs, the width of the
 *                   model, layers with all of these
 *      batch        per_device_batch_size · JAX devices · gradient_accumulation_steps
 *      mesh         sizes count JAX devices; axes that cut the same are one axis of podsim's:
 *
 *          data                                          data         stage (pipeline)   pipeline
 *          fsdp, fsdp_transpose                          fsdp         expert             expert
 *          sequence, context, context_autoregressive     sequence
 *          tensor, tensor_transpose, tensor_sequence, autoregressive   tensor
 *
 *  A key that podsim has no use for, or none yet, gets the fate POD_SETTING_NOT_MODELLED; one that others
 *  make idle POD_SETTING_NO_EFFECT (`query_proj` under `remat_policy=full`).
 *
 *  Ownership: plain values. Threads: none. Errors: POD_E_USAGE with the key and what would be right. */
#pragma once

#include "models/recipe_figures.h"
#include "models/settings.h"

/** What base.yml says. */
pod_recipe pod_recipe_default(void);

/** Read settings over the defaults, and note the fate of each.
 *  @param settings  flags of xla_flags and LIBTPU_INIT_ARGS that aren't modelled are appended as
 *                   "xla_flags --NAME"
 *  @return POD_E_USAGE: a value that isn't one, two ways to say the model, two sizes of -1; POD_E_NOMEM */
pod_status pod_recipe_read(pod_settings *settings, pod_recipe *recipe, pod_error *err);

/** The sizes of one of ici, dcn as `--mesh` takes it, "data=4,fsdp=-1": axes that cut the same multiplied,
 *  those of 1 left out, "" if none is left. @return buf */
const char *pod_recipe_mesh_print(const int64_t sizes[POD_RECIPE_AXES], char *buf, size_t size);

/** What is kept as `--remat` takes it: the policy, or of custom the list "input=offload,out=device".
 *  @return buf */
const char *pod_recipe_remat_print(const pod_recipe *recipe, char *buf, size_t size);

/** Sequences of a step on `ndevices` JAX devices.
 *  @return POD_E_USAGE: not a whole number; POD_E_RANGE */
pod_status pod_recipe_batch(const pod_recipe *recipe, int64_t ndevices, int64_t *batch,
                            pod_error *err);

/** Capacity of an expert in % of its fair share of tokens, as pod_model has it: 0 = nothing is dropped. */
int64_t pod_recipe_capacity_percent(const pod_recipe *recipe);
