/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/chakra_write.h"

#include "program/op_time.h"

#include <chakra.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char version[] = "1.0.0";

static pod_status no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory to write a trace");
}

/* ---- groups ---- */

/* Dimensions that a group spans whole, in the order of ranks: bit POD_AXES the slices; 0: it is no such group. */
static unsigned whole_dims(const pod_chakra_written *what, const pod_group *group)
{
    const pod_slice *slice = what->slice;
    const bool joined = group->slices > 1;
    const pod_group *inside = joined ? group->inside : group;
    unsigned dims = joined ? 1U << POD_AXES : 0U;
    if (inside->ndims == 0 && inside->size > 1) {
        return 0;
    }
    for (int i = 0; i < inside->ndims; i++) {
        const pod_group_dim *dim = &inside->dim[i];
        if (dim->stride != 1 || dim->size != slice->dims[dim->axis]) {
            return 0;
        }
        dims |= 1U << dim->axis;
    }
    for (int32_t place = 0; joined && place < group->slices; place++) {
        if (group->slices != slice->nslices
            || group->chip_of[place * inside->size] / slice->nchips != place) {
            return 0;
        }
    }
    return dims;
}

/* Numbers of groups that have a name, from 1 on. A group inside a slice is another in each of them. */
static int32_t groups_of(const pod_chakra_written *what, const pod_group *group)
{
    return group->count * (group->slices > 1 ? 1 : what->slice->nslices);
}

/* The first name of each group that has names, and the root of its broadcasts; a root that isn't the first chip can be
 * said by a name only. */
typedef struct group_names {
    int32_t first; /* 0 = none */
    int32_t root;  /* rank */
} group_names;

/* Of permutes only those over slices do: the NICs' order is by group. */
static bool says_group(const pod_programs *programs, const pod_op *op)
{
    return pod_op_is_collective(op)
           && (op->op != POD_PERMUTE || programs->groups[op->group].group.slices > 1);
}

static pod_status names_make(const pod_chakra_written *what, group_names **names, pod_error *err)
{
    const pod_programs *programs = what->programs;
    int32_t next = 1;
    *names = calloc((size_t)programs->ngroups + 1, sizeof **names);
    if (*names == NULL) {
        return no_memory(err);
    }
    for (int32_t s = 0; s < programs->nstages; s++) {
        for (int32_t i = 0; i < programs->stages[s].nops; i++) {
            const pod_op *op = &programs->stages[s].ops[i];
            if (!says_group(programs, op)) {
                continue;
            }
            group_names *own = &(*names)[op->group];
            const pod_group *group = &programs->groups[op->group].group;
            own->root = op->root != 0 ? op->root : own->root;
            if (own->first == 0 && (own->root != 0 || whole_dims(what, group) == 0)) {
                own->first = next;
                next += groups_of(what, group);
            }
        }
    }
    return POD_OK;
}

/* The name of a chip's group. */
static int32_t group_name(const pod_chakra_written *what, const group_names *names, int32_t group,
                          int32_t chip)
{
    const pod_group *own = &what->programs->groups[group].group;
    return names[group].first + pod_group_number(own, chip)
           + (own->slices > 1 ? 0 : chip / what->slice->nchips * own->count);
}

static void group_write(const pod_group *group, int32_t chip, int32_t root, pod_text *json)
{
    for (int32_t i = 0; i < group->size; i++) {
        /* the root first, the others in their order */
        const int32_t rank = i == 0 ? root : i <= root ? i - 1 : i;
        pod_text_printf(json, "%s%d", i > 0 ? ", " : "", (int)pod_group_chip(group, chip, rank));
    }
}

pod_status pod_chakra_write_groups(const pod_chakra_written *what, pod_text *json, pod_error *err)
{
    group_names *names = NULL;
    bool any = false;
    POD_TRY(names_make(what, &names, err));
    for (int32_t g = 0; g < what->programs->ngroups; g++) {
        const pod_group *group = &what->programs->groups[g].group;
        const int32_t chips = what->slice->nchips * what->slice->nslices;
        for (int32_t chip = 0; names[g].first > 0 && chip < chips; chip++) {
            if (pod_group_rank(group, chip) == 0) {
                pod_text_printf(json, "%s\"%d\": [", any ? ",\n " : "{",
                                (int)group_name(what, names, g, chip));
                group_write(group, chip, names[g].root, json);
                pod_text_add(json, "]");
                any = true;
            }
        }
    }
    pod_text_add(json, any ? "}\n" : "");
    free(names);
    return json->out_of_memory ? no_memory(err) : POD_OK;
}

