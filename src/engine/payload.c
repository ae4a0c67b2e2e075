/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/payload.h"

#include "base/status.h"

#include <stddef.h>
#include <stdlib.h>

_Static_assert(offsetof(pod_payload, bytes) % 16 == 0, "payload bytes are 16-byte aligned");

pod_payload *pod_payload_new(int64_t size_bytes)
{
    POD_ASSERT(size_bytes >= 0);
    pod_payload *payload = malloc(sizeof *payload + (size_t)size_bytes);
    if (payload == NULL) {
        return NULL;
    }
    payload->size_bytes = size_bytes;
    payload->references = 1;
    payload->reserved = 0;
    return payload;
}

pod_payload *pod_payload_retain(pod_payload *payload)
{
    if (payload != NULL) {
        payload->references++;
    }
    return payload;
}

void pod_payload_release(pod_payload *payload)
{
    if (payload == NULL) {
        return;
    }
    POD_ASSERT(payload->references > 0);
    payload->references--;
    if (payload->references == 0) {
        free(payload);
    }
}
