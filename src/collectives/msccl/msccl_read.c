/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: XML to arrays, everything that can be said of one element by itself. */
#include "base/grow.h"
#include "base/units.h"
#include "collectives/msccl/msccl_program.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

typedef struct reader {
    pod_msccl *msccl;
    pod_error *err;
    pod_status status;
    XML_Parser parser;
    int depth;        /* open elements: algo 1, gpu 2, tb 3, step 4 */
    int32_t declared; /* chips that the file announces; msccl->ngpus counts those read */
    int64_t tb_room;
    int64_t step_room;
} reader;

static const struct {
    const char *text;
    bool sends;
    bool receives;
} types[] = {
#define TYPE(name, text, sends, receives) {text, sends, receives},
    POD_MSCCL_TYPE_LIST(TYPE)
#undef TYPE
};
_Static_assert(sizeof types / sizeof *types == MSCCL_TYPES, "a row per type");

static const struct {
    const char *text;
    pod_coll_op op;
} colls[] = {
    {"allreduce",      POD_ALL_REDUCE    },
    {"allgather",      POD_ALL_GATHER    },
    {"reducescatter",  POD_REDUCE_SCATTER},
    {"reduce_scatter", POD_REDUCE_SCATTER},
    {"alltoall",       POD_ALL_TO_ALL    },
    {"broadcast",      POD_BROADCAST     },
};

static msccl_at where(const reader *r)
{
    return (msccl_at){(int)XML_GetCurrentLineNumber(r->parser),
                      (int)XML_GetCurrentColumnNumber(r->parser) + 1};
}

__attribute__((format(printf, 2, 3))) static void complain(reader *r, const char *format, ...)
{
    if (r->status != POD_OK) {
        return;
    }
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->status =
        pod_fail_at(r->err, POD_E_TABLE, r->msccl->file, (int)XML_GetCurrentLineNumber(r->parser),
                    (int)XML_GetCurrentColumnNumber(r->parser) + 1, "%s", text);
    XML_StopParser(r->parser, XML_FALSE);
}

/* ---- attributes ---- */

static const char *text_of(const char **attributes, const char *name)
{
    for (int i = 0; attributes[i]; i += 2) {
        if (strcmp(attributes[i], name) == 0) {
            return attributes[i + 1];
        }
    }
    return NULL;
}

/* A whole number in [least, most]; `missing` when there is no such attribute, unless that is out of range. */
static int32_t number_of(reader *r, const char **attributes, const char *name, int32_t least,
                         int32_t most, int32_t missing)
{
    const char *text = text_of(attributes, name);
    if (!text) {
        if (missing < least || missing > most) {
            complain(r, "attribute %s is missing; it counts from %d to %d", name, (int)least,
                     (int)most);
        }
        return missing;
    }
    int64_t value = 0;
    if (pod_parse_i64(text, name, least, most, &value, NULL) != POD_OK) {
        complain(r, "%s=\"%.40s\" is wrong; it counts from %d to %d", name, text, (int)least,
                 (int)most);
    }
    return (int32_t)value;
}

/* The algo's name, as far as it can stand in a table. */
static void read_name(pod_msccl *m, const char *text)
{
    const size_t prefix = sizeof "file:" - 1;
    memcpy(m->name, "file:", prefix);
    for (size_t i = 0; text[i] && prefix + i + 1 < sizeof m->name; ++i) {
        const bool plain = isalnum((unsigned char)text[i]) || strchr("_.-+", text[i]);
        m->name[prefix + i] = plain ? text[i] : '_';
    }
}

