/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer.h  Private to workload/: what one chip does for a step of a transformer.
 *
 *  Model: a stage runs microbatches in 1F1B order through its layers (workload/build/stage.h); the first
 *  stage embeds, the last has the head and the loss; at the end the optimizer updates all weights. Ops
 *  say only how long they take and which memory they need: they hold no data.
 *
 *  Cuts. Sequences are cut over data, fsdp and expert, tokens of a sequence over sequence; heads, d_ff
 *  and vocab over tensor; experts over expert; layers over pipeline. A *bundle* is the weights that are
 *  gathered together: those of attention, those before and those after the elementwise function of an
 *  MLP, likewise of experts, the embedding and the head. Bundles are stored in f32 (for adam), cut over
 *  tensor, fsdp, sequence and expert, whatever divides, padded up. Before each use a bundle is rounded to bf16 and
 *  gathered, once forward and once backward (recomputing uses the same copy); gradients, in bf16, are
 *  reduce-scattered over the same axes and all-reduced over data. Use number u may be
 *  gathered once use u - 1 - ahead has begun.
 *
 *  Communication of weights and gradients overlaps with products, but not its HBM traffic: what is received is
 *  written, read to be passed on, and copied into the layout that products want: four bytes for each byte of a whole
 *  bundle (the chip's gather_hbm_ratio). Of gradients the partial sums that arrive are read beside the chip's own, too,
 *  and their sum is written: seven (scatter_hbm_ratio). The core's work waits for the HBM meanwhile.
 *
 *  Over tensor activations are all-reduced after each pair of products, forward and backward. Backward sums go on
 *  beside derivatives by weights; one that is done again beside the first product of the MLP's backward pass. Over
 *  sequence
 *  keys and values are gathered, and their gradients reduced; over expert tokens go to their experts and back
 *  (all-to-all); over pipeline stages exchange activations.
 *
 *  Elementwise work moves HBM bytes, what XLA fuses into products does not: norms, rotation, the
 *  function of the MLP and residuals as in transformer_layer.c.
 *
 *  What is kept from forward to backward: pod_remat_plan (workload/build/remat.h).
 *  Ownership: init/fini. Errors stick in build.st. Threads: none. */
#pragma once

#include "workload/build/request.h"

/** The program of stage `number`. @return status of pod_step_build */
pod_status pod_transformer_program(const pod_step_request *request, pod_step_work *work,
                                   int32_t number, pod_error *err);
