/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/sharding.h"

#include "base/units.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct sharding_reader {
    const char *text;
    const char *at;
    pod_error *err;
} sharding_reader;

static void skip_blanks(sharding_reader *r)
{
    r->at += strspn(r->at, " ");
}

static bool accept(sharding_reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

static pod_status fail_syntax(const sharding_reader *r, const char *wanted)
{
    return pod_fail(r->err, POD_E_USAGE, "'%s' lacks %s at '%s'; write A[I_data, J_{fsdp,tensor}]",
                    r->text, wanted, r->at);
}

/** A name of letters and digits. */
static pod_status name_parse(sharding_reader *r, char name[POD_SHARDED_NAME_MAX])
{
    size_t length = 0;
    skip_blanks(r);
    while (isalnum((unsigned char)r->at[length])) {
        length++;
    }
    if (length == 0 || length >= POD_SHARDED_NAME_MAX) {
        return fail_syntax(r, "a short name");
    }
    memcpy(name, r->at, length);
    name[length] = '\0';
    r->at += length;
    return POD_OK;
}

static pod_status axis_parse(sharding_reader *r, pod_axis_list *list)
{
    skip_blanks(r);
    const size_t length = strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
    pod_mesh_axis axis;
    POD_TRY(pod_mesh_axis_parse(r->at, length, &axis, r->err));
    if (list->count == POD_MESH_AXES) {
        return pod_fail(r->err, POD_E_INVALID, "'%s' names a mesh axis twice; each cuts once",
                        r->text);
    }
    list->axis[list->count++] = axis;
    r->at += length;
    return POD_OK;
}

/** "data" or "{fsdp,tensor}", what follows an underscore. */
static pod_status axes_parse(sharding_reader *r, pod_axis_list *list)
{
    if (!accept(r, '{')) {
        return axis_parse(r, list);
    }
    do {
        const pod_status st = axis_parse(r, list);
        if (st != POD_OK) {
            return st;
        }
    } while (accept(r, ','));
    return accept(r, '}') ? POD_OK : fail_syntax(r, "'}'");
}

static pod_status dims_parse(sharding_reader *r, pod_sharding *sharding)
{
    do {
        if (sharding->ndims == POD_SHARDED_DIMS_MAX) {
            return pod_fail(r->err, POD_E_INVALID, "'%s' has more than %d dims", r->text,
                            (int)POD_SHARDED_DIMS_MAX);
        }
        pod_sharded_dim *dim = &sharding->dim[sharding->ndims++];
        pod_status st = name_parse(r, dim->name);
        if (st == POD_OK && accept(r, '_')) {
            st = axes_parse(r, &dim->cut);
        }
        if (st != POD_OK) {
            return st;
        }
    } while (accept(r, ','));
    return accept(r, ']') ? POD_OK : fail_syntax(r, "']'");
}

/** " {U_tensor}", if it is there. */
static pod_status partial_parse(sharding_reader *r, pod_sharding *sharding)
{
    if (!accept(r, '{')) {
        return POD_OK;
    }
    if (!accept(r, 'U') || !accept(r, '_')) {
        return fail_syntax(r, "U_axis");
    }
    POD_TRY(axes_parse(r, &sharding->partial));
    return accept(r, '}') ? POD_OK : fail_syntax(r, "'}'");
}

static pod_status check_once(const sharding_reader *r, const pod_axis_list *list, unsigned *seen)
{
    for (int i = 0; i < list->count; i++) {
        const unsigned bit = 1U << list->axis[i];
        if ((*seen & bit) != 0) {
            return pod_fail(r->err, POD_E_INVALID,
                            "'%s' uses %s twice; a mesh axis cuts an array once", r->text,
                            pod_mesh_axis_name(list->axis[i]));
        }
        *seen |= bit;
    }
    return POD_OK;
}

static pod_status check_sharding(const sharding_reader *r, const pod_sharding *sharding)
{
    unsigned seen = 0;
    for (int d = 0; d < sharding->ndims; d++) {
        for (int e = 0; e < d; e++) {
            if (strcmp(sharding->dim[d].name, sharding->dim[e].name) == 0) {
                return pod_fail(r->err, POD_E_INVALID,
                                "'%s' names dim %s twice; dims have names of "
                                "their own",
                                r->text, sharding->dim[d].name);
            }
        }
        const pod_status st = check_once(r, &sharding->dim[d].cut, &seen);
        if (st != POD_OK) {
            return st;
        }
    }
    return check_once(r, &sharding->partial, &seen);
}

pod_status pod_sharding_parse(const char *text, pod_sharding *sharding, pod_error *err)
{
    sharding_reader r = {.text = text, .at = text, .err = err};
    *sharding = (pod_sharding){0};
    POD_TRY(name_parse(&r, sharding->array));
    if (!accept(&r, '[')) {
        return fail_syntax(&r, "'['");
    }
    pod_status st = dims_parse(&r, sharding);
    POD_THEN(st, partial_parse(&r, sharding));
    if (st != POD_OK) {
        return st;
    }
    skip_blanks(&r);
    return *r.at == '\0' ? check_sharding(&r, sharding) : fail_syntax(&r, "its end");
}

typedef struct writer {
    char *buf;
    size_t size;
    size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list args;
    if (w->used >= w->size) {
        return;
    }
    va_start(args, format);
    const int written = vsnprintf(w->buf + w->used, w->size - w->used, format, args);
    va_end(args);
    w->used += written > 0 ? (size_t)written : 0;
}

static void put_axes(writer *w, const pod_axis_list *list)
{
    put(w, "%s", list->count > 1 ? "{" : "");
    for (int i = 0; i < list->count; i++) {
        put(w, "%s%s", i > 0 ? "," : "", pod_mesh_axis_name(list->axis[i]));
    }
    put(w, "%s", list->count > 1 ? "}" : "");
}

const char *pod_sharding_print(const pod_sharding *sharding, char *buf, size_t size)
{
    writer w = {.buf = buf, .size = size};
    put(&w, "%s[", sharding->array);
    for (int d = 0; d < sharding->ndims; d++) {
        put(&w, "%s%s%s", d > 0 ? ", " : "", sharding->dim[d].name,
            sharding->dim[d].cut.count > 0 ? "_" : "");
        put_axes(&w, &sharding->dim[d].cut);
    }
    put(&w, "]");
    if (sharding->partial.count > 0) {
        put(&w, " {U_");
        put_axes(&w, &sharding->partial);
        put(&w, "}");
    }
    return buf;
}

const char *pod_reshard_step_print(const pod_reshard_step *step, const pod_sharding *array,
                                   char *buf, size_t size)
{
    static const char *const op_names[] = {"all-gather", "reduce-scatter", "all-reduce",
                                           "all-to-all", "keep a piece of"};
    writer w = {.buf = buf, .size = size};
    put(&w, "%s %s over ", op_names[step->op], step->array);
    for (int i = 0; i < step->axes.count; i++) {
        put(&w, "%s%s", i > 0 ? "," : "", pod_mesh_axis_name(step->axes.axis[i]));
    }
    if (step->op == POD_RESHARD_ALL_TO_ALL) {
        put(&w, " (dim %s to dim %s)", array->dim[step->dim].name, array->dim[step->to_dim].name);
    } else if (step->dim >= 0) {
        put(&w, " (dim %s)", array->dim[step->dim].name);
    }
    return buf;
}

/** Divisors of n into text: "1, 2, 4, 8"; the larger ones give way to dots when there are many. */
static const char *divisors_print(int64_t n, char *buf, size_t size)
{
    writer w = {.buf = buf, .size = size};
    const int shown_max = 12;
    int shown = 0;
    for (int64_t d = 1; d <= n / 2 && shown < shown_max; d++) {
        if (n % d == 0) {
            put(&w, "%s%lld", shown > 0 ? ", " : "", (long long)d);
            shown++;
        }
    }
    put(&w, "%s%lld", shown == shown_max ? ", … " : shown > 0 ? ", " : "", (long long)n);
    return buf;
}

pod_status pod_sharding_shard(const pod_sharding *sharding, const int64_t *dim_size,
                              const int32_t axis_size[POD_MESH_AXES], int64_t *shard_size,
                              pod_error *err)
{
    for (int d = 0; d < sharding->ndims; d++) {
        const pod_axis_list *cut = &sharding->dim[d].cut;
        int64_t pieces = 1;
        for (int i = 0; i < cut->count; i++) {
            pieces *= axis_size[cut->axis[i]];
        }
        if (dim_size[d] % pieces != 0) {
            char text[POD_SHARDING_TEXT_MAX];
            char divisors[160];
            return pod_fail(err, POD_E_INVALID,
                            "%s: dim %s = %lld does not divide into %lld pieces; its divisors are "
                            "%s",
                            pod_sharding_print(sharding, text, sizeof text), sharding->dim[d].name,
                            (long long)dim_size[d], (long long)pieces,
                            divisors_print(dim_size[d], divisors, sizeof divisors));
        }
        shard_size[d] = dim_size[d] / pieces;
    }
    return POD_OK;
}
