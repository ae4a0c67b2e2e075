/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer.h  Private to workload/transformer/: prefill and decode.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** A step of inference, prefill or decode. */
pod_status pod_tf_infer(pod_tf *tf, pod_error *err);
