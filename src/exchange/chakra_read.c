/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/chakra.h"

#include "base/grow.h"

#include <chakra.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_MAX = 1 << 28 };

pod_status pod_chakra_fail(pod_error *err, pod_status status, const pod_chakra_graph *graph,
                           const pod_chakra_node *node, const char *format, ...)
{
    char what[POD_ERROR_TEXT_MAX];
    char name[POD_CHAKRA_NAME_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)snprintf(name, sizeof name, "%s", pod_chakra_text(graph, node->name));
    for (char *c = name; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    return pod_fail(err, status, "%s: node %" PRIu64 "%s%s%s: %s", graph->file, node->id,
                    name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "", what);
}

/* ---- attributes ---- */

typedef struct attribute {
    const PodChakra__Attribute *wire;
    const pod_chakra_graph *graph;
    const pod_chakra_node *node;
    pod_error *err;
} attribute;

static pod_status no_integer(const attribute *a)
{
    return pod_chakra_fail(a->err, POD_E_INVALID, a->graph, a->node,
                           "%s is no whole number; write it as an integer", a->wire->name);
}

/* Any kind of integer, from `least` on. */
static pod_status integer_of(const attribute *a, int64_t least, int64_t *value)
{
    const PodChakra__Attribute *w = a->wire;
    uint64_t large = 0;
    switch ((int)w->value_case) {
    case POD_CHAKRA__ATTRIBUTE__VALUE_INT32_VAL:
        *value = w->int32_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_INT64_VAL:
        *value = w->int64_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL:
        *value = w->uint32_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL:
        large = w->uint64_val;
        *value = (int64_t)large;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_SINT32_VAL:
        *value = w->sint32_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_SINT64_VAL:
        *value = w->sint64_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_FIXED32_VAL:
        *value = w->fixed32_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_FIXED64_VAL:
        large = w->fixed64_val;
        *value = (int64_t)large;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VAL:
        *value = w->sfixed32_val;
        break;
    case POD_CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VAL:
        *value = w->sfixed64_val;
        break;
    default:
        return no_integer(a);
    }
    if (large > INT64_MAX) {
        return pod_chakra_fail(a->err, POD_E_RANGE, a->graph, a->node,
                               "%s is %" PRIu64 ", more than podsim counts", w->name, large);
    }
    if (*value < least) {
        return pod_chakra_fail(a->err, POD_E_INVALID, a->graph, a->node,
                               "%s is %" PRId64 "; it is at least %" PRId64, w->name, *value,
                               least);
    }
    return POD_OK;
}

static pod_status int32_of(const attribute *a, int32_t least, int64_t *value)
{
    POD_TRY(integer_of(a, least, value));
    return *value <= INT32_MAX ? POD_OK
                               : pod_chakra_fail(a->err, POD_E_RANGE, a->graph, a->node,
                                                 "%s is %" PRId64 ", more than 32 bits hold",
                                                 a->wire->name, *value);
}

static pod_status truth_of(const attribute *a, bool *value)
{
    int64_t number = 0;
    if (a->wire->value_case == POD_CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL) {
        *value = a->wire->bool_val != 0;
        return POD_OK;
    }
    POD_TRY(integer_of(a, 0, &number));
    *value = number != 0;
    return POD_OK;
}

/* Keep a text; its place. */
static pod_status text_keep(pod_chakra_graph *graph, const char *text, int64_t *place,
                            pod_error *err)
{
    *place = (int64_t)graph->text.size;
    pod_text_append(&graph->text, text, strlen(text) + 1);
    return graph->text.out_of_memory
               ? pod_fail(err, POD_E_NOMEM, "%s: no memory for its names", graph->file)
               : POD_OK;
}

static const char *string_of(const attribute *a)
{
    return a->wire->value_case == POD_CHAKRA__ATTRIBUTE__VALUE_STRING_VAL ? a->wire->string_val
                                                                          : NULL;
}

/* The name of a group: a text, or a number. */
static pod_status group_of(const attribute *a, pod_chakra_graph *graph, int64_t *place)
{
    char number[24];
    int64_t value = 0;
    const char *text = string_of(a);
    if (text == NULL) {
        POD_TRY(integer_of(a, INT64_MIN, &value));
        (void)snprintf(number, sizeof number, "%" PRId64, value);
        text = number;
    }
    return text_keep(graph, text, place, a->err);
}

static pod_status text_of(const attribute *a, pod_chakra_graph *graph, int64_t *place)
{
    const char *text = string_of(a);
    return text != NULL ? text_keep(graph, text, place, a->err)
                        : pod_chakra_fail(a->err, POD_E_INVALID, a->graph, a->node,
                                          "%s is no string", a->wire->name);
}

static pod_status dtype_of(const attribute *a, pod_chakra_node *node)
{
    pod_dtype dtype = POD_DTYPE_BF16;
    pod_error why = {0};
    const char *text = string_of(a);
    if (text == NULL || pod_dtype_parse(text, &dtype, &why) != POD_OK) {
        return pod_chakra_fail(a->err, POD_E_INVALID, a->graph, a->node, "%s: %s", a->wire->name,
                               text == NULL ? "no string" : why.text);
    }
    node->dtype = (int32_t)dtype;
    return POD_OK;
}

static pod_status dims_of(const attribute *a, pod_chakra_node *node)
{
    if (a->wire->value_case != POD_CHAKRA__ATTRIBUTE__VALUE_BOOL_LIST) {
        return pod_chakra_fail(a->err, POD_E_INVALID, a->graph, a->node,
                               "involved_dim is no list of bools; give one for each axis");
    }
    const PodChakra__BoolList *list = a->wire->bool_list;
    const size_t last = POD_CHAKRA_DIMS_MAX - 1;
    node->ndims = (int32_t)(list->n_values <= last ? list->n_values : last + 1);
    node->dims = 0;
    for (size_t i = 0; i < list->n_values; i++) {
        node->dims |= list->values[i] != 0 ? 1U << (i < last ? i : last) : 0U;
    }
    return POD_OK;
}

typedef enum meaning {
    MEANS_SIZE,
    MEANS_INT32,
    MEANS_TRUTH,
    MEANS_TEXT,
    MEANS_GROUP,
    MEANS_DTYPE,
    MEANS_DIMS,
    MEANS_PRIORITY,
    MEANS_DURATION
} meaning;

#define AT(field) offsetof(pod_chakra_node, field)
static const struct {
    const char *name;
    meaning means;
    size_t field;
} known[] = {
    {"is_cpu_op",        MEANS_TRUTH,    AT(cpu)        },
    {"num_ops",          MEANS_SIZE,     AT(num_ops)    },
    {"tensor_size",      MEANS_SIZE,     AT(tensor_size)},
    {"comm_type",        MEANS_SIZE,     AT(comm_type)  },
    {"comm_size",        MEANS_SIZE,     AT(comm_size)  },
    {"involved_dim",     MEANS_DIMS,     0              },
    {"pg_name",          MEANS_GROUP,    AT(group)      },
    {"comm_src",         MEANS_INT32,    AT(src)        },
    {"comm_dst",         MEANS_INT32,    AT(dst)        },
    {"comm_tag",         MEANS_INT32,    AT(tag)        },
    {"comm_priority",    MEANS_PRIORITY, 0              },
    {"duration_ps",      MEANS_DURATION, 0              },
    {"podsim_algorithm", MEANS_TEXT,     AT(algorithm)  },
    {"podsim_dtype",     MEANS_DTYPE,    0              },
    {"podsim_bytes",     MEANS_SIZE,     AT(full_bytes) },
    {"podsim_permute",   MEANS_INT32,    AT(permute)    },
    {"podsim_host",      MEANS_TRUTH,    AT(over_pcie)  },
};
#undef AT

static pod_status attribute_take(const attribute *a, pod_chakra_graph *graph, pod_chakra_node *node)
{
    size_t at = 0;
    const size_t count = sizeof known / sizeof *known;
    while (at < count && strcmp(known[at].name, a->wire->name) != 0) {
        at++;
    }
    if (at == count) {
        return POD_OK; /* others' own */
    }
    void *field = (char *)node + known[at].field;
    int64_t value = 0;
    switch (known[at].means) {
    case MEANS_SIZE:
        return integer_of(a, 0, field);
    case MEANS_INT32:
        return int32_of(a, 0, field);
    case MEANS_TRUTH:
        return truth_of(a, field);
    case MEANS_TEXT:
        return text_of(a, graph, field);
    case MEANS_GROUP:
        return group_of(a, graph, field);
    case MEANS_DTYPE:
        return dtype_of(a, node);
    case MEANS_DIMS:
        return dims_of(a, node);
    case MEANS_PRIORITY:
        POD_TRY(int32_of(a, INT32_MIN, &value));
        node->priority = (int32_t)value;
        return POD_OK;
    case MEANS_DURATION:
        node->exact = true;
        return integer_of(a, 0, &node->duration_ps);
    }
    return POD_OK;
}

/* ---- nodes ---- */

static pod_status deps_add(pod_chakra_graph *graph, const uint64_t *ids, size_t count,
                           pod_error *err)
{
    if (count == 0) {
        return POD_OK;
    }
    if (!POD_GROW(graph->deps, graph->deps_room, graph->ndeps + (int64_t)count)) {
        return pod_fail(err, POD_E_NOMEM, "%s: no memory for its dependencies", graph->file);
    }
    memcpy(graph->deps + graph->ndeps, ids, count * sizeof *ids);
    graph->ndeps += (int64_t)count;
    return POD_OK;
}

static pod_status node_take(const PodChakra__Node *wire, pod_chakra_groups *groups,
                            pod_chakra_graph *graph, pod_error *err)
{
    static const uint64_t most_us = (uint64_t)1000000 * 1000000;
    if (!POD_GROW(graph->nodes, graph->nodes_room, graph->nnodes + 1)) {
        return pod_fail(err, POD_E_NOMEM, "%s: no memory for its nodes", graph->file);
    }
    pod_chakra_node *node = &graph->nodes[graph->nnodes++];
    const int64_t none = POD_CHAKRA_NONE;
    *node = (pod_chakra_node){.id = wire->id,
                              .first_dep = graph->ndeps,
                              .num_ops = none,
                              .tensor_size = none,
                              .comm_type = none,
                              .comm_size = none,
                              .full_bytes = none,
                              .permute = none,
                              .src = none,
                              .dst = none,
                              .tag = none,
                              .group = none,
                              .algorithm = none,
                              .ndims = POD_CHAKRA_NONE,
                              .dtype = POD_CHAKRA_NONE};
    POD_TRY(text_keep(graph, wire->name, &node->name, err));
    if ((int)wire->type < 0 || (int)wire->type >= POD_CHAKRA_TYPES) {
        return pod_chakra_fail(err, POD_E_INVALID, graph, node,
                               "type %d is none of Chakra's, 0 to %d", (int)wire->type,
                               POD_CHAKRA_TYPES - 1);
    }
    node->type = (pod_chakra_type)wire->type;
    POD_TRY(deps_add(graph, wire->ctrl_deps, wire->n_ctrl_deps, err));
    POD_TRY(deps_add(graph, wire->data_deps, wire->n_data_deps, err));
    node->ndeps = (int32_t)(graph->ndeps - node->first_dep);
    for (size_t i = 0; i < wire->n_attr; i++) {
        const attribute a = {.wire = wire->attr[i], .graph = graph, .node = node, .err = err};
        POD_TRY(attribute_take(&a, graph, node));
    }
    if (node->cpu && node->type >= POD_CHAKRA_SEND && node->comm_type < 0 && node->comm_size < 0) {
        node->type =
            POD_CHAKRA_COMP; /* PyTorch's call of a kernel, which has a node of its own: host work */
    }
    if (!node->exact && wire->duration_micros > most_us) {
        return pod_chakra_fail(err, POD_E_RANGE, graph, node,
                               "lasts %" PRIu64 " us; at most %" PRIu64, wire->duration_micros,
                               most_us);
    }
    if (!node->exact) {
        node->duration_ps = (int64_t)wire->duration_micros * POD_PS_PER_US;
    } else if (node->duration_ps > (int64_t)most_us * POD_PS_PER_US) {
        return pod_chakra_fail(err, POD_E_RANGE, graph, node,
                               "lasts %" PRId64 " ps; at most %" PRId64, node->duration_ps,
                               (int64_t)most_us * POD_PS_PER_US);
    }
    return node->type == POD_CHAKRA_METADATA && wire->inputs != NULL
               ? pod_chakra_groups_of_node(graph->file, node->id, wire->inputs->values, groups, err)
               : POD_OK;
}

static pod_status metadata_take(const PodChakra__GlobalMetadata *wire, pod_chakra_graph *graph,
                                pod_error *err)
{
    const pod_chakra_node nobody = {.name = POD_CHAKRA_NONE};
    for (size_t i = 0; i < wire->n_attr; i++) {
        const attribute a = {.wire = wire->attr[i], .graph = graph, .node = &nobody, .err = err};
        if (strcmp(wire->attr[i]->name, "podsim_jitter") == 0) {
            POD_TRY(truth_of(&a, &graph->jitter));
        } else if (strcmp(wire->attr[i]->name, "podsim_lists") == 0) {
            POD_TRY(truth_of(&a, &graph->lists));
        }
    }
    return POD_OK;
}

/* ---- the stream ---- */

typedef struct stream {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    int64_t messages;
    const pod_chakra_graph *graph;
    pod_error *err;
} stream;

static pod_status stream_fail(const stream *s, const char *what)
{
    return pod_fail(s->err, POD_E_INVALID, "%s: message %" PRId64 ", at byte %zu, %s",
                    s->graph->file, s->messages, s->at, what);
}

/* The next message of the stream. */
static pod_status message_next(stream *s, const uint8_t **message, size_t *size)
{
    uint64_t length = 0;
    size_t at = s->at;
    int shift = 0;
    for (bool more = true; more; shift += 7) {
        if (at == s->size || shift > 63) {
            return stream_fail(s, "has no length; the file is cut, or no Chakra trace");
        }
        length |= (uint64_t)(s->bytes[at] & 0x7f) << shift;
        more = s->bytes[at++] >= 0x80;
    }
    if (length > s->size - at || length > NODE_MAX) {
        return stream_fail(s, "is longer than the file; it is cut, or no Chakra trace");
    }
    *message = s->bytes + at;
    *size = (size_t)length;
    s->at = at + (size_t)length;
    return POD_OK;
}

static pod_status first_read(stream *s, pod_chakra_graph *graph)
{
    const uint8_t *message = NULL;
    size_t size = 0;
    POD_TRY(message_next(s, &message, &size));
    PodChakra__GlobalMetadata *wire = pod_chakra__global_metadata__unpack(NULL, size, message);
    if (wire == NULL) {
        return stream_fail(s, "is no GlobalMetadata, with which a Chakra trace begins");
    }
    const pod_status st = metadata_take(wire, graph, s->err);
    pod_chakra__global_metadata__free_unpacked(wire, NULL);
    return st;
}

static pod_status node_read(stream *s, pod_chakra_groups *groups, pod_chakra_graph *graph)
{
    const uint8_t *message = NULL;
    size_t size = 0;
    POD_TRY(message_next(s, &message, &size));
    PodChakra__Node *wire = pod_chakra__node__unpack(NULL, size, message);
    if (wire == NULL) {
        return stream_fail(s, "is no Node of a Chakra trace");
    }
    const pod_status st = node_take(wire, groups, graph, s->err);
    pod_chakra__node__free_unpacked(wire, NULL);
    return st;
}

pod_status pod_chakra_read(const char *file, const uint8_t *bytes, size_t size,
                           pod_chakra_groups *groups, pod_chakra_graph *graph, pod_error *err)
{
    *graph = (pod_chakra_graph){.file = strdup(file)};
    if (graph->file == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a trace");
    }
    stream s = {.bytes = bytes, .size = size, .messages = 1, .graph = graph, .err = err};
    if (size == 0) {
        return pod_fail(err, POD_E_INVALID, "%s is empty; a Chakra trace begins with its metadata",
                        file);
    }
    POD_TRY(first_read(&s, graph));
    while (s.at < size) {
        s.messages++;
        POD_TRY(node_read(&s, groups, graph));
    }
    return POD_OK;
}

void pod_chakra_graph_fini(pod_chakra_graph *graph)
{
    free(graph->file);
    free(graph->nodes);
    free(graph->deps);
    pod_text_free(&graph->text);
    *graph = (pod_chakra_graph){0};
}
