/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/msccl_impl.h"

#include "base/units.h"

#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 1 << 16, CHUNKS_MAX = 1 << 20, STEPS_MAX = 1 << 24 };

typedef struct reader {
    XML_Parser parser;
    pod_msccl *program;
    pod_error *err;
    pod_status status;
    int32_t gpu; /* -1 outside */
    bool in_algo;
    bool in_tb;
    int32_t tbs_room;
    int32_t steps_room;
} reader;

__attribute__((format(printf, 2, 3))) static void fail(reader *r, const char *format, ...)
{
    if (r->status != POD_OK) {
        return;
    }
    char text[POD_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->status =
        pod_fail_at(r->err, POD_E_TABLE, r->program->file, (int)XML_GetCurrentLineNumber(r->parser),
                    (int)XML_GetCurrentColumnNumber(r->parser) + 1, "%s", text);
    XML_StopParser(r->parser, XML_FALSE);
}

static const char *attribute(const char **attributes, const char *name)
{
    for (int i = 0; attributes[i]; i += 2) {
        if (strcmp(attributes[i], name) == 0) {
            return attributes[i + 1];
        }
    }
    return NULL;
}

/* A whole number in [min, max]; `missing` when there is no such attribute. */
static int32_t number(reader *r, const char **attributes, const char *name, int32_t min,
                      int32_t max, int32_t missing)
{
    const char *text = attribute(attributes, name);
    int64_t value = missing;
    if (text && pod_parse_i64(text, name, min, max, &value, NULL) != POD_OK) {
        fail(r, "%s is '%s'; give a whole number from %d to %d", name, text, min, max);
    } else if (!text && missing < min) {
        fail(r, "%s is missing; give a whole number from %d to %d", name, min, max);
    }
    return (int32_t)value;
}

/* ---- elements ---- */

static void read_algo(reader *r, const char **attributes)
{
    static const char *const names[] = {"allreduce", "allgather", "reduce_scatter", "alltoall",
                                        "broadcast"};
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                      POD_ALL_TO_ALL, POD_BROADCAST};
    pod_msccl *program = r->program;
    const char *coll = attribute(attributes, "coll");
    size_t i = 0;
    while (coll && i < sizeof names / sizeof names[0] && strcmp(coll, names[i]) != 0) {
        i++;
    }
    if (!coll || i == sizeof names / sizeof names[0]) {
        fail(r, "coll is '%s'; use allreduce, allgather, reduce_scatter, alltoall or broadcast",
             coll ? coll : "");
        return;
    }
    const char *name = attribute(attributes, "name");
    program->op = ops[i];
    program->ngpus = number(r, attributes, "ngpus", 1, GPUS_MAX, 0);
    program->chunks = number(r, attributes, "nchunksperloop", 1, CHUNKS_MAX, 0);
    program->inplace = number(r, attributes, "inplace", 0, 1, 0) == 1;
    (void)snprintf(program->name, sizeof program->name, "file:%s", name ? name : "unnamed");
    const bool one_each = program->op == POD_ALL_GATHER || program->op == POD_REDUCE_SCATTER
                          || program->op == POD_ALL_TO_ALL;
    if (one_each && program->chunks != program->ngpus) {
        fail(r, "nchunksperloop is %d for %d gpus; %s takes one chunk a gpu: %d", program->chunks,
             program->ngpus, names[i], program->ngpus);
    }
}

static void read_gpu(reader *r, const char **attributes)
{
    const int32_t id = number(r, attributes, "id", 0, r->program->ngpus - 1, -1);
    const int32_t scratch = number(r, attributes, "s_chunks", 0, CHUNKS_MAX, 0);
    for (int32_t i = 0; i < r->program->ntbs; i++) {
        if (r->program->tbs[i].gpu == id) {
            fail(r, "gpu %d comes twice; put all its thread blocks together", id);
        }
    }
    r->gpu = id;
    r->program->scratch = scratch > r->program->scratch ? scratch : r->program->scratch;
}

static bool room(void **array, int32_t *have, int32_t need, size_t size)
{
    if (need <= *have) {
        return true;
    }
    const int32_t grown = 2 * need + 16;
    void *moved = realloc(*array, (size_t)grown * size);
    if (!moved) {
        return false;
    }
    *array = moved;
    *have = grown;
    return true;
}

