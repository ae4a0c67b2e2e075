/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/work.h"

#include <stdlib.h>

/* The matmul with most FLOPs that an instruction is or holds. */
static uint32_t largest_in(const pod_hlo_works *works, uint32_t instruction)
{
    const uint32_t fused = pod_hlo_fused(works->module, &works->module->instruction[instruction]);
    return fused != POD_HLO_NONE ? works->largest[fused] : works->matmul_of[instruction];
}

static void computation_look(pod_hlo_works *works, uint32_t number)
{
    const pod_hlo_computation *computation = &works->module->computation[number];
    uint32_t *largest = &works->largest[number];
    *largest = POD_HLO_NONE;
    for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
        const uint32_t other = largest_in(works, i);
        if (other != POD_HLO_NONE
            && (*largest == POD_HLO_NONE
                || works->analysis->matmul[other].flops
                       > works->analysis->matmul[*largest].flops)) {
            *largest = other;
        }
    }
}

static pod_status matmuls_find(pod_hlo_works *works, pod_error *err)
{
    const pod_hlo_module *module = works->module;
    const pod_hlo_analysis *analysis = works->analysis;
    works->matmul_of = malloc(((size_t)module->ninstructions + 1) * sizeof *works->matmul_of);
    works->largest = malloc(((size_t)module->ncomputations + 1) * sizeof *works->largest);
    if (works->matmul_of == NULL || works->largest == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the matmuls of an HLO text");
    }
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        works->matmul_of[i] = POD_HLO_NONE;
    }
    for (uint32_t i = 0; i < analysis->matmul_first[module->ncomputations]; i++) {
        works->matmul_of[analysis->matmul[i].instruction] = i;
    }
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        computation_look(works, module->callee_first[c]);
    }
    return POD_OK;
}

pod_status pod_hlo_works_new(const pod_hlo_analysis *analysis, pod_hlo_works **out, pod_error *err)
{
    *out = NULL;
    pod_hlo_works *works = calloc(1, sizeof *works);
    if (works == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    works->analysis = analysis;
    works->module = analysis->module;
    pod_status st = matmuls_find(works, err);
    if (st == POD_OK) {
        st = pod_hlo_bytes_init(&works->bytes, analysis, err);
        works->counted = st == POD_OK;
    }
    if (st != POD_OK) {
        pod_hlo_works_free(works);
        return st;
    }
    *out = works;
    return POD_OK;
}

void pod_hlo_works_free(pod_hlo_works *works)
{
    if (works != NULL) {
        if (works->counted) {
            pod_hlo_bytes_fini(&works->bytes);
        }
        free(works->matmul_of);
        free(works->largest);
        free(works);
    }
}

pod_status pod_hlo_work_of(const pod_hlo_works *works, uint32_t instruction, pod_hlo_work *work,
                           pod_error *err)
{
    const pod_hlo_module *module = works->module;
    const pod_hlo_instruction *what = &module->instruction[instruction];
    const uint32_t fused = pod_hlo_fused(module, what);
    *work = (pod_hlo_work){.kind = pod_hlo_kind_of(works->analysis, what),
                           .largest = largest_in(works, instruction)};
    if (fused != POD_HLO_NONE) {
        work->flops = works->analysis->inside[fused].flops;
    } else if (work->largest != POD_HLO_NONE) {
        work->flops = works->analysis->matmul[work->largest].flops;
    }
    return pod_hlo_traffic_of(&works->bytes, what, &work->traffic, err);
}