/* ---- attributes ---- */

enum { ATTRIBUTES_MAX = 16, DIMS_MAX = POD_AXES + 1 };

/* A node as it is put together. */
typedef struct draft {
    PodChakra__Node node;
    PodChakra__Attribute attribute[ATTRIBUTES_MAX];
    PodChakra__Attribute *list[ATTRIBUTES_MAX];
    char name[ATTRIBUTES_MAX][24];
    char text[4][POD_COLL_NAME_MAX]; /* values */
    int ntexts;
    PodChakra__BoolList dims;
    protobuf_c_boolean dim[DIMS_MAX];
    char node_name[POD_CHAKRA_NAME_MAX];
} draft;

static PodChakra__Attribute *attribute_add(draft *d, const char *name,
                                           PodChakra__Attribute__ValueCase kind)
{
    const size_t n = d->node.n_attr++;
    POD_ASSERT(n < ATTRIBUTES_MAX);
    pod_chakra__attribute__init(&d->attribute[n]);
    (void)snprintf(d->name[n], sizeof d->name[n], "%s", name);
    d->attribute[n].name = d->name[n];
    d->attribute[n].value_case = kind;
    d->list[n] = &d->attribute[n];
    return &d->attribute[n];
}

static void add_i64(draft *d, const char *name, int64_t value)
{
    attribute_add(d, name, POD_CHAKRA__ATTRIBUTE__VALUE_INT64_VAL)->int64_val = value;
}

static void add_u64(draft *d, const char *name, int64_t value)
{
    attribute_add(d, name, POD_CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL)->uint64_val = (uint64_t)value;
}

static void add_i32(draft *d, const char *name, int32_t value)
{
    attribute_add(d, name, POD_CHAKRA__ATTRIBUTE__VALUE_INT32_VAL)->int32_val = value;
}

static void add_bool(draft *d, const char *name, bool value)
{
    attribute_add(d, name, POD_CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL)->bool_val = value;
}

static PodChakra__Attribute *add_text(draft *d, const char *name, const char *value)
{
    PodChakra__Attribute *made = attribute_add(d, name, POD_CHAKRA__ATTRIBUTE__VALUE_STRING_VAL);
    char *text = d->text[d->ntexts++];
    (void)snprintf(text, sizeof d->text[0], "%s", value);
    made->string_val = text;
    return made;
}

static void add_dims(draft *d, const pod_slice *slice, unsigned dims)
{
    pod_chakra__bool_list__init(&d->dims);
    for (int i = 0; i < slice->naxes; i++) {
        d->dim[d->dims.n_values++] = (dims >> i & 1U) != 0;
    }
    if (slice->nslices > 1) {
        d->dim[d->dims.n_values++] = (dims >> POD_AXES & 1U) != 0;
    }
    d->dims.values = d->dim;
    attribute_add(d, "involved_dim", POD_CHAKRA__ATTRIBUTE__VALUE_BOOL_LIST)->bool_list = &d->dims;
}

/* ---- nodes ---- */

typedef struct writer {
    const pod_chakra_written *what;
    int32_t chip;
    int32_t stage;
    const pod_program *program;
    int64_t first_number; /* of the stage's permutes */
    int32_t *source_of;   /* source_of[chip] of sources_of, the permute that was looked at last */
    const pod_op *sources_of;
    const group_names *names;
    uint64_t *deps; /* room for all of an op */
    pod_text *bytes;
    pod_error *err;
} writer;

/* Node ids of an op: a permute's receive is the second. */
static uint64_t id_of(int32_t op, bool second)
{
    return 2 * (uint64_t)op + 1 + second;
}

static pod_status message_put(pod_text *bytes, const ProtobufCMessage *message, pod_error *err)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = malloc(size + 1);
    if (packed == NULL) {
        return no_memory(err);
    }
    size_t left = size;
    for (bool more = true; more; left >>= 7) {
        more = left >= 0x80;
        const char byte = (char)((left & 0x7f) | (more ? 0x80U : 0U));
        pod_text_append(bytes, &byte, 1);
    }
    (void)protobuf_c_message_pack(message, packed);
    pod_text_append(bytes, (const char *)packed, size);
    free(packed);
    return bytes->out_of_memory ? no_memory(err) : POD_OK;
}

