/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/facts.h"

#include "hlo/transfers.h"

#include "base/units.h"
#include "hlo/attributes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- a list of texts with runs ---- */

typedef struct entry {
    uint32_t begin; /* of its text in the list's */
    uint32_t length;
    int64_t bytes;
    int64_t runs;
    const char *text;
} entry;

typedef struct entries {
    pod_text text; /* one after the other */
    entry *entry;
    uint32_t count;
    uint32_t capacity;
} entries;

static pod_status entries_add(entries *list, size_t begin, int64_t bytes, int64_t runs,
                              pod_error *err)
{
    if (list->text.out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the facts");
    }
    POD_TRY(pod_hlo_reserve(&list->entry, &list->capacity, (uint64_t)list->count + 1,
                            sizeof *list->entry, err));
    list->entry[list->count++] = (entry){.begin = (uint32_t)begin,
                                         .length = (uint32_t)(list->text.size - begin),
                                         .bytes = bytes,
                                         .runs = runs};
    return POD_OK;
}

static int by_text(const void *a, const void *b)
{
    const entry *x = a;
    const entry *y = b;
    const uint32_t shorter = x->length < y->length ? x->length : y->length;
    const int order = memcmp(x->text, y->text, shorter);
    return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

static int by_volume(const void *a, const void *b)
{
    const entry *x = a;
    const entry *y = b;
    const pod_u128 of_x = (pod_u128)(uint64_t)x->bytes * (uint64_t)x->runs;
    const pod_u128 of_y = (pod_u128)(uint64_t)y->bytes * (uint64_t)y->runs;
    return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : by_text(a, b);
}

/* Adds up equal ones and writes TEXT:RUNS;… */
static pod_status entries_print(entries *list, bool volume, pod_text *out, pod_error *err)
{
    uint32_t kept = 0;
    bool fits = true;
    for (uint32_t i = 0; i < list->count; i++) {
        list->entry[i].text = list->text.data + list->entry[i].begin;
    }
    if (list->count > 0) {
        qsort(list->entry, list->count, sizeof *list->entry, by_text);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (kept > 0 && by_text(&list->entry[kept - 1], &list->entry[i]) == 0) {
            fits = fits
                   && pod_add_i64(list->entry[kept - 1].runs, list->entry[i].runs,
                                  &list->entry[kept - 1].runs);
        } else {
            list->entry[kept++] = list->entry[i];
        }
    }
    if (volume && kept > 0) {
        qsort(list->entry, kept, sizeof *list->entry, by_volume);
    }
    for (uint32_t i = 0; i < kept; i++) {
        pod_text_add(out, i > 0 ? ";" : "");
        pod_text_append(out, list->entry[i].text, list->entry[i].length);
        pod_text_printf(out, ":%" PRId64, list->entry[i].runs);
    }
    return fits ? POD_OK : pod_fail(err, POD_E_RANGE, "too large: runs of the program");
}

static void entries_fini(entries *list)
{
    pod_text_free(&list->text);
    free(list->entry);
}

/* ---- collectives, transfers, custom calls ---- */

static int64_t runs_of(const pod_hlo_analysis *analysis, uint32_t instruction)
{
    return analysis->runs[analysis->module->instruction[instruction].computation];
}

static void collective_describe(const pod_hlo_analysis *analysis,
                                const pod_hlo_collective *collective, pod_text *text)
{
    pod_text_printf(text, "%s:%s:%" PRId64, pod_hlo_opcode_name((pod_hlo_opcode)collective->opcode),
                    pod_hlo_how_name((pod_hlo_how)collective->how), collective->bytes);
    if (collective->how == POD_HLO_HOW_SYNC && collective->opcode == POD_HLO_ALL_REDUCE
        && collective->result_bytes != collective->bytes) {
        pod_text_printf(text, ">%" PRId64, collective->result_bytes);
    }
    if (collective->group == POD_HLO_NONE) {
        pod_text_add(text, ":-");
        return;
    }
    const pod_hlo_groups *groups = &analysis->collectives.pool.group[collective->group];
    pod_text_printf(text, ":%" PRId32 "x%" PRId32, groups->size, groups->count);
}

static pod_status list_collectives(const pod_hlo_analysis *analysis, pod_text *out, pod_error *err)
{
    entries list = {.count = 0};
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < analysis->collectives.count && st == POD_OK; i++) {
        const pod_hlo_collective *collective = &analysis->collectives.collective[i];
        const int64_t runs = runs_of(analysis, collective->instruction);
        if (runs > 0) {
            const size_t begin = list.text.size;
            collective_describe(analysis, collective, &list.text);
            st = entries_add(&list, begin, collective->bytes, runs, err);
        }
    }
    POD_THEN(st, entries_print(&list, true, out, err));
    entries_fini(&list);
    return st;
}

