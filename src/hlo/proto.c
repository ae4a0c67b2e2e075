/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/proto.h"

#include "hlo/module.h"
#include "hlo/proto_write.h"

#include <stdlib.h>
#include <string.h>

/* ---- how deep shapes nest, before anything is decoded ---- */

typedef struct wire_scan {
    const uint8_t *at;
    const uint8_t *end;
} wire_scan;

static bool take_varint(wire_scan *scan, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && scan->at < scan->end; shift += 7) {
        const uint8_t byte = *scan->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

/* Messages on the way to shapes: program, module, computation, instruction, shape, its members. */
enum { PROGRAM, MODULE, COMPUTATION, INSTRUCTION, SHAPE, DEEPEST = SHAPE + POD_HLO_BRACKETS_MAX };

/* Are all fields complete, and shapes nested no deeper than brackets may be? */
static bool is_shallow(wire_scan scan, int level)
{
    static const uint64_t inner[] = {
        [PROGRAM] = 1, [MODULE] = 3, [COMPUTATION] = 2, [INSTRUCTION] = 3, [SHAPE] = 4};
    if (level > DEEPEST) {
        return false;
    }
    while (scan.at < scan.end) {
        uint64_t key = 0;
        uint64_t value = 0;
        if (!take_varint(&scan, &key)) {
            return false;
        }
        const unsigned type = (unsigned)(key & 7);
        const size_t left = (size_t)(scan.end - scan.at);
        if (type == 1 || type == 5) {
            value = type == 1 ? 8 : 4;
        } else if ((type != 0 && type != 2) || !take_varint(&scan, &value)) {
            return false;
        }
        if (type == 0) {
            continue;
        }
        if (value > left || value > (uint64_t)(scan.end - scan.at)) {
            return false;
        }
        const wire_scan content = {scan.at, scan.at + value};
        if (type == 2 && key >> 3 == inner[level < SHAPE ? level : SHAPE]
            && !is_shallow(content, level + 1)) {
            return false;
        }
        scan.at += value;
    }
    return true;
}

static bool may_be(const uint8_t *bytes, size_t size, int level)
{
    return is_shallow((wire_scan){bytes, bytes + size}, level);
}

/* ---- which message it is ---- */

static bool is_program(const PodWire__Module *module)
{
    return module != NULL && module->n_computations > 0 && module->name[0] != '\0'
           && module->computations[0]->n_instructions > 0;
}

static PodWire__Program *program_unpack(const uint8_t *bytes, size_t size)
{
    PodWire__Program *program =
        may_be(bytes, size, PROGRAM) ? pod_wire__program__unpack(NULL, size, bytes) : NULL;
    if (program != NULL && !is_program(program->module)) {
        pod_wire__program__free_unpacked(program, NULL);
        program = NULL;
    }
    return program;
}

static pod_status module_write(const PodWire__Module *module, pod_text *text, pod_error *err)
{
    pod_status st = pod_hlo_proto_write(module, text, err);
    if (st == POD_OK && text->out_of_memory) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the text of a program");
    }
    return st == POD_OK && text->size > (size_t)POD_HLO_TEXT_MAX ? pod_fail(
               err, POD_E_RANGE, "'%s' is too large: more than 64 MiB as text", module->name)
                                                                 : st;
}

/* ---- profiles ---- */

/* Programs of a profile: found, the one that is wanted, and what all are called. */
typedef struct program_finder {
    const char *wanted;
    int count;
    PodWire__Program *found;
    pod_text names;
} program_finder;

static void program_note(program_finder *f, PodWire__Program *program)
{
    const char *name = program->module->name;
    const bool fits = f->wanted == NULL || strcmp(f->wanted, name) == 0;
    pod_text_printf(&f->names, "%s%s", f->names.size > 0 ? ", " : "", name);
    if (fits) {
        f->count++;
    }
    if (fits && f->found == NULL) {
        f->found = program;
    } else {
        pod_wire__program__free_unpacked(program, NULL);
    }
}

static void plane_look(program_finder *f, const PodWire__Plane *plane)
{
    for (size_t e = 0; e < plane->n_events; e++) {
        const PodWire__EventMetadata *event = plane->events[e]->value;
        for (size_t s = 0; event != NULL && s < event->n_stats; s++) {
            const ProtobufCBinaryData *content = &event->stats[s]->content;
            PodWire__Program *program = program_unpack(content->data, content->len);
            if (program != NULL) {
                program_note(f, program);
            }
        }
    }
}

static pod_status profile_text(const char *file, const PodWire__Space *space, const char *wanted,
                               pod_text *text, pod_error *err)
{
    program_finder f = {.wanted = wanted};
    pod_status st = POD_OK;
    for (size_t i = 0; i < space->n_planes; i++) {
        plane_look(&f, space->planes[i]);
    }
    const char *names = f.names.size > 0 ? f.names.data : "none";
    if (f.found == NULL) {
        st = pod_fail(err, POD_E_INVALID, "'%s' is a profile without %s%s; programs in it: %s",
                      file, wanted != NULL ? "a program " : "a program",
                      wanted != NULL ? wanted : "", names);
    } else if (f.count > 1 && wanted == NULL) {
        st = pod_fail(err, POD_E_INVALID,
                      "'%s' is a profile of several programs; --module NAME chooses one: %s", file,
                      names);
    } else {
        st = module_write(f.found->module, text, err);
    }
    if (f.found != NULL) {
        pod_wire__program__free_unpacked(f.found, NULL);
    }
    pod_text_free(&f.names);
    return st;
}

pod_status pod_hlo_proto_sole(const char *file, const char *wanted, pod_error *err)
{
    return wanted == NULL ? POD_OK
                          : pod_fail(err, POD_E_USAGE,
                                     "--module chooses one of the programs of a profile, and '%s' "
                                     "is one program; leave it out",
                                     file);
}

pod_status pod_hlo_proto_text(const char *file, const char *bytes, size_t size, const char *wanted,
                              pod_text *text, pod_error *err)
{
    const uint8_t *data = (const uint8_t *)bytes;
    pod_status st = POD_OK;
    PodWire__Program *program = program_unpack(data, size);
    if (program != NULL) {
        st = pod_hlo_proto_sole(file, wanted, err);
        POD_THEN(st, module_write(program->module, text, err));
        pod_wire__program__free_unpacked(program, NULL);
        return st;
    }
    PodWire__Module *module =
        may_be(data, size, MODULE) ? pod_wire__module__unpack(NULL, size, data) : NULL;
    if (module != NULL && is_program(module)) {
        st = pod_hlo_proto_sole(file, wanted, err);
        POD_THEN(st, module_write(module, text, err));
        pod_wire__module__free_unpacked(module, NULL);
        return st;
    }
    if (module != NULL) {
        pod_wire__module__free_unpacked(module, NULL);
    }
    PodWire__Space *space = pod_wire__space__unpack(NULL, size, data);
    if (space != NULL && space->n_planes > 0) {
        st = profile_text(file, space, wanted, text, err);
    }
    if (space != NULL) {
        pod_wire__space__free_unpacked(space, NULL);
    }
    return st;
}
