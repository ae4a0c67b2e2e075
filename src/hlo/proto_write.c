/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/proto_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Things by their number. */
typedef struct numbered {
    int64_t id;
    const void *what;
} numbered;

typedef struct writer {
    const PodWire__Module *module;
    numbered *computation; /* computation[module->n_computations], sorted */
    numbered *instruction; /* those of the computation that is written, sorted */
    pod_text *text;
    pod_error *err;
} writer;

static int numbered_compare(const void *a, const void *b)
{
    const numbered *one = a;
    const numbered *two = b;
    return (one->id > two->id) - (one->id < two->id);
}

static const void *numbered_find(const numbered *list, size_t count, int64_t id)
{
    const numbered key = {.id = id};
    const numbered *found =
        count == 0 ? NULL : bsearch(&key, list, count, sizeof *list, numbered_compare);
    return found == NULL ? NULL : found->what;
}

static const PodWire__Computation *computation_find(const writer *w, int64_t id)
{
    return numbered_find(w->computation, w->module->n_computations, id);
}

static pod_status fail_id(const writer *w, const PodWire__Instruction *instruction,
                          const char *what, int64_t id)
{
    return pod_fail(w->err, POD_E_INVALID, "program %s, instruction %s: no %s %" PRId64,
                    w->module->name, instruction->name, what, id);
}

/* ---- shapes ---- */

static const char *type_name(int32_t type)
{
    static const char *const names[] = {[1] = "pred",        [2] = "s8",
                                        [3] = "s16",         [4] = "s32",
                                        [5] = "s64",         [6] = "u8",
                                        [7] = "u16",         [8] = "u32",
                                        [9] = "u64",         [10] = "f16",
                                        [11] = "f32",        [12] = "f64",
                                        [14] = "opaque",     [15] = "c64",
                                        [16] = "bf16",       [17] = "token",
                                        [18] = "c128",       [19] = "f8e5m2",
                                        [20] = "f8e4m3fn",   [21] = "s4",
                                        [22] = "u4",         [23] = "f8e4m3b11fnuz",
                                        [24] = "f8e5m2fnuz", [25] = "f8e4m3fnuz",
                                        [26] = "s2",         [27] = "u2",
                                        [28] = "f8e4m3",     [29] = "f8e3m4",
                                        [30] = "s1",         [31] = "u1",
                                        [32] = "f4e2m1fn",   [33] = "f8e8m0fnu"};
    const size_t count = sizeof names / sizeof names[0];
    return type >= 0 && (size_t)type < count && names[type] != NULL ? names[type] : "unknown";
}

static void numbers_write(pod_text *text, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pod_text_printf(text, "%s%" PRId64, i > 0 ? "," : "", values[i]);
    }
}

static void layout_write(pod_text *text, const PodWire__Layout *layout)
{
    pod_text_add(text, "{");
    numbers_write(text, layout->minor_to_major, layout->n_minor_to_major);
    if (layout->n_tiles > 0 || layout->space > 0 || layout->element_bits > 0) {
        pod_text_add(text, ":");
    }
    for (size_t i = 0; i < layout->n_tiles; i++) {
        pod_text_add(text, i == 0 ? "T(" : "(");
        numbers_write(text, layout->tiles[i]->sizes, layout->tiles[i]->n_sizes);
        pod_text_add(text, ")");
    }
    if (layout->element_bits > 0) {
        pod_text_printf(text, "E(%" PRId64 ")", layout->element_bits);
    }
    if (layout->space > 0) {
        pod_text_printf(text, "S(%" PRId64 ")", layout->space);
    }
    pod_text_add(text, "}");
}

/* Tuples nest no deeper than hlo/proto.c lets them. */
static void shape_write(pod_text *text, const PodWire__Shape *shape)
{
    enum { TUPLE = 13 };
    if (shape->type == TUPLE) {
        pod_text_add(text, "(");
        for (size_t i = 0; i < shape->n_members; i++) {
            pod_text_add(text, i > 0 ? ", " : "");
            shape_write(text, shape->members[i]);
        }
        pod_text_add(text, ")");
        return;
    }
    pod_text_printf(text, "%s[", type_name(shape->type));
    numbers_write(text, shape->dims, shape->n_dims);
    pod_text_add(text, "]");
    if (shape->layout != NULL) {
        layout_write(text, shape->layout);
    }
}

/* ---- constants ---- */

enum { LITERALS_MAX = 1024 };

/* Bytes as numbers of `width` bytes, low byte first. */
static int64_t bytes_number(const ProtobufCBinaryData *bytes, size_t i, size_t width,
                            bool is_signed)
{
    uint64_t value = 0;
    for (size_t k = 0; k < width; k++) {
        value |= (uint64_t)bytes->data[i * width + k] << (8 * k);
    }
    const int64_t beyond = INT64_C(1) << (8 * width);
    return is_signed && (value >> (8 * width - 1)) != 0 ? (int64_t)value - beyond : (int64_t)value;
}

