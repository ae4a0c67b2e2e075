/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/recipe.h  What a recipe (models/recipe.h) asks for: on a slice its mesh and its batch, and how
 *  the step is carried out.
 *
 *  Model: a recipe counts JAX devices, a step chips. Where the cores of a chip are devices of their own
 *  (tpu7x: two), the recipe's mesh is laid on the cores by JAX's rules, and the mesh axis that gets the
 *  cores loses their factor:
 *
 *      tpu7x:4x4x4   data=2,fsdp=64 of 128 devices    data on the cores, fsdp on xyz    fsdp=64 of 64 chips
 *      tpu7x:4x4x4   data=4,fsdp=32                   data on z, fsdp on xy and cores   data=4,fsdp=16
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "base/table.h"
#include "mesh/device_mesh.h"
#include "models/recipe.h"
#include "workload/build/settings.h"

/** Columns and names of models/recipes.csv. Not collective. @return POD_E_TABLE */
pod_status pod_experiment_recipes_check(const pod_table *table, pod_error *err);

/** A row of that table.
 *  @param model  the model it is for, which may have been run with other settings (on_model); NULL = the recipe's own
 *  @param[out] settings  the settings of the row, appended
 *  @param[out] chip      that ran it, belongs to the table
 *  @return POD_E_USAGE: no such recipe, with the nearest */
pod_status pod_experiment_recipe_find(const pod_table *table, const char *name, const char *model,
                                      pod_settings *settings, const char **chip, pod_error *err);

/** What the run of that many chips was published with besides: types of the optimizer's states.
 *  @param settings  of the run; what they say themselves is not added
 *  @param[out] added  appended; nothing for other numbers of chips
 *  @return POD_E_TABLE, POD_E_NOMEM */
pod_status pod_experiment_recipe_states(const pod_table *table, const char *name,
                                        const pod_settings *settings, int64_t chips,
                                        pod_settings *added, pod_error *err);

/** JAX devices of a chip of this slice: its cores where they are devices of their own, else 1. */
int32_t pod_experiment_recipe_devices(const pod_slice *slice);

/** The mesh in chips.
 *  @param mesh, dcn_mesh  instead of the recipe's, in chips, as `--mesh` and `--dcn-mesh` take them; NULL = the
 *                         recipe's
 *  @param split_axes      as well as the recipe's: mesh axes may share a physical axis
 *  @return what pod_mesh_init says; POD_E_INVALID if what the cores lie on isn't cut by their number */
pod_status pod_experiment_recipe_mesh(const pod_recipe *recipe, const char *mesh,
                                      const char *dcn_mesh, bool split_axes, const pod_slice *slice,
                                      pod_logical_mesh *logical, pod_error *err);

/** How the step is carried out: kernels, context parallelism, experts, quantisation, types of the optimizer's
 *  states. Of a split backward pass both kernels have the blocks of dkv. */
pod_step_settings pod_experiment_recipe_settings(const pod_recipe *recipe);

/** Sequences of a step on all slices. @return as pod_recipe_batch */
pod_status pod_experiment_recipe_batch(const pod_recipe *recipe, const pod_slice *slice,
                                       int64_t *batch, pod_error *err);