static pod_status list_transfers(const pod_hlo_analysis *analysis, pod_text *out, pod_error *err)
{
    entries list = {.count = 0};
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < analysis->collectives.ntransfers && st == POD_OK; i++) {
        const pod_hlo_transfer *transfer = &analysis->collectives.transfer[i];
        const int64_t runs = runs_of(analysis, transfer->instruction);
        const size_t begin = list.text.size;
        char name[64];
        if (runs == 0) {
            continue;
        }
        pod_text_printf(&list.text, "%s:%" PRId64 ":",
                        pod_hlo_transfer_name(analysis->module, transfer, name, sizeof name),
                        transfer->bytes);
        pod_text_append(&list.text, analysis->module->text + transfer->target.begin,
                        transfer->target.end - transfer->target.begin);
        st = entries_add(&list, begin, transfer->bytes, runs, err);
    }
    POD_THEN(st, entries_print(&list, true, out, err));
    entries_fini(&list);
    return st;
}

static pod_status list_custom_calls(const pod_hlo_analysis *analysis, pod_text *out, pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    entries list = {.count = 0};
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < module->ninstructions && st == POD_OK; i++) {
        const pod_hlo_instruction *call = &module->instruction[i];
        pod_hlo_span target;
        if (call->opcode == POD_HLO_CUSTOM_CALL && runs_of(analysis, i) > 0
            && pod_hlo_attribute_of(module, call, POD_HLO_AT_TARGET, &target)) {
            const size_t begin = list.text.size;
            target = pod_hlo_unquoted(module, target);
            pod_text_append(&list.text, module->text + target.begin, target.end - target.begin);
            st = entries_add(&list, begin, 0, runs_of(analysis, i), err);
        }
    }
    POD_THEN(st, entries_print(&list, false, out, err));
    entries_fini(&list);
    return st;
}

/* ---- loops ---- */

enum { PATHS_MAX = 1 << 16, PATH_DEPTH_MAX = POD_HLO_NESTING_MAX + 1 };

/* A walk from ENTRY that writes each path of loops once. */
typedef struct walk_state {
    const pod_hlo_analysis *analysis;
    pod_text *out;
    uint32_t loop[PATH_DEPTH_MAX]; /* whiles around */
    int depth;
    int64_t paths;
    uint32_t *visited;  /* visited[computation]: number of the path that entered it last */
    uint8_t *has_loops; /* has_loops[computation] */
    pod_error *err;
} walk_state;

static void find_loops(walk_state *walk)
{
    const pod_hlo_module *module = walk->analysis->module;
    for (uint32_t k = 0; k < module->ncomputations; k++) {
        const uint32_t number = module->callee_first[k];
        const pod_hlo_computation *computation = &module->computation[number];
        for (uint32_t i = 0; i < computation->count; i++) {
            const pod_hlo_instruction *instruction = &module->instruction[computation->first + i];
            int64_t times = 0;
            if (instruction->opcode == POD_HLO_WHILE) {
                walk->has_loops[number] = 1;
                continue;
            }
            const uint32_t entered = pod_hlo_entered(walk->analysis, instruction, &times);
            walk->has_loops[number] |= entered == POD_HLO_NONE ? 0 : walk->has_loops[entered];
        }
    }
}

static void print_path(walk_state *walk, int64_t trips)
{
    const pod_hlo_module *module = walk->analysis->module;
    pod_text_add(walk->out, walk->paths > 1 ? " " : "");
    for (int i = 0; i < walk->depth; i++) {
        const pod_hlo_span name = pod_hlo_name_of(module, module->instruction[walk->loop[i]].name);
        pod_text_add(walk->out, i > 0 ? "/" : "");
        pod_text_append(walk->out, module->text + name.begin, name.end - name.begin);
    }
    pod_text_printf(walk->out, ":%" PRId64, trips);
}