static void draft_begin(draft *d, const pod_op *op, uint64_t id, PodChakra__NodeType type)
{
    memset(d, 0, sizeof *d);
    pod_chakra__node__init(&d->node);
    d->node.id = id;
    d->node.type = type;
    d->node.attr = d->list;
    if (op->layer >= 0) {
        (void)snprintf(d->node_name, sizeof d->node_name, "%.48s.%d", op->name, (int)op->layer);
    } else {
        (void)snprintf(d->node_name, sizeof d->node_name, "%s", op->name);
    }
    d->node.name = d->node_name;
}

static PodChakra__NodeType type_of(const pod_op *op)
{
    switch (pod_op_row(op->kind)->resource) {
    case POD_ON_CORE:
    case POD_ON_HOST:
        return POD_CHAKRA__NODE_TYPE__COMP;
    case POD_ON_LANE:
        return POD_CHAKRA__NODE_TYPE__MEM_LOAD;
    case POD_ON_LINKS:
        return POD_CHAKRA__NODE_TYPE__COMM_COLL;
    case POD_ON_SEND:
        return POD_CHAKRA__NODE_TYPE__COMM_SEND;
    case POD_ON_RECV:
        return POD_CHAKRA__NODE_TYPE__COMM_RECV;
    case POD_ON_NOTHING:
        break;
    }
    return POD_CHAKRA__NODE_TYPE__METADATA;
}

static pod_status comp_fill(const writer *w, const pod_op *op, int32_t number, draft *d)
{
    const bool host = pod_op_row(op->kind)->resource == POD_ON_HOST;
    const pod_time_ps took = w->what->took[w->chip][number];
    const double flops = pod_op_mxu_flops(op) + op->flops;
    pod_op_time time;
    POD_TRY(pod_op_time_find(w->what->chip, op, &time, w->err));
    add_bool(d, "is_cpu_op", host);
    add_i64(d, "num_ops", flops < (double)INT64_MAX ? (int64_t)(flops + 0.5) : INT64_MAX);
    add_u64(d, "tensor_size", host ? op->bytes : (int64_t)(time.hbm_bytes + 0.5));
    if (host && op->bytes > 0) {
        add_bool(d, "podsim_host", true);
    }
    d->node.duration_micros = (uint64_t)((took + POD_PS_PER_US / 2) / POD_PS_PER_US);
    add_i64(d, "duration_ps", took);
    return POD_OK;
}

static int64_t comm_type_of(pod_coll_op op)
{
    static const int types[POD_COLL_OP_COUNT] = {[POD_ALL_REDUCE] = POD_CHAKRA_ALL_REDUCE,
                                                 [POD_ALL_GATHER] = POD_CHAKRA_ALL_GATHER,
                                                 [POD_REDUCE_SCATTER] = POD_CHAKRA_REDUCE_SCATTER,
                                                 [POD_ALL_TO_ALL] = POD_CHAKRA_ALL_TO_ALL,
                                                 [POD_BROADCAST] = POD_CHAKRA_BROADCAST};
    return types[op];
}

static void add_group(const writer *w, const pod_op *op, draft *d)
{
    char name[16];
    if (w->names[op->group].first > 0) {
        (void)snprintf(name, sizeof name, "%d",
                       (int)group_name(w->what, w->names, op->group, w->chip));
        (void)add_text(d, "pg_name", name);
    } else {
        add_dims(d, w->what->slice,
                 whole_dims(w->what, &w->what->programs->groups[op->group].group));
    }
}

/* What moves: an all-reduce is padded to whole blocks when it runs. */
static int64_t moved_bytes(const pod_op *op, int32_t chips)
{
    const int64_t size = pod_dtype_size(op->dtype);
    const int64_t elements = op->bytes / size;
    return op->op == POD_ALL_REDUCE && !op->unpadded && elements >= chips
               ? (elements + chips - 1) / chips * chips * size
               : op->bytes;
}

static void collective_fill(const writer *w, const pod_op *op, int32_t number, draft *d)
{
    const pod_programs *programs = w->what->programs;
    const pod_group *group = &programs->groups[op->group].group;
    const bool gathers = op->op == POD_ALL_GATHER;
    const int64_t shard = (op->bytes + group->size - 1) / group->size;
    add_bool(d, "is_cpu_op", false);
    add_i64(d, "comm_type", comm_type_of(op->op));
    add_i64(d, "comm_size", gathers ? shard : moved_bytes(op, group->size));
    if (gathers && shard * group->size != op->bytes) {
        add_i64(d, "podsim_bytes", op->bytes);
    }
    add_group(w, op, d);
    const char *asked =
        op->algorithm >= 0 ? programs->algorithms[op->algorithm].name : w->what->algorithm;
    const char *ran = w->what->ran(w->what->context, w->stage, number);
    PodChakra__Attribute *algorithm = add_text(d, "podsim_algorithm", asked);
    char *doc = d->text[d->ntexts++];
    (void)snprintf(doc, sizeof d->text[0], "%s", ran);
    algorithm->doc_string = doc;
    (void)add_text(d, "podsim_dtype", pod_dtype_name(op->dtype));
}