static size_t whole_numbers(const PodWire__Literal *l, int64_t *values)
{
    const ProtobufCBinaryData *bytes[] = {&l->s8, &l->u8, &l->s16, &l->u16};
    const size_t count = l->n_s32 + l->n_s64 + l->n_u32 + l->n_u64;
    for (size_t i = 0; i < count && count <= LITERALS_MAX; i++) {
        values[i] = l->n_s32 > 0   ? (i < l->n_s32 ? l->s32[i] : 0)
                    : l->n_s64 > 0 ? (i < l->n_s64 ? l->s64[i] : 0)
                    : l->n_u32 > 0 ? (i < l->n_u32 ? (int64_t)l->u32[i] : 0)
                                   : (int64_t)l->u64[i];
    }
    if (count > 0) {
        return count;
    }
    for (size_t b = 0; b < 4; b++) {
        const size_t width = b < 2 ? 1 : 2;
        const size_t n = bytes[b]->len / width;
        for (size_t i = 0; i < n && n <= LITERALS_MAX; i++) {
            values[i] = bytes_number(bytes[b], i, width, b % 2 == 0);
        }
        if (n > 0) {
            return n;
        }
    }
    return 0;
}

/* Whole numbers count for loops and groups; of others nothing is asked. */
static void literal_write(pod_text *text, const PodWire__Literal *literal, bool scalar)
{
    int64_t values[LITERALS_MAX];
    const size_t count = literal == NULL ? 0 : whole_numbers(literal, values);
    if (literal != NULL && scalar && literal->n_preds == 1) {
        pod_text_add(text, literal->preds[0] ? "true" : "false");
    } else if (count == 0 || count > LITERALS_MAX) {
        pod_text_add(text, "{...}");
    } else {
        pod_text_add(text, scalar ? "" : "{");
        numbers_write(text, values, count);
        pod_text_add(text, scalar ? "" : "}");
    }
}

/* ---- instructions ---- */

/* The one instruction that a start, update or done wraps: a computation of parameters and a root that takes them. */
static const PodWire__Instruction *wire_wrapped(const writer *w,
                                                const PodWire__Instruction *instruction)
{
    if (strncmp(instruction->opcode, "async-", 6) != 0 || instruction->n_calls != 1) {
        return NULL;
    }
    const PodWire__Computation *callee = computation_find(w, instruction->calls[0]);
    const PodWire__Instruction *root = NULL;
    for (size_t i = 0; callee != NULL && i < callee->n_instructions; i++) {
        const PodWire__Instruction *inner = callee->instructions[i];
        if (strcmp(inner->opcode, "parameter") == 0) {
            continue;
        }
        if (root != NULL) {
            return NULL;
        }
        root = inner;
    }
    return root;
}