static pod_status walk_loops(walk_state *walk, uint32_t number, uint32_t path)
{
    const pod_hlo_module *module = walk->analysis->module;
    const pod_hlo_computation *computation = &module->computation[number];
    pod_status st = POD_OK;
    walk->visited[number] = path;
    for (uint32_t i = 0; i < computation->count && st == POD_OK; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[computation->first + i];
        int64_t times = 0;
        const uint32_t entered = pod_hlo_entered(walk->analysis, instruction, &times);
        if (instruction->opcode != POD_HLO_WHILE) {
            const bool anew = entered != POD_HLO_NONE && walk->has_loops[entered] != 0
                              && walk->visited[entered] != path;
            st = anew ? walk_loops(walk, entered, path) : POD_OK;
            continue;
        }
        if (++walk->paths > PATHS_MAX || walk->out->size > (size_t)POD_HLO_TEXT_MAX) {
            const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, walk->err);
            return pod_hlo_fail_limit(&scan, instruction->offset, "paths of loops in loops",
                                      PATHS_MAX);
        }
        walk->loop[walk->depth++] = computation->first + i;
        print_path(walk, times);
        st = walk->has_loops[entered] != 0 ? walk_loops(walk, entered, (uint32_t)walk->paths)
                                           : POD_OK;
        walk->depth--;
    }
    return st;
}

static pod_status list_loops(const pod_hlo_analysis *analysis, pod_text *out, pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    walk_state walk = {.analysis = analysis, .out = out, .err = err};
    walk.visited = calloc(module->ncomputations, sizeof *walk.visited);
    walk.has_loops = calloc(module->ncomputations, 1);
    pod_status st = POD_OK;
    if (walk.visited == NULL || walk.has_loops == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the facts");
    } else {
        find_loops(&walk);
        st = walk_loops(&walk, module->entry, PATHS_MAX + 1);
    }
    free(walk.has_loops);
    free(walk.visited);
    return st;
}

/* ---- all ---- */

static pod_status count_arguments(pod_hlo_facts *facts, const pod_hlo_module *module,
                                  pod_error *err)
{
    const pod_hlo_computation *main = &module->computation[module->entry];
    for (uint32_t i = main->first; i < main->first + main->count; i++) {
        const pod_hlo_instruction *parameter = &module->instruction[i];
        const int64_t bytes = pod_hlo_shape_of(module, parameter)->bytes;
        if (parameter->opcode == POD_HLO_PARAMETER
            && (!pod_add_i64(facts->argument_bytes, bytes, &facts->argument_bytes)
                || facts->argument_bytes > POD_HLO_COUNT_MAX)) {
            const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, err);
            return pod_hlo_fail_limit(&scan, parameter->offset, "bytes of the arguments",
                                      POD_HLO_COUNT_MAX);
        }
    }
    return POD_OK;
}

pod_status pod_hlo_facts_init(pod_hlo_facts *facts, const pod_hlo_analysis *analysis,
                              pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    memset(facts, 0, sizeof *facts);
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        facts->fusions += module->instruction[i].opcode == POD_HLO_FUSION;
    }
    pod_status st = count_arguments(facts, module, err);
    POD_THEN(st, list_loops(analysis, &facts->loops, err));
    POD_THEN(st, list_collectives(analysis, &facts->collectives, err));
    POD_THEN(st, list_transfers(analysis, &facts->dcn, err));
    POD_THEN(st, list_custom_calls(analysis, &facts->custom_calls, err));
    if (st == POD_OK
        && (facts->loops.out_of_memory || facts->collectives.out_of_memory
            || facts->dcn.out_of_memory || facts->custom_calls.out_of_memory)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the facts");
    }
    if (st != POD_OK) {
        pod_hlo_facts_fini(facts);
    }
    return st;
}

void pod_hlo_facts_fini(pod_hlo_facts *facts)
{
    pod_text_free(&facts->loops);
    pod_text_free(&facts->collectives);
    pod_text_free(&facts->dcn);
    pod_text_free(&facts->custom_calls);
}
