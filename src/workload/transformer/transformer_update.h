/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_update.h
 *  Private to workload/transformer/: what an optimizer does when all gradients are there.
 *
 *  Model: passes over HBM of a chip's shard, g bytes of a gradient (2), w, m and v of the weight and its moments (4, or
 *  2 where they are kept in bf16):
 *
 *      sgd           2·2 + g                                weights in bf16
 *      sgd-momentum  2·w + 2·m + g
 *      adam          g: the norm of all gradients, by which they are clipped; 2·(w + m + v) + g
 *      lars          w + g: norms of each layer's weights and gradients; as sgd-momentum
 *      lamb          g: as adam; w + 2·(m + v) + g: moments, and the norms of weights and updates; w + m + v again,
 *                    w written
 *      muon          2·m + g + 2: the moment's direction in bf16; five steps of Newton and Schulz; 2 + 2·w.
 *                    Embedding and head as adam
 *
 *  Norms of lars, lamb and muon are sums over the chips that share a layer: two numbers a bundle, of muon a matrix, one
 *  all-reduce.
 *
 *  A step of Newton and Schulz makes X nearer to orthogonal, X [r, c] with r <= c cut along c over the p chips that
 *  share the matrix, on the MXU:
 *
 *      A = X · Xᵀ            [r, c/p] · [c/p, r], summed over p: all-reduce of r² in bf16
 *      B = b·A + c·A · A     a chip makes r/p rows, all-gathered
 *      X = a·X + B · X       [r, r] · [r, c/p]
 *
 *  Matrices of a bundle go side by side: while one is summed, the next is multiplied.
 *  Sources: You et al. 2017 (LARS), 2020 (LAMB); Jordan et al. 2024 (Muon).
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_weights.h"

/** The update of all weights, after what their gradients still wait for. */
void pod_tf_update(pod_tf *tf);
