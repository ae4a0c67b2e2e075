/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/tensors.h"

#include <stdlib.h>

void pod_tensors_fini(pod_tensors *tensors)
{
    free(tensors->item);
    *tensors = (pod_tensors){0};
}

pod_status pod_tensors_add(pod_tensors *tensors, const pod_tensor *tensor, pod_error *err)
{
    pod_tensor *item = tensors->item;
    if ((tensors->count & (tensors->count - 1)) == 0) {
        const size_t capacity = tensors->count == 0 ? 1 : 2 * (size_t)tensors->count;
        item = realloc(tensors->item, capacity * sizeof *item);
        if (item == NULL) {
            return pod_fail(err, POD_E_NOMEM, "out of memory for %d arrays", (int)tensors->count);
        }
    }
    tensors->item = item;
    item[tensors->count++] = *tensor;
    return POD_OK;
}
