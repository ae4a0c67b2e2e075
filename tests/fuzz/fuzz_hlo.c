/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/bytes.h"
#include "hlo/facts.h"
#include "hlo/kind.h"
#include "hlo/memory.h"

#include "fuzz.h"

#include <string.h>

/* What every answer must hold, whatever the text. */
static void check(const pod_hlo_module *module, const pod_hlo_analysis *analysis)
{
    const pod_hlo_totals *all = &analysis->inside[module->entry];
    POD_ASSERT(all->flops >= 0 && all->flops <= POD_HLO_COUNT_MAX);
    POD_ASSERT(all->flops <= all->flops_all_taps && all->executed >= 0 && all->cycles >= 0);
    for (uint32_t i = 0; i < analysis->collectives.count; i++) {
        const pod_hlo_collective *collective = &analysis->collectives.collective[i];
        if (collective->group != POD_HLO_NONE && module->partitions <= 1024) {
            const pod_hlo_groups_pool *pool = &analysis->collectives.pool;
            char seen[1024] = {0};
            int32_t partitions[1024];
            pod_hlo_groups_list(pool, collective->group, partitions);
            for (int64_t k = 0; k < module->partitions; k++) {
                POD_ASSERT(partitions[k] >= 0 && partitions[k] < module->partitions
                           && seen[partitions[k]] == 0);
                seen[partitions[k]] = 1;
            }
        }
    }
}

/* Bytes and operations of every instruction that is run, and the memory. */
static pod_status costs(const pod_hlo_module *module, const pod_hlo_analysis *analysis,
                        pod_error *err)
{
    pod_hlo_bytes bytes;
    pod_hlo_memory memory;
    pod_status st = pod_hlo_bytes_init(&bytes, analysis, err);
    if (st != POD_OK) {
        return st;
    }
    for (uint32_t i = 0; i < module->ninstructions && st == POD_OK; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        pod_hlo_traffic traffic;
        if (analysis->runs[instruction->computation] > 0) {
            st = pod_hlo_traffic_of(&bytes, instruction, &traffic, err);
            POD_ASSERT(st != POD_OK || (traffic.hbm_read >= 0 && traffic.hbm_write >= 0));
            POD_ASSERT(pod_hlo_kind_of(analysis, instruction) < POD_HLO_KINDS);
        }
    }
    pod_hlo_bytes_fini(&bytes);
    if (st == POD_OK) {
        st = pod_hlo_memory_init(&memory, analysis, err);
    }
    if (st == POD_OK) {
        POD_ASSERT(memory.bytes >= memory.argument_bytes && memory.argument_bytes >= 0);
        pod_hlo_memory_fini(&memory);
    }
    return st;
}

static pod_status read_facts(const pod_hlo_analysis *analysis, pod_error *err)
{
    pod_hlo_facts facts;
    const pod_status st = pod_hlo_facts_init(&facts, analysis, err);
    if (st == POD_OK) {
        pod_hlo_facts_fini(&facts);
    }
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_hlo_module *module = NULL;
    pod_hlo_analysis analysis;
    pod_error err = {0};
    pod_status st = pod_hlo_parse("a.txt", (const char *)data, size, &module, &err);
    if (st == POD_OK) {
        st = pod_hlo_analysis_init(&analysis, module, NULL, &err);
        if (st == POD_OK) {
            check(module, &analysis);
            st = read_facts(&analysis, &err);
            st = st == POD_OK ? costs(module, &analysis, &err) : st;
            pod_hlo_analysis_fini(&analysis);
        }
        pod_hlo_free(module);
    }
    POD_ASSERT(st == POD_OK || pod_status_exit_code(st) == 3);
    POD_ASSERT(st == POD_OK || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
    return 0;
}