static void message_fill(const writer *w, const pod_op *op, draft *d)
{
    const int32_t peer = pod_programs_stage_chip(w->what->programs, w->chip, op->to_stage);
    const bool sends = pod_op_sends(op);
    add_bool(d, "is_cpu_op", false);
    add_i64(d, "comm_size", op->bytes);
    add_i32(d, "comm_src", sends ? w->chip : peer);
    add_i32(d, "comm_dst", sends ? peer : w->chip);
    add_i32(d, "comm_tag", op->message);
}

/* ---- permutes ---- */

static bool is_permute(const pod_op *op)
{
    return pod_op_is_collective(op) && op->op == POD_PERMUTE;
}

/* Whom this chip receives from and sends to in a permute, -1 = nobody. */
static void ends_of(writer *w, const pod_op *op, int32_t *from, int32_t *to)
{
    const int32_t nchips = w->what->slice->nchips * w->what->slice->nslices;
    const pod_op *known = w->sources_of;
    if (known == NULL || known->group != op->group || known->sources != op->sources
        || known->shift != op->shift) {
        pod_programs_sources(w->what->programs, op, nchips, w->source_of);
        w->sources_of = op;
    }
    *from = w->source_of[w->chip];
    *to = -1;
    for (int32_t chip = 0; chip < nchips && *to < 0; chip++) {
        *to = w->source_of[chip] == w->chip ? chip : -1;
    }
}

/* Does this chip send, or receive, in it? Every chip of a shift does. */
static bool takes_part(writer *w, const pod_op *op, bool receives)
{
    int32_t from = 0;
    int32_t to = 0;
    if (op->sources >= 0) {
        ends_of(w, op, &from, &to);
    }
    return (receives ? from : to) >= 0;
}

/* ---- dependencies ---- */

/* The ids of what an op waits for; of a permute those of its nodes. @return how many */
static size_t deps_fill(writer *w, const pod_op *op)
{
    size_t count = 0;
    for (int32_t i = 0; i < op->ndeps; i++) {
        const int32_t dep = w->program->deps[op->first_dep + i];
        const pod_op *what = &w->program->ops[dep];
        const bool receives = is_permute(what) && takes_part(w, what, true);
        if (!receives || takes_part(w, what, false)) {
            w->deps[count++] = id_of(dep, false);
        }
        if (receives) {
            w->deps[count++] = id_of(dep, true);
        }
    }
    return count;
}

static pod_status node_put(writer *w, draft *d, const pod_op *op, int32_t core_before)
{
    uint64_t control = id_of(core_before, false);
    bool known = core_before == POD_OP_NONE;
    for (int32_t i = 0; i < op->ndeps; i++) {
        known = known || w->program->deps[op->first_dep + i] == core_before;
    }
    d->node.data_deps = w->deps;
    d->node.n_data_deps = deps_fill(w, op);
    if (!known) {
        d->node.ctrl_deps = &control;
        d->node.n_ctrl_deps = 1;
    }
    return message_put(w->bytes, &d->node.base, w->err);
}

/* ---- ops ---- */

static pod_status permute_put(writer *w, const pod_op *op, int32_t number, draft *d)
{
    int32_t from = -1;
    int32_t to = -1;
    ends_of(w, op, &from, &to);
    for (int receives = 0; receives < 2; receives++) {
        const int32_t peer = receives ? from : to;
        if (peer < 0) {
            continue;
        }
        draft_begin(d, op, id_of(number, receives != 0),
                    receives ? POD_CHAKRA__NODE_TYPE__COMM_RECV : POD_CHAKRA__NODE_TYPE__COMM_SEND);
        add_bool(d, "is_cpu_op", false);
        add_i64(d, "comm_size", op->bytes);
        add_i32(d, "comm_src", receives ? peer : w->chip);
        add_i32(d, "comm_dst", receives ? w->chip : peer);
        add_i32(d, "comm_tag", (int32_t)(w->first_number + number));
        add_i32(d, "podsim_permute", (int32_t)(w->first_number + number));
        (void)add_text(d, "podsim_dtype", pod_dtype_name(op->dtype));
        if (says_group(w->what->programs, op)) {
            add_group(w, op, d);
        }
        POD_TRY(node_put(w, d, op, POD_OP_NONE));
    }
    if (from < 0 && to < 0) {
        draft_begin(d, op, id_of(number, false), POD_CHAKRA__NODE_TYPE__METADATA);
        return node_put(w, d, op, POD_OP_NONE);
    }
    return POD_OK;
}

