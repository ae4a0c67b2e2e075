/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/event.h  What cells of the engine post to each other. */
#pragma once

#include "base/units.h"
#include "engine/payload.h"

/** 64 bytes, plain data: the arguments belong to the model. */
typedef struct pod_event {
    pod_time_ps time_ps;
    int32_t dst;
    int32_t src;  /**< set by posting */
    uint32_t seq; /**< set by posting */
    uint16_t kind;
    uint16_t small;
    uint64_t arg[4];
    pod_payload *payload; /**< or NULL */
} pod_event;
