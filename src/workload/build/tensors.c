/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/tensors.h"

#include "base/grow.h"

#include <stdlib.h>

void pod_tensors_fini(pod_tensors *tensors)
{
    free(tensors->item);
    free(tensors->places);
    *tensors = (pod_tensors){0};
}

pod_status pod_tensors_add(pod_tensors *tensors, const pod_tensor *tensor, pod_error *err)
{
    if (!pod_grow_by_count(&tensors->item, tensors->count, sizeof *tensors->item)) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d arrays", (int)tensors->count);
    }
    tensors->item[tensors->count++] = *tensor;
    return POD_OK;
}

pod_status pod_tensors_place(pod_tensors *tensors, const pod_place *place, pod_error *err)
{
    if (!pod_grow_by_count(&tensors->places, tensors->nplaces, sizeof *tensors->places)) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d arrays", (int)tensors->nplaces);
    }
    tensors->places[tensors->nplaces++] = *place;
    return POD_OK;
}