static pod_status op_put(writer *w, int32_t number, int32_t core_before, draft *d)
{
    const pod_op *op = &w->program->ops[number];
    if (is_permute(op)) {
        return permute_put(w, op, number, d);
    }
    draft_begin(d, op, id_of(number, false), type_of(op));
    switch ((int)d->node.type) {
    case POD_CHAKRA__NODE_TYPE__COMP:
        POD_TRY(comp_fill(w, op, number, d));
        break;
    case POD_CHAKRA__NODE_TYPE__COMM_COLL:
        collective_fill(w, op, number, d);
        break;
    case POD_CHAKRA__NODE_TYPE__COMM_SEND:
    case POD_CHAKRA__NODE_TYPE__COMM_RECV:
        message_fill(w, op, d);
        break;
    case POD_CHAKRA__NODE_TYPE__MEM_LOAD:
        add_u64(d, "tensor_size", op->hbm_bytes);
        break;
    default:
        break;
    }
    return node_put(w, d, op, pod_op_is_core(op) ? core_before : POD_OP_NONE);
}

/* What counts for all nodes. */
static pod_status metadata_put(const pod_chakra_written *what, pod_text *bytes, pod_error *err)
{
    PodChakra__GlobalMetadata metadata = POD_CHAKRA__GLOBAL_METADATA__INIT;
    draft d;
    char text[sizeof version];
    bool lists = false;
    memset(&d, 0, sizeof d);
    for (int32_t g = 0; g < what->programs->ngroups; g++) {
        const pod_group *group = &what->programs->groups[g].group;
        const pod_group *inside = group->slices > 1 ? group->inside : group;
        lists = lists || (inside->ndims == 0 && inside->size > 1);
    }
    if (what->jitter) {
        add_bool(&d, "podsim_jitter", true);
    }
    if (lists) {
        add_bool(&d, "podsim_lists", true);
    }
    memcpy(text, version, sizeof version);
    metadata.version = text;
    metadata.n_attr = d.node.n_attr;
    metadata.attr = d.list;
    return message_put(bytes, &metadata.base, err);
}

/* Numbers of a stage's permutes begin after those of messages and of the stages before. */
static int64_t first_number(const pod_programs *programs, int32_t stage)
{
    int64_t number = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        for (int32_t i = 0; i < programs->stages[s].nops; i++) {
            const pod_op *op = &programs->stages[s].ops[i];
            number = pod_op_sends(op) && op->message >= number ? (int64_t)op->message + 1 : number;
        }
    }
    for (int32_t s = 0; s < stage; s++) {
        number += programs->stages[s].nops;
    }
    return number;
}

pod_status pod_chakra_write(const pod_chakra_written *what, int32_t chip, pod_text *bytes,
                            pod_error *err)
{
    const pod_programs *programs = what->programs;
    writer w = {.what = what, .chip = chip, .bytes = bytes, .err = err};
    group_names *names = NULL;
    w.stage = programs->stage_of != NULL ? programs->stage_of[chip] : 0;
    w.program = &programs->stages[w.stage];
    w.first_number = first_number(programs, w.stage);
    draft *d = malloc(sizeof *d);
    w.deps = malloc((2 * (size_t)w.program->ndeps + 1) * sizeof *w.deps);
    w.source_of =
        malloc((size_t)what->slice->nchips * (size_t)what->slice->nslices * sizeof *w.source_of);
    pod_status st = names_make(what, &names, err);
    w.names = names;
    if (st == POD_OK && (d == NULL || w.deps == NULL || w.source_of == NULL)) {
        st = no_memory(err);
    }
    POD_THEN(st, metadata_put(what, bytes, err));
    int32_t core = POD_OP_NONE;
    for (int32_t i = 0; i < w.program->nops && st == POD_OK; i++) {
        st = op_put(&w, i, core, d);
        core = pod_op_is_core(&w.program->ops[i]) ? i : core;
    }
    free(names);
    free(w.source_of);
    free(w.deps);
    free(d);
    return st;
}
