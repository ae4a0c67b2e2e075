/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/remat_question.h"

#include "workload/build/visits.h"

pod_remat_question pod_remat_question_of(const pod_step_request *request, const pod_step_work *work)
{
    const pod_work_layout *layout = &work->layout;
    const bool all =
        pod_circular_is_on(request, layout->stages) || request->microbatches < layout->stages;
    const int32_t parts = all ? request->microbatches : layout->stages;
    return (pod_remat_question){
        .request = request,
        .layers = request->model->layers / layout->stages,
        .tokens = work->rows / pod_work_layout_pieces(layout, &layout->rows) / request->microbatches
                  * parts,
        .tensor = pod_work_layout_pieces(layout, &layout->tensor),
        .flops = work->model_flops / layout->mesh->ndevices,
    };
}