static void read_tb(reader *r, const char **attributes)
{
    pod_msccl *program = r->program;
    void *tbs = program->tbs;
    const bool fits = room(&tbs, &r->tbs_room, program->ntbs + 1, sizeof *program->tbs);
    program->tbs = tbs;
    if (!fits) {
        r->status = pod_fail(r->err, POD_E_NOMEM, "out of memory for %s", program->file);
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    const int32_t last = program->ngpus - 1;
    msccl_tb *tb = &program->tbs[program->ntbs++];
    *tb = (msccl_tb){
        .gpu = r->gpu,
        .id = number(r, attributes, "id", 0, CHUNKS_MAX, -1),
        .send = number(r, attributes, "send", -1, last, -1),
        .recv = number(r, attributes, "recv", -1, last, -1),
        .chan = number(r, attributes, "chan", 0, CHUNKS_MAX, 0),
        .first_step = program->nsteps,
        .line = (int)XML_GetCurrentLineNumber(r->parser),
    };
    if (tb->send == r->gpu || tb->recv == r->gpu) {
        fail(r, "gpu %d sends to itself; use a step of type cpy", r->gpu);
    }
    for (int32_t i = 0; i < program->ntbs - 1; i++) {
        if (program->tbs[i].gpu == tb->gpu && program->tbs[i].id == tb->id) {
            fail(r, "gpu %d has two thread blocks %d; number them apart", tb->gpu, tb->id);
        }
    }
}

static msccl_place read_place(reader *r, const char **attributes, const char *buffer,
                              const char *offset)
{
    const char *text = attribute(attributes, buffer);
    msccl_place place = {.buffer = text ? text[0] : 'i',
                         .chunk = number(r, attributes, offset, -1, CHUNKS_MAX, 0)};
    if (text && (strlen(text) != 1 || !strchr("ios", text[0]))) {
        fail(r, "%s is '%s'; use i, o or s", buffer, text);
    }
    return place;
}

static bool read_type(const char *text, msccl_type *type)
{
    static const char *const names[] = {"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};
    for (size_t i = 0; text && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *type = (msccl_type)i;
            return true;
        }
    }
    return false;
}

static void read_step(reader *r, const char **attributes)
{
    pod_msccl *program = r->program;
    void *steps = program->steps;
    const bool fits = program->nsteps < STEPS_MAX
                      && room(&steps, &r->steps_room, program->nsteps + 1, sizeof *program->steps);
    program->steps = steps;
    if (!fits) {
        r->status = pod_fail(r->err, POD_E_NOMEM, "out of memory for %s", program->file);
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    msccl_tb *tb = &program->tbs[program->ntbs - 1];
    msccl_step *step = &program->steps[program->nsteps++];
    const int32_t s = number(r, attributes, "s", 0, STEPS_MAX, -1);
    const char *type = attribute(attributes, "type");
    *step = (msccl_step){.src = read_place(r, attributes, "srcbuf", "srcoff"),
                         .dst = read_place(r, attributes, "dstbuf", "dstoff"),
                         .chunks = number(r, attributes, "cnt", 0, CHUNKS_MAX, 1),
                         .dep_tb = number(r, attributes, "depid", -1, CHUNKS_MAX, -1),
                         .dep_step = number(r, attributes, "deps", -1, STEPS_MAX, -1),
                         .line = (int)XML_GetCurrentLineNumber(r->parser)};
    if (!read_type(type, &step->type)) {
        fail(r, "type is '%s'; use s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", type ? type : "");
        return;
    }
    if (s != tb->nsteps) {
        fail(r, "step %d where step %d is due; number the steps of a thread block from 0", s,
             tb->nsteps);
    }
    tb->nsteps++;
    const bool sends = step->type == MSCCL_SEND || step->type == MSCCL_RCS
                       || step->type == MSCCL_RRS || step->type == MSCCL_RRCS;
    const bool receives = step->type >= MSCCL_RECV && step->type <= MSCCL_RRCS;
    if (sends && tb->send < 0) {
        fail(r, "a step of type %s in a thread block with send=\"-1\"; name the peer", type);
    }
    if (receives && tb->recv < 0) {
        fail(r, "a step of type %s in a thread block with recv=\"-1\"; name the peer", type);
    }
}

static void on_start(void *data, const char *element, const char **attributes)
{
    reader *r = data;
    if (strcmp(element, "algo") == 0 && !r->in_algo) {
        r->in_algo = true;
        read_algo(r, attributes);
    } else if (strcmp(element, "gpu") == 0 && r->in_algo && r->gpu < 0) {
        read_gpu(r, attributes);
    } else if (strcmp(element, "tb") == 0 && r->gpu >= 0 && !r->in_tb) {
        r->in_tb = true;
        read_tb(r, attributes);
    } else if (strcmp(element, "step") == 0 && r->in_tb) {
        read_step(r, attributes);
    } else {
        fail(r, "<%s> doesn't belong here; expected <algo> with <gpu>, <tb> and <step> inside",
             element);
    }
}

static void on_end(void *data, const char *element)
{
    reader *r = data;
    if (strcmp(element, "gpu") == 0) {
        r->gpu = -1;
    } else if (strcmp(element, "tb") == 0) {
        r->in_tb = false;
    }
}

/* Chunks of a buffer; the input of an out-of-place gather or the output of a scatter is one. */
static int32_t buffer_chunks(const pod_msccl *program, char buffer)
{
    if (buffer == 's') {
        return program->scratch;
    }
    const bool one = !program->inplace
                     && ((program->op == POD_ALL_GATHER && buffer == 'i')
                         || (program->op == POD_REDUCE_SCATTER && buffer == 'o'));
    return one ? 1 : program->chunks;
}

static pod_status check_places(const pod_msccl *program, pod_error *err)
{
    for (int32_t i = 0; i < program->nsteps; i++) {
        const msccl_step *step = &program->steps[i];
        const bool has_src = step->type != MSCCL_RECV && step->type != MSCCL_RCS;
        const bool has_dst = step->type != MSCCL_SEND && step->type != MSCCL_RRS;
        const msccl_place *places[2] = {has_src ? &step->src : NULL, has_dst ? &step->dst : NULL};
        for (int j = 0; j < 2 && step->type != MSCCL_NOP; j++) {
            if (!places[j]) {
                continue;
            }
            const int32_t have = buffer_chunks(program, places[j]->buffer);
            if (places[j]->chunk < 0 || places[j]->chunk > have - step->chunks) {
                return pod_fail_at(err, POD_E_TABLE, program->file, step->line, 1,
                                   "chunks %d to %d of buffer %c, which has %d", places[j]->chunk,
                                   places[j]->chunk + step->chunks - 1, places[j]->buffer, have);
            }
        }
    }
    return POD_OK;
}

pod_status pod_msccl_parse(const char *name, const char *text, size_t size, pod_msccl **out,
                           pod_error *err)
{
    *out = NULL;
    pod_msccl *program = calloc(1, sizeof *program);
    XML_Parser parser = XML_ParserCreate(NULL);
    if (!program || !parser || size > INT32_MAX) {
        free(program);
        XML_ParserFree(parser);
        return pod_fail(err, POD_E_NOMEM, "out of memory for %s", name);
    }
    (void)snprintf(program->file, sizeof program->file, "%s", name);
    reader r = {.parser = parser, .program = program, .err = err, .gpu = -1};
    XML_SetUserData(parser, &r);
    XML_SetElementHandler(parser, on_start, on_end);
    const enum XML_Status parsed = XML_Parse(parser, text, (int)size, 1);
    if (parsed == XML_STATUS_ERROR && r.status == POD_OK) {
        fail(&r, "%s; give an MSCCL <algo>", XML_ErrorString(XML_GetErrorCode(parser)));
    }
    pod_status st = r.status;
    XML_ParserFree(parser);
    st = st == POD_OK ? check_places(program, err) : st;
    if (st != POD_OK) {
        pod_msccl_free(program);
        return st;
    }
    *out = program;
    return POD_OK;
}

void pod_msccl_free(pod_msccl *program)
{
    if (program) {
        free(program->tbs);
        free(program->steps);
        free(program);
    }
}
