/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/payload.h  Reference-counted bytes that travel with events.
 *
 *  Inside a rank they are shared, between ranks they are copied. Whoever gets them must not write to them.
 *  Threads: none. */
#pragma once

#include <stdint.h>

typedef struct pod_payload {
    int64_t size_bytes;
    int32_t references;
    int32_t reserved;
    unsigned char bytes[]; /**< 16-byte aligned */
} pod_payload;

/** New payload with one reference, bytes undefined; NULL when memory is out. */
pod_payload *pod_payload_new(int64_t size_bytes);
pod_payload *pod_payload_retain(pod_payload *payload);
void pod_payload_release(pod_payload *payload);