static void read_algo(reader *r, const char **attributes)
{
    pod_msccl *m = r->msccl;
    const char *name = text_of(attributes, "name");
    read_name(m, name ? name : "");
    const char *coll = text_of(attributes, "coll");
    m->op = POD_COLL_OP_COUNT;
    for (size_t i = 0; i < sizeof colls / sizeof *colls && coll; ++i) {
        if (strcmp(coll, colls[i].text) == 0) {
            m->op = colls[i].op;
        }
    }
    if (m->op == POD_COLL_OP_COUNT) {
        complain(
            r,
            "coll=\"%.40s\" is unknown; it is allreduce, allgather, reducescatter, alltoall or "
            "broadcast",
            coll ? coll : "");
        return;
    }
    r->declared = number_of(r, attributes, "ngpus", 1, POD_MSCCL_CHIPS_MAX, 0);
    m->chunks = number_of(r, attributes, "nchunksperloop", 1, POD_MSCCL_CHUNKS_MAX, 0);
    const char *in_place = text_of(attributes, "inplace");
    const char *apart = text_of(attributes, "outofplace");
    m->in_place = in_place ? strcmp(in_place, "0") != 0 : !apart || strcmp(apart, "1") != 0;
    if (r->status == POD_OK && msccl_has_blocks(m->op) && m->chunks % r->declared != 0) {
        complain(r, "%s over %d chips in %d chunks; use as many for each chip", coll,
                 (int)r->declared, (int)m->chunks);
        return;
    }
    m->gpus = r->status == POD_OK ? calloc((size_t)r->declared, sizeof *m->gpus) : NULL;
    if (r->status == POD_OK && !m->gpus) {
        complain(r, "no memory for %d chips", (int)r->declared);
    }
}

/* Room for one more. @return the new last element, zeroed, or NULL */
static void *append(reader *r, void *array, int32_t *count, int64_t *room, size_t size)
{
    if (*count == *room
        && (*count >= POD_MSCCL_STEPS_MAX || !pod_grow(array, room, (int64_t)*count + 1, size))) {
        complain(r, "too much for one file; at most %d steps", POD_MSCCL_STEPS_MAX);
        return NULL;
    }
    char *first = NULL;
    memcpy(&first, array, sizeof first);
    char *last = first + (size_t)*count * size;
    memset(last, 0, size);
    ++*count;
    return last;
}

static void read_gpu(reader *r, const char **attributes)
{
    pod_msccl *m = r->msccl;
    if (m->ngpus == r->declared) {
        complain(r, "more gpus than ngpus=\"%d\" announces", (int)r->declared);
        return;
    }
    number_of(r, attributes, "id", m->ngpus, m->ngpus, -1);
    m->gpus[m->ngpus++] = (msccl_gpu){
        .at = where(r),
        .scratch = number_of(r, attributes, "s_chunks", 0, POD_MSCCL_CHUNKS_MAX, 0),
        .first_tb = m->ntbs,
    };
}

static void read_tb(reader *r, const char **attributes)
{
    pod_msccl *m = r->msccl;
    msccl_gpu *gpu = &m->gpus[m->ngpus - 1];
    msccl_tb *tb = append(r, &m->tbs, &m->ntbs, &r->tb_room, sizeof *m->tbs);
    if (!tb) {
        return;
    }
    number_of(r, attributes, "id", gpu->tbs, gpu->tbs, -1);
    *tb = (msccl_tb){
        .at = where(r),
        .gpu = m->ngpus - 1,
        .id = gpu->tbs++,
        .send = number_of(r, attributes, "send", -1, r->declared - 1, -1),
        .recv = number_of(r, attributes, "recv", -1, r->declared - 1, -1),
        .chan = number_of(r, attributes, "chan", 0, POD_MSCCL_STEPS_MAX, 0),
        .first_step = m->nsteps,
    };
    if (tb->send == tb->gpu || tb->recv == tb->gpu) {
        complain(r, "gpu %d exchanges messages with itself; use a step of type cpy", (int)tb->gpu);
    }
}

