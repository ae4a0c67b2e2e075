/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_keep.h"

#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"

bool pod_tf_is_kept(const pod_tf *tf, unsigned mask)
{
    return (~(tf->plan.hbm | tf->plan.host) & mask) == 0;
}

bool pod_tf_qkv_is_whole(const pod_tf *tf)
{
    return (~tf->plan.hbm & POD_TF_QKV) == 0 || (~tf->plan.host & POD_TF_QKV) == 0;
}

pod_tf_saved *pod_tf_saved_of(const pod_tf *tf, int32_t layer)
{
    return &tf->saved[tf->stage.part * tf->stage.layers + pod_stage_local(&tf->stage, layer)];
}

static const char *slot_name(pod_tf_slot slot)
{
    static const char *const names[] = {"context", "out", "mlpwi", "mlpwo", "norms", "scores"};
    if (slot >= POD_TF_SLOT_CONTEXT) {
        return names[slot - POD_TF_SLOT_CONTEXT];
    }
    return slot == POD_TF_SLOT_INPUT ? "input" : "qkv";
}

void pod_tf_keep(pod_tf *tf, pod_tf_slot slot, unsigned mask, int32_t buffer)
{
    pod_tf_saved *saved = pod_tf_saved_of(tf, tf->layer);
    if (tf->stage.build.st != POD_OK || tf->stage.request->mode != POD_STEP_TRAIN || buffer == NONE
        || !pod_tf_is_kept(tf, mask)) {
        return;
    }
    saved->number[slot] = slot == POD_TF_SLOT_NORMS ? NONE : pod_tf_number(tf, buffer);
    const bool cut = tf->stage.request->attention == POD_ATTENTION_FLASH;
    if (tf->tensor > 1 && cut && (slot == POD_TF_SLOT_INPUT || slot == POD_TF_SLOT_OUT)) {
        buffer = pod_tf_activation(tf, "kept", tf->model->d_model / tf->tensor);
    }
    if (tf->stage.build.st != POD_OK) {
        return;
    }
    pod_buffer *kept = &tf->program->buffers[buffer];
    if ((tf->plan.host & mask) != 0) {
        char name[POD_BUILD_NAME_MAX];
        pod_build_name(name, "fwd", "store", slot_name(slot));
        saved->store[slot] = pod_tf_host(tf, name, pod_buffer_bytes(kept), NONE, buffer);
        saved->buffer[slot] = buffer; /* its size; until it is loaded it isn't there */
        saved->on_host[slot] = true;
    } else {
        const bool copy = slot == POD_TF_SLOT_MLPWO
                          || (slot >= POD_TF_SLOT_PROJECTION && slot < POD_TF_SLOT_CONTEXT
                              && !pod_tf_qkv_is_whole(tf));
        saved->buffer[slot] = buffer;
        kept->stack = tf->stage.circular ? 0 : tf->stage.part; /* of all passes one */
        kept->made = copy ? tf->last_core : NONE;              /* no op touches a copy */
    }
}

void pod_tf_load(pod_tf *tf, int32_t layer)
{
    if (tf->stage.build.st != POD_OK || tf->plan.host == 0) {
        return;
    }
    pod_tf_saved *saved = pod_tf_saved_of(tf, layer);
    const int32_t now = tf->layer;
    tf->layer = layer;
    for (int slot = 0; slot < POD_TF_SLOTS; slot++) {
        if (!saved->on_host[slot] || tf->stage.build.st != POD_OK) {
            continue;
        }
        char name[POD_BUILD_NAME_MAX];
        const pod_buffer like = tf->program->buffers[saved->buffer[slot]];
        pod_build_name(name, "bwd", "load", slot_name((pod_tf_slot)slot));
        saved->buffer[slot] =
            pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, like.dtype, like.rows, like.columns);
        saved->load[slot] =
            pod_tf_host(tf, name, like.rows * like.columns * pod_dtype_size(like.dtype),
                        saved->store[slot], saved->buffer[slot]);
    }
    tf->layer = now;
}

int32_t pod_tf_kept(pod_tf *tf, pod_tf_slot slot)
{
    const pod_tf_saved *saved = pod_tf_saved_of(tf, tf->layer);
    pod_tf_wait(tf, saved->load[slot]);
    pod_tf_number_set(tf, saved->buffer[slot], saved->number[slot]);
    return saved->buffer[slot];
}
