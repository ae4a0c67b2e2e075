/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of chips by name: a JSON file, or a metadata node of PyTorch. */
#include "exchange/chakra.h"

#include "base/grow.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who defines a group, for errors. */
typedef struct source {
    const char *file;
    const uint64_t *node; /* NULL: the file itself */
} source;

__attribute__((format(printf, 3, 4))) static pod_status
source_fail(const source *from, pod_error *err, const char *format, ...)
{
    char what[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return from->node == NULL ? pod_fail(err, POD_E_INVALID, "%s: %s", from->file, what)
                              : pod_fail(err, POD_E_INVALID, "%s: node %" PRIu64 ": %s", from->file,
                                         *from->node, what);
}

int64_t pod_chakra_groups_find(const pod_chakra_groups *groups, const char *name)
{
    for (int64_t i = 0; i < groups->count; i++) {
        if (strcmp(groups->list[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

void pod_chakra_groups_fini(pod_chakra_groups *groups)
{
    for (int64_t i = 0; i < groups->count; i++) {
        free(groups->list[i].name);
        free(groups->list[i].chips);
    }
    free(groups->list);
    *groups = (pod_chakra_groups){0};
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a;
    const int32_t y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static pod_status repeats_check(const source *from, const pod_chakra_group *group, pod_error *err)
{
    int32_t *sorted = malloc(((size_t)group->nchips + 1) * sizeof *sorted);
    pod_status st = POD_OK;
    if (sorted == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of a trace");
    }
    memcpy(sorted, group->chips, (size_t)group->nchips * sizeof *sorted);
    qsort(sorted, (size_t)group->nchips, sizeof *sorted, by_number);
    for (int32_t i = 1; i < group->nchips && st == POD_OK; i++) {
        if (sorted[i] == sorted[i - 1]) {
            st = source_fail(from, err, "group \"%s\" has chip %d twice", group->name,
                             (int)sorted[i]);
        }
    }
    free(sorted);
    return st;
}

/* Chips of a group: NULL or an empty list of a node is all. */
static pod_status chips_read(const source *from, const json_t *ranks, pod_chakra_group *group,
                             pod_error *err)
{
    const size_t count = json_array_size(ranks);
    if (ranks != NULL && !json_is_array(ranks)) {
        return source_fail(from, err, "group \"%s\" is no list of chips, as [0, 4, 8]",
                           group->name);
    }
    if (count == 0) {
        return from->node != NULL
                   ? POD_OK
                   : source_fail(from, err, "group \"%s\" has no chips", group->name);
    }
    group->chips = calloc(count, sizeof *group->chips);
    if (group->chips == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of a trace");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *chip = json_array_get(ranks, i);
        const json_int_t number = json_integer_value(chip);
        if (!json_is_integer(chip) || number < 0 || number > INT32_MAX) {
            return source_fail(from, err, "group \"%s\": chips are whole numbers from 0 on",
                               group->name);
        }
        group->chips[i] = (int32_t)number;
    }
    group->nchips = (int32_t)count;
    return repeats_check(from, group, err);
}

static bool same_chips(const pod_chakra_group *a, const pod_chakra_group *b)
{
    return a->nchips == b->nchips
           && (a->nchips == 0
               || memcmp(a->chips, b->chips, (size_t)a->nchips * sizeof *a->chips) == 0);
}

static pod_status group_add(const source *from, pod_chakra_groups *groups, const char *name,
                            const json_t *ranks, pod_error *err)
{
    if (!POD_GROW(groups->list, groups->room, groups->count + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of a trace");
    }
    pod_chakra_group *group = &groups->list[groups->count];
    *group = (pod_chakra_group){.name = strdup(name)};
    pod_status st = group->name != NULL
                        ? chips_read(from, ranks, group, err)
                        : pod_fail(err, POD_E_NOMEM, "no memory for the groups of a trace");
    const int64_t other = st == POD_OK ? pod_chakra_groups_find(groups, name) : -1;
    if (other >= 0 && !same_chips(&groups->list[other], group)) {
        st = source_fail(from, err, "group \"%s\" has other chips than where it was defined first",
                         name);
    }
    if (st == POD_OK && other < 0) {
        groups->count++;
        return POD_OK;
    }
    free(group->name);
    free(group->chips);
    return st;
}

pod_status pod_chakra_groups_read(const char *file, const char *text, size_t size,
                                  pod_chakra_groups *groups, pod_error *err)
{
    const source from = {.file = file};
    json_error_t why;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    pod_status st = POD_OK;
    if (json == NULL) {
        return pod_fail_at(err, POD_E_INVALID, file, why.line, why.column,
                           "no JSON of groups, as {\"1\": [0, 4, 8]}: %s", why.text);
    }
    if (!json_is_object(json)) {
        st = source_fail(&from, err, "groups are an object, as {\"1\": [0, 4, 8]}");
    }
    for (void *at = json_object_iter(json); at != NULL && st == POD_OK;
         at = json_object_iter_next(json, at)) {
        const json_t *ranks = json_object_iter_value(at);
        st = json_is_array(ranks)
                 ? group_add(&from, groups, json_object_iter_key(at), ranks, err)
                 : source_fail(&from, err, "group \"%s\" is no list of chips, as [0, 4, 8]",
                               json_object_iter_key(at));
    }
    json_decref(json);
    return st;
}

/* The list inside `values`, which may write its quotes as \". */
static json_t *list_load(const char *values, size_t size)
{
    json_error_t why;
    json_t *json = json_loadb(values, size, 0, &why);
    char *plain = json == NULL ? malloc(size + 1) : NULL;
    if (plain != NULL) {
        size_t used = 0;
        for (size_t i = 0; i < size; i++) {
            if (values[i] != '\\') {
                plain[used++] = values[i];
            }
        }
        json = json_loadb(plain, used, 0, &why);
        free(plain);
    }
    return json;
}

pod_status pod_chakra_groups_of_node(const char *file, uint64_t id, const char *values,
                                     pod_chakra_groups *groups, pod_error *err)
{
    enum { AROUND = 2 };
    const source from = {.file = file, .node = &id};
    const size_t size = strlen(values);
    pod_status st = POD_OK;
    if (size <= (size_t)2 * AROUND || strstr(values, "pg_name") == NULL) {
        return POD_OK;
    }
    json_t *json = list_load(values + AROUND, size - (size_t)2 * AROUND);
    if (!json_is_array(json)) {
        json_decref(json);
        return source_fail(&from, err,
                           "its inputs name groups, but are no list, as "
                           "[{\"pg_name\": \"1\", \"ranks\": [0, 4, 8]}]");
    }
    for (size_t i = 0; i < json_array_size(json) && st == POD_OK; i++) {
        const json_t *name = json_object_get(json_array_get(json, i), "pg_name");
        const json_t *ranks = json_object_get(json_array_get(json, i), "ranks");
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(name));
        st = json_is_string(name) || json_is_integer(name)
                 ? group_add(&from, groups, json_is_string(name) ? json_string_value(name) : number,
                             ranks, err)
                 : source_fail(&from, err, "a group without pg_name");
    }
    json_decref(json);
    return st;
}