/* Chunks of a buffer of a chip. */
static int32_t chunks_of(const pod_msccl *m, const msccl_gpu *gpu, int32_t ngpus, char buffer)
{
    if (buffer == 's') {
        return gpu->scratch;
    }
    const bool own = (buffer == 'i' && m->op == POD_ALL_GATHER)
                     || (buffer == 'o' && m->op == POD_REDUCE_SCATTER);
    /* in place, the chip's own block is part of the other buffer and may be named there */
    return own ? msccl_own_chunks(m, ngpus) : m->chunks;
}

static msccl_place place_of(reader *r, const char **attributes, const char *buffer_name,
                            const char *offset_name, int32_t chunks)
{
    const msccl_gpu *gpu = &r->msccl->gpus[r->msccl->ngpus - 1];
    const char *buffer = text_of(attributes, buffer_name);
    if (!buffer || !*buffer || buffer[1] != '\0' || !strchr("ios", buffer[0])) {
        complain(r, "%s=\"%.40s\" is wrong; it is i, o or s", buffer_name, buffer ? buffer : "");
        return (msccl_place){0};
    }
    const int32_t there = chunks_of(r->msccl, gpu, r->declared, buffer[0]);
    if (chunks > there) {
        complain(r, "%d chunks of a buffer %s that has %d", (int)chunks, buffer, (int)there);
        return (msccl_place){0};
    }
    return (msccl_place){buffer[0], number_of(r, attributes, offset_name, 0, there - chunks, -1)};
}

static void read_step(reader *r, const char **attributes)
{
    pod_msccl *m = r->msccl;
    msccl_tb *tb = &m->tbs[m->ntbs - 1];
    msccl_step *step = append(r, &m->steps, &m->nsteps, &r->step_room, sizeof *step);
    if (!step) {
        return;
    }
    number_of(r, attributes, "s", tb->steps, tb->steps, -1);
    ++tb->steps;
    step->at = where(r);
    const char *type = text_of(attributes, "type");
    step->type = MSCCL_TYPES;
    for (int t = 0; t < MSCCL_TYPES && type; ++t) {
        if (strcmp(type, types[t].text) == 0) {
            step->type = (msccl_type)t;
        }
    }
    if (step->type == MSCCL_TYPES) {
        complain(r, "type=\"%.40s\" is unknown; it is s, r, rcs, rrc, rrs, rrcs, cpy, re or nop",
                 type ? type : "");
        return;
    }
    if ((types[step->type].sends && tb->send < 0) || (types[step->type].receives && tb->recv < 0)) {
        complain(r, "a step of type %s in a tb that %s nobody", types[step->type].text,
                 types[step->type].receives && tb->recv < 0 ? "receives from" : "sends to");
        return;
    }
    step->dep_tb = number_of(r, attributes, "depid", -1, POD_MSCCL_STEPS_MAX, -1);
    step->dep_step = number_of(r, attributes, "deps", -1, POD_MSCCL_STEPS_MAX, -1);
    if (step->type == MSCCL_NOP) {
        return;
    }
    step->chunks = number_of(r, attributes, "cnt", 1, POD_MSCCL_CHUNKS_MAX, 0);
    const bool reads = step->type != MSCCL_R && step->type != MSCCL_RCS;
    const bool writes = step->type != MSCCL_S && step->type != MSCCL_RRS;
    if (reads && r->status == POD_OK) {
        step->src = place_of(r, attributes, "srcbuf", "srcoff", step->chunks);
    }
    if (writes && r->status == POD_OK) {
        step->dst = place_of(r, attributes, "dstbuf", "dstoff", step->chunks);
    }
}

/* ---- elements ---- */

static void on_start(void *context, const char *element, const char **attributes)
{
    static const char *const names[] = {"algo", "gpu", "tb", "step"};
    static void (*const read[])(reader *, const char **) = {read_algo, read_gpu, read_tb,
                                                            read_step};
    reader *r = context;
    if (r->status != POD_OK) {
        return;
    }
    if (r->depth >= 4 || strcmp(element, names[r->depth]) != 0) {
        complain(r, "element <%.40s> is not expected here; %s", element,
                 r->depth >= 4 ? "a step has nothing inside"
                               : "an algo has gpus, they have tbs, and "
                                 "those steps");
        return;
    }
    read[r->depth++](r, attributes);
}

