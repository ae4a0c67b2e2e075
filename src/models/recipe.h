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
 *          fsdp                                          fsdp         expert             expert
 *          fsdp_transpose                                itself beside fsdp, alone fsdp
 *          sequence, context, context_autoregressive     sequence
 *          tensor, tensor_transpose, tensor_sequence, autoregressive   tensor
 *
 *  Order, the later wins: base.yml, YAML, the file of the model that model_name names (models/maxtext.h), words
 *  of a command line or script. With keys that make another model of a named one it is described by its sizes.
 *
 *  Every setting gets a fate: used; without effect, as it changes neither time nor memory or others make it idle
 *  (`query_proj` under `remat_policy=full`); or not modelled, with what is done in its place.
 *
 *  Ownership: plain values. Threads: none. Errors: POD_E_USAGE with the key and what would be right. */
#pragma once

#include "models/maxtext.h"
#include "models/recipe_figures.h"
#include "models/settings.h"

/** What base.yml says. */
pod_recipe pod_recipe_default(void);

/** Read settings over the defaults, and note the fate of each.
 *  @param settings  those of a named model are merged in; flags of xla_flags and LIBTPU_INIT_ARGS that have no
 *                   effect are appended as "xla_flags --NAME"
 *  @param maxtext   NULL: no model files, and no key is unknown
 *  @return POD_E_USAGE: a key that MaxText doesn't have, a value that isn't one, two sizes of -1; POD_E_INVALID: an
 *          unknown model_name or decoder_block; POD_E_NOMEM */
pod_status pod_recipe_read(pod_settings *settings, const pod_maxtext *maxtext, pod_recipe *recipe,
                           pod_error *err);

/** What a name stands for, "transformer:layers=…".
 *  @param[out] found  whether MaxText or names.csv has it
 *  @return POD_E_INVALID: its decoder_block is refused; POD_E_TABLE; POD_E_NOMEM */
pod_status pod_recipe_model(const pod_maxtext *maxtext, const char *name, char *text, size_t size,
                            bool *found, pod_error *err);

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

/** Whether there are stages, or may be. */
bool pod_recipe_has_pipeline(const pod_recipe *recipe);

/** Capacity of an expert in % of its fair share of tokens, as pod_model has it: 0 = nothing is dropped. */
int64_t pod_recipe_capacity_percent(const pod_recipe *recipe);