/* Is a computation what some asynchronous instruction wraps, so that texts don't have it? */
static bool is_wrapped(const writer *w, const PodWire__Computation *computation)
{
    for (size_t c = 0; c < w->module->n_computations; c++) {
        const PodWire__Computation *caller = w->module->computations[c];
        for (size_t i = 0; i < caller->n_instructions; i++) {
            const PodWire__Instruction *instruction = caller->instructions[i];
            if (strncmp(instruction->opcode, "async-", 6) == 0 && instruction->n_calls == 1
                && instruction->calls[0] == computation->id
                && wire_wrapped(w, instruction) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* What the k-th computation that an instruction calls is to it. */
static const char *role_of(const char *opcode, size_t k)
{
    if (strcmp(opcode, "fusion") == 0 || strncmp(opcode, "async-", 6) == 0) {
        return "calls";
    }
    if (strcmp(opcode, "while") == 0) {
        return k == 0 ? "body" : "condition";
    }
    return "to_apply";
}

static pod_status calls_write(const writer *w, const PodWire__Instruction *instruction)
{
    const bool list = strcmp(instruction->opcode, "conditional") == 0
                      || strcmp(instruction->opcode, "custom-call") == 0
                      || strcmp(instruction->opcode, "select-and-scatter") == 0;
    for (size_t k = 0; k < instruction->n_calls; k++) {
        const PodWire__Computation *callee = computation_find(w, instruction->calls[k]);
        if (callee == NULL) {
            return fail_id(w, instruction, "computation", instruction->calls[k]);
        }
        if (list) {
            pod_text_printf(w->text, "%s%%%s",
                            k > 0 ? ", "
                            : strcmp(instruction->opcode, "conditional") == 0
                                ? ", branch_computations={"
                                : ", called_computations={",
                            callee->name);
        } else {
            pod_text_printf(w->text, ", %s=%%%s", role_of(instruction->opcode, k), callee->name);
        }
    }
    pod_text_add(w->text, list && instruction->n_calls > 0 ? "}" : "");
    return POD_OK;
}

static pod_status operands_write(const writer *w, const PodWire__Computation *computation,
                                 const PodWire__Instruction *instruction)
{
    for (size_t i = 0; i < instruction->n_operands; i++) {
        const PodWire__Instruction *operand =
            numbered_find(w->instruction, computation->n_instructions, instruction->operands[i]);
        if (operand == NULL) {
            return fail_id(w, instruction, "operand", instruction->operands[i]);
        }
        pod_text_printf(w->text, "%s%%%s", i > 0 ? ", " : "", operand->name);
    }
    return POD_OK;
}

static pod_status instruction_write(const writer *w, const PodWire__Computation *computation,
                                    const PodWire__Instruction *instruction)
{
    const PodWire__Instruction *inner = wire_wrapped(w, instruction);
    const PodWire__Instruction *of = inner != NULL ? inner : instruction;
    const char *suffix = inner != NULL ? strchr(instruction->opcode, '-') : "";
    const PodWire__Devices *devices = of->devices;
    pod_status st = POD_OK;
    if (devices != NULL && devices->iota == NULL && devices->n_groups == 0
        && devices->base.n_unknown_fields > 0) {
        return pod_fail(w->err, POD_E_INVALID,
                        "program %s, instruction %s: groups in a form that isn't known; pass the "
                        "text",
                        w->module->name, instruction->name);
    }
    if (instruction->shape == NULL) {
        return pod_fail(w->err, POD_E_INVALID, "program %s, instruction %s: no shape",
                        w->module->name, instruction->name);
    }
    pod_text_printf(w->text, "  %s%%%s = ", instruction->id == computation->root ? "ROOT " : "",
                    instruction->name);
    shape_write(w->text, instruction->shape);
    pod_text_printf(w->text, " %s%s(", of->opcode, suffix);
    if (strcmp(instruction->opcode, "parameter") == 0) {
        pod_text_printf(w->text, "%" PRId64, instruction->parameter);
    } else if (strcmp(instruction->opcode, "constant") == 0) {
        literal_write(w->text, instruction->literal, instruction->shape->n_dims == 0);
    } else {
        st = operands_write(w, computation, instruction);
    }
    pod_text_add(w->text, ")");
    if (st == POD_OK && (inner == NULL || strcmp(suffix, "-start") == 0)) {
        st = calls_write(w, of);
        pod_hlo_proto_attributes(of, w->text);
    }
    if (instruction->thread[0] != '\0' && strcmp(instruction->thread, "main") != 0) {
        pod_text_printf(w->text, ", async_execution_thread=\"%s\"", instruction->thread);
    }
    pod_text_add(w->text, "\n");
    return st;
}

/* ---- computations ---- */

static const PodWire__Ids *sequence_of(const PodWire__Module *module, int64_t computation)
{
    const PodWire__Schedule *schedule = module->schedule;
    for (size_t i = 0; schedule != NULL && i < schedule->n_sequences; i++) {
        if (schedule->sequences[i]->key == computation) {
            return schedule->sequences[i]->value;
        }
    }
    return NULL;
}

static pod_status computation_write(writer *w, const PodWire__Computation *computation)
{
    const size_t count = computation->n_instructions;
    const PodWire__Ids *order = sequence_of(w->module, computation->id);
    pod_status st = POD_OK;
    numbered *list = calloc(count + 1, sizeof *list);
    if (list == NULL) {
        return pod_fail(w->err, POD_E_NOMEM, "no memory for a program");
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = (numbered){computation->instructions[i]->id, computation->instructions[i]};
    }
    qsort(list, count, sizeof *list, numbered_compare);
    w->instruction = list;
    pod_text_printf(w->text, "\n%s%%%s {\n", computation->id == w->module->entry ? "ENTRY " : "",
                    computation->name);
    const size_t written = order != NULL ? order->n_ids : count;
    for (size_t i = 0; i < written && st == POD_OK; i++) {
        const PodWire__Instruction *instruction = order != NULL
                                                      ? numbered_find(list, count, order->ids[i])
                                                      : computation->instructions[i];
        st = instruction != NULL ? instruction_write(w, computation, instruction)
                                 : pod_fail(w->err, POD_E_INVALID,
                                            "program %s: its schedule has instruction %" PRId64
                                            ", which computation %s has not",
                                            w->module->name, order->ids[i], computation->name);
    }
    pod_text_add(w->text, "}\n");
    free(list);
    return st;
}

/* ---- the head ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Devices that an instruction's groups or pairs name. */
static int64_t devices_named(const PodWire__Instruction *instruction)
{
    const PodWire__Devices *devices = instruction->devices;
    int64_t most = 0;
    if (devices != NULL && devices->iota != NULL && devices->iota->size > 0
        && devices->iota->groups > 0 && devices->iota->groups < INT32_MAX
        && devices->iota->size < INT32_MAX) {
        most = devices->iota->groups * devices->iota->size;
    }
    const bool listed = devices != NULL && devices->n_groups > 0;
    PodWire__Ids *const *groups = listed ? devices->groups : instruction->groups;
    const size_t count = listed ? devices->n_groups : instruction->n_groups;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < groups[i]->n_ids; k++) {
            most = larger(most, groups[i]->ids[k] < INT32_MAX ? groups[i]->ids[k] + 1 : 0);
        }
    }
    for (size_t i = 0; i < instruction->n_pairs; i++) {
        const int64_t id = larger(instruction->pairs[i]->source, instruction->pairs[i]->target);
        most = larger(most, id < INT32_MAX ? id + 1 : 0);
    }
    return most;
}

static int64_t partitions_of(const PodWire__Module *module)
{
    int64_t most = 1;
    if (module->assignment != NULL) {
        return larger(1, module->assignment->partitions);
    }
    for (size_t c = 0; c < module->n_computations; c++) {
        const PodWire__Computation *computation = module->computations[c];
        for (size_t i = 0; i < computation->n_instructions; i++) {
            most = larger(most, devices_named(computation->instructions[i]));
        }
    }
    return most;
}

static void head_write(const writer *w)
{
    const PodWire__Module *module = w->module;
    const PodWire__Aliases *aliases = module->aliases;
    pod_text_printf(w->text, "HloModule %s%s", module->name,
                    module->schedule != NULL ? ", is_scheduled=true" : "");
    for (size_t i = 0; aliases != NULL && i < aliases->n_entries; i++) {
        const PodWire__Alias *alias = aliases->entries[i];
        pod_text_add(w->text, i == 0 ? ", input_output_alias={ {" : ", {");
        numbers_write(w->text, alias->output, alias->n_output);
        pod_text_printf(w->text, "}: (%" PRId64 ", {", alias->input);
        numbers_write(w->text, alias->index, alias->n_index);
        pod_text_add(w->text, "}, may-alias)");
    }
    pod_text_add(w->text, aliases != NULL && aliases->n_entries > 0 ? " }" : "");
    if (module->assignment != NULL && module->assignment->replicas > 1) {
        pod_text_printf(w->text, ", replica_count=%" PRId32, module->assignment->replicas);
    }
    pod_text_printf(w->text, ", num_partitions=%" PRId64 "\n", partitions_of(module));
}

static void frames_write(const writer *w)
{
    const PodWire__Frames *frames = w->module->frames;
    if (frames == NULL || frames->n_frames == 0) {
        return;
    }
    pod_text_add(w->text, "\nFileNames\n");
    for (size_t i = 0; i < frames->n_files; i++) {
        pod_text_printf(w->text, "%zu \"%s\"\n", i + 1,
                        strchr(frames->files[i], '\n') == NULL ? frames->files[i] : "?");
    }
    pod_text_add(w->text, "\nFileLocations\n");
    for (size_t i = 0; i < frames->n_locations; i++) {
        pod_text_printf(w->text, "%zu {file_name_id=%" PRId32 " line=%" PRId32 "}\n", i + 1,
                        frames->locations[i]->file, frames->locations[i]->line);
    }
    pod_text_add(w->text, "\nStackFrames\n");
    for (size_t i = 0; i < frames->n_frames; i++) {
        pod_text_printf(w->text, "%zu {file_location_id=%" PRId32 "}\n", i + 1,
                        frames->frames[i]->location);
    }
}

pod_status pod_hlo_proto_write(const PodWire__Module *module, pod_text *text, pod_error *err)
{
    writer w = {.module = module, .text = text, .err = err};
    pod_status st = POD_OK;
    w.computation = calloc(module->n_computations + 1, sizeof *w.computation);
    if (w.computation == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a program");
    }
    for (size_t i = 0; i < module->n_computations; i++) {
        w.computation[i] = (numbered){module->computations[i]->id, module->computations[i]};
    }
    qsort(w.computation, module->n_computations, sizeof *w.computation, numbered_compare);
    head_write(&w);
    frames_write(&w);
    for (size_t i = 0; i < module->n_computations && st == POD_OK; i++) {
        if (!is_wrapped(&w, module->computations[i])) {
            st = computation_write(&w, module->computations[i]);
        }
    }
    free(w.computation);
    return st;
}