static void on_end(void *context, const char *element)
{
    (void)element;
    reader *r = context;
    if (r->status == POD_OK) {
        --r->depth;
        if (r->depth == 0 && r->msccl->ngpus < r->declared) {
            complain(r, "%d gpus, and ngpus=\"%d\"", (int)r->msccl->ngpus, (int)r->declared);
        }
    }
}

/* Entities could blow a small file up, and such files have no use for them. */
static void on_doctype(void *context, const char *name, const char *system, const char *public,
                       int internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    complain(context, "a document type is not expected here; start with <algo …>");
}

/* Dependencies may name later tbs, so they are looked at when all is read. */
static pod_status check_dependencies(const pod_msccl *m, pod_error *err)
{
    for (int32_t t = 0; t < m->ntbs; ++t) {
        const msccl_tb *tb = &m->tbs[t];
        const msccl_gpu *gpu = &m->gpus[tb->gpu];
        for (int32_t i = 0; i < tb->steps; ++i) {
            const msccl_step *step = &m->steps[tb->first_step + i];
            if (step->dep_tb < 0 || step->dep_step < 0) {
                continue;
            }
            if (step->dep_tb >= gpu->tbs
                || step->dep_step >= m->tbs[gpu->first_tb + step->dep_tb].steps) {
                return pod_fail_at(
                    err, POD_E_TABLE, m->file, step->at.line, step->at.column,
                    "step %d of tb %d on gpu %d depends on step %d of tb %d, which that "
                    "gpu doesn't have",
                    (int)i, (int)tb->id, (int)tb->gpu, (int)step->dep_step, (int)step->dep_tb);
            }
        }
    }
    return POD_OK;
}

static pod_status parse(reader *r, const char *text, size_t size)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    if (size > INT32_MAX) {
        return pod_fail(r->err, POD_E_TABLE, "%s is too large; at most 2 GiB", r->msccl->file);
    }
    const bool whole = XML_Parse(r->parser, text, (int)size, XML_TRUE) == XML_STATUS_OK;
    if (r->status != POD_OK || whole) {
        return r->status;
    }
    return pod_fail_at(
        r->err, POD_E_TABLE, r->msccl->file, (int)XML_GetCurrentLineNumber(r->parser),
        (int)XML_GetCurrentColumnNumber(r->parser) + 1, "%s; well-formed XML is expected",
        XML_ErrorString(XML_GetErrorCode(r->parser)));
}

pod_status pod_msccl_parse(const char *file, const char *text, size_t size, pod_msccl **msccl,
                           pod_error *err)
{
    pod_msccl *m = calloc(1, sizeof *m);
    reader r = {.msccl = m, .err = err, .parser = XML_ParserCreate(NULL)};
    pod_status st = POD_OK;
    const size_t length = strlen(file) + 1;
    if (m) {
        m->file = malloc(length);
    }
    if (!m || !r.parser || !m->file) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to read %s", file);
    } else {
        memcpy(m->file, file, length);
        st = parse(&r, text, size);
        POD_THEN(st, check_dependencies(m, err));
    }
    if (r.parser) {
        XML_ParserFree(r.parser);
    }
    if (st != POD_OK) {
        pod_msccl_free(m);
        return st;
    }
    *msccl = m;
    return POD_OK;
}

void pod_msccl_free(pod_msccl *msccl)
{
    if (!msccl) {
        return;
    }
    free(msccl->steps);
    free(msccl->tbs);
    free(msccl->gpus);
    free(msccl->file);
    free(msccl);
}

pod_coll_op pod_msccl_op(const pod_msccl *msccl)
{
    return msccl->op;
}
