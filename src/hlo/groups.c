/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/groups.h"

#include "base/units.h"
#include "hlo/attributes.h"

#include <stdlib.h>
#include <string.h>

void pod_hlo_groups_fini(pod_hlo_groups_pool *pool)
{
    pod_hlo_interned_fini(&pool->text);
    free(pool->number_of);
    free(pool->group);
    free(pool->pairs);
    free(pool->shuffle);
    free(pool->id);
    free(pool->seen);
    memset(pool, 0, sizeof *pool);
}

/* ---- lists of numbers ---- */

/* What a number is of, without its article. */
static const char *noun(const pod_hlo_groups_pool *pool)
{
    return strchr(pool->what, ' ') + 1;
}

static pod_status new_list(pod_hlo_groups_pool *pool, int64_t range, pod_error *err)
{
    const uint32_t before = pool->seen_capacity;
    const pod_status st = pod_hlo_reserve(&pool->seen, &pool->seen_capacity, (uint64_t)range,
                                          sizeof *pool->seen, err);
    if (st == POD_OK && pool->seen_capacity > before) {
        memset(pool->seen + before, 0, (pool->seen_capacity - before) * sizeof *pool->seen);
    }
    pool->lists++;
    return st;
}

/* Takes a number below `range`. @param once  it must not be in this list already */
static pod_status take_id(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range, bool once)
{
    int64_t id = 0;
    pod_hlo_blank(scan);
    const uint32_t at = scan->at;
    POD_TRY(pod_hlo_number(scan, pool->what, INT32_MAX, &id));
    if (id >= range) {
        return pod_hlo_fail(scan, at, "%s %d; the program has %ss 0 to %d", noun(pool), (int)id,
                            noun(pool), (int)range - 1);
    }
    if (once && pool->seen[id] == pool->lists) {
        return pod_hlo_fail(scan, at, "%s %d is here twice", noun(pool), (int)id);
    }
    pool->seen[id] = once ? pool->lists : pool->seen[id];
    POD_TRY(pod_hlo_reserve(&pool->id, &pool->ids_capacity, (uint64_t)pool->nids + 1,
                            sizeof *pool->id, scan->err));
    pool->id[pool->nids++] = (int32_t)id;
    return POD_OK;
}

/* {{0,1},{2,3}}, of which the outer bracket is taken and something follows. */
static pod_status take_lists(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                             pod_hlo_groups *group)
{
    const uint32_t begin = scan->at;
    pod_status st = new_list(pool, range, scan->err);
    group->ids = pool->nids;
    do {
        const uint32_t first = pool->nids;
        POD_THEN(st, pod_hlo_expect(scan, '{', "a group"));
        do {
            POD_THEN(st, take_id(pool, scan, range, true));
        } while (st == POD_OK && pod_hlo_take(scan, ','));
        POD_THEN(st, pod_hlo_expect(scan, '}', "a group"));
        const int32_t size = (int32_t)(pool->nids - first);
        if (st == POD_OK && group->count > 0 && size != group->size) {
            st = pod_hlo_fail(scan, scan->at, "groups of %d and of %d %ss; all need the same size",
                              (int)group->size, (int)size, noun(pool));
        }
        group->size = size;
        group->count++;
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    POD_THEN(st, pod_hlo_expect(scan, '}', "replica_groups"));
    const int64_t named = (int64_t)pool->nids - group->ids;
    if (st == POD_OK && named != range) {
        st = pod_hlo_fail(scan, begin, "the groups name %d of %d %ss; each once", (int)named,
                          (int)range, noun(pool));
    }
    return st;
}

/* ---- shapes of 0, 1, 2, … ---- */

static pod_status product_is(const pod_hlo_scan *scan, const char *what, uint32_t at,
                             const int64_t *sizes, int count, int64_t range)
{
    int64_t product = 1;
    bool fits = true;
    for (int i = 0; i < count; i++) {
        fits = fits && pod_mul_i64(product, sizes[i], &product);
    }
    return fits && product == range
               ? POD_OK
               : pod_hlo_fail(scan, at, "a product that isn't the number of %ss, %d", what,
                              (int)range);
}

/* The shuffle of an array of these dims, transposed: new dim i is dim order[i]. */
static pod_status shuffle_of(const pod_hlo_scan *scan, uint32_t at, const int64_t *sizes,
                             const int64_t *order, int count, pod_hlo_shuffle *shuffle)
{
    int64_t stride[POD_HLO_SHUFFLE_MAX];
    bool seen[POD_HLO_SHUFFLE_MAX] = {false};
    int64_t below = 1;
    for (int i = count - 1; i >= 0; i--) {
        stride[i] = below;
        below *= sizes[i];
    }
    shuffle->ndims = count;
    for (int i = 0; i < count; i++) {
        if (order[i] >= count || seen[order[i]]) {
            return pod_hlo_fail(scan, at, "an order of dims that isn't each of them once");
        }
        seen[order[i]] = true;
        shuffle->size[i] = sizes[order[i]];
        shuffle->stride[i] = stride[order[i]];
    }
    return POD_OK;
}

/* "[2,4]" or "[2,4]T(1,0)" of which the dims are taken. */
static pod_status take_transpose(pod_hlo_scan *scan, uint32_t at, const int64_t *sizes, int count,
                                 pod_hlo_shuffle *shuffle)
{
    int64_t order[POD_HLO_SHUFFLE_MAX];
    int norder = count;
    for (int i = 0; i < count; i++) {
        order[i] = i;
    }
    if (pod_hlo_take(scan, 'T')) {
        const pod_status st = pod_hlo_numbers(scan, '(', "an order of dims", POD_HLO_SHUFFLE_MAX,
                                              order, POD_HLO_SHUFFLE_MAX, &norder);
        if (st != POD_OK) {
            return st;
        }
    }
    if (norder != count) {
        return pod_hlo_fail(scan, at, "an order of %d of %d dims", norder, count);
    }
    return shuffle_of(scan, at, sizes, order, count, shuffle);
}

/* [4,2]<=[2,4]T(1,0) */
static pod_status take_iota(const pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                            pod_hlo_groups *group, pod_hlo_shuffle *shuffle)
{
    int64_t cut[2] = {0, 0};
    int64_t sizes[POD_HLO_SHUFFLE_MAX];
    int ncut = 0;
    int count = 0;
    const uint32_t begin = scan->at;
    pod_status st = pod_hlo_numbers(scan, '[', "the number and size of groups",
                                    POD_HLO_PARTITIONS_MAX, cut, 2, &ncut);
    if (st == POD_OK && ncut != 2) {
        st = pod_hlo_fail(scan, begin, "replica_groups of one number; [groups,size]<=[…]");
    }
    POD_THEN(st, pod_hlo_expect(scan, '<', "replica_groups"));
    POD_THEN(st, pod_hlo_expect(scan, '=', "replica_groups"));
    const uint32_t at = scan->at;
    POD_THEN(st, pod_hlo_numbers(scan, '[', "a dim", POD_HLO_PARTITIONS_MAX, sizes,
                                 POD_HLO_SHUFFLE_MAX, &count));
    POD_THEN(st, product_is(scan, noun(pool), at, sizes, count, range));
    POD_THEN(st, product_is(scan, noun(pool), begin, cut, 2, range));
    group->count = (int32_t)cut[0];
    group->size = (int32_t)cut[1];
    return st == POD_OK ? take_transpose(scan, at, sizes, count, shuffle) : st;
}

/* ---- meshes ---- */

/* The axes of a mesh, cut into parts where the groups span only a part of an axis. */
typedef struct mesh_axes {
    pod_hlo_span name[POD_HLO_SHUFFLE_MAX];
    int64_t size[POD_HLO_SHUFFLE_MAX];
    int count;
    int64_t part_major[POD_HLO_SHUFFLE_MAX]; /* positions before the part; 1 for a whole axis */
    int64_t part_size[POD_HLO_SHUFFLE_MAX];
    int chosen[POD_HLO_SHUFFLE_MAX]; /* axes that a group spans, major first */
    int nchosen;
} mesh_axes;

/* 'a', quotes taken. */
static pod_status take_axis(pod_hlo_scan *scan, pod_hlo_span *name)
{
    pod_status st = pod_hlo_expect(scan, '\'', "an axis of a mesh");
    name->begin = scan->at;
    while (st == POD_OK && scan->at < scan->size && scan->text[scan->at] != '\'') {
        scan->at++;
    }
    name->end = scan->at;
    return st == POD_OK ? pod_hlo_expect(scan, '\'', "an axis of a mesh") : st;
}

static int find_axis(const mesh_axes *axes, const char *text, pod_hlo_span name)
{
    const size_t length = name.end - name.begin;
    for (int i = 0; i < axes->count; i++) {
        if (axes->name[i].end - axes->name[i].begin == length
            && memcmp(text + axes->name[i].begin, text + name.begin, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* mesh['a'=2,'b'=4] */
static pod_status take_mesh(const pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                            mesh_axes *axes)
{
    pod_hlo_span word;
    pod_status st = pod_hlo_name(scan, "replica_groups", &word);
    const uint32_t at = scan->at;
    POD_THEN(st, pod_hlo_expect(scan, '[', "a mesh"));
    do {
        if (st == POD_OK && axes->count == POD_HLO_SHUFFLE_MAX) {
            return pod_hlo_fail_limit(scan, at, "axes of a mesh", POD_HLO_SHUFFLE_MAX);
        }
        pod_hlo_span name = {0};
        POD_THEN(st, take_axis(scan, &name));
        if (st == POD_OK && find_axis(axes, scan->text, name) >= 0) {
            st = pod_hlo_fail(scan, name.begin, "an axis of the mesh is named twice");
        }
        POD_THEN(st, pod_hlo_expect(scan, '=', "an axis of a mesh"));
        if (st == POD_OK) {
            axes->name[axes->count] = name;
            st = pod_hlo_number(scan, "an axis of a mesh", POD_HLO_PARTITIONS_MAX,
                                &axes->size[axes->count]);
            axes->count++;
        }
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    POD_THEN(st, pod_hlo_expect(scan, ']', "a mesh"));
    return st == POD_OK ? product_is(scan, noun(pool), at, axes->size, axes->count, range) : st;
}

/* Ids in brackets, of which the opening one is taken. */
static pod_status take_devices_list(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                                    uint32_t at)
{
    const uint32_t first = pool->nids;
    pod_status st = new_list(pool, range, scan->err);
    do {
        POD_THEN(st, take_id(pool, scan, range, true));
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    if (st == POD_OK && (int64_t)pool->nids - first != range) {
        st = pod_hlo_fail(scan, at, "device_ids names %d of %d %ss", (int)(pool->nids - first),
                          (int)range, noun(pool));
    }
    return st;
}

/* Does "[0,2,1,3]" list ids? A list of all ids holds a 0, dims don't. */
static bool lists_ids(pod_hlo_scan ahead)
{
    pod_hlo_span inside;
    ahead.err = NULL;
    if (pod_hlo_group(&ahead, '[', "", &inside) != POD_OK) {
        return false;
    }
    pod_hlo_scan scan = pod_hlo_scan_part(ahead.file, ahead.text, inside, NULL);
    int64_t number = 1;
    while (number != 0 && pod_hlo_number(&scan, "", INT64_MAX, &number) == POD_OK) {
        (void)pod_hlo_take(&scan, ',');
    }
    return number == 0;
}

/* device_ids=([4,16]T(1,0)), device_ids=(0,2,1,3) or device_ids=([0,2,1,3]) */
static pod_status take_devices(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                               pod_hlo_groups *group, pod_hlo_shuffle *shuffle)
{
    pod_hlo_span word;
    pod_status st = pod_hlo_name(scan, "device_ids", &word);
    if (st == POD_OK && !pod_hlo_is(scan->text, word, "device_ids")) {
        st = pod_hlo_fail(scan, word.begin, "device_ids or axes of the mesh belong here");
    }
    POD_THEN(st, pod_hlo_expect(scan, '=', "device_ids"));
    POD_THEN(st, pod_hlo_expect(scan, '(', "device_ids"));
    const uint32_t at = scan->at;
    const bool bracket = pod_hlo_peek(scan) == '[';
    if (st == POD_OK && (!bracket || lists_ids(*scan))) {
        group->ids = pool->nids;
        (void)pod_hlo_take(scan, '[');
        st = take_devices_list(pool, scan, range, at);
        st = st == POD_OK && bracket ? pod_hlo_expect(scan, ']', "device_ids") : st;
    } else if (st == POD_OK) {
        int64_t sizes[POD_HLO_SHUFFLE_MAX];
        int count = 0;
        st = pod_hlo_numbers(scan, '[', "a dim", POD_HLO_PARTITIONS_MAX, sizes, POD_HLO_SHUFFLE_MAX,
                             &count);
        POD_THEN(st, product_is(scan, noun(pool), at, sizes, count, range));
        POD_THEN(st, take_transpose(scan, at, sizes, count, shuffle));
    }
    return st == POD_OK ? pod_hlo_expect(scan, ')', "device_ids") : st;
}

/* 'a' or 'a':(2)4 */
static pod_status take_chosen(pod_hlo_scan *scan, mesh_axes *axes)
{
    pod_hlo_span name;
    pod_status st = take_axis(scan, &name);
    const int axis = st == POD_OK ? find_axis(axes, scan->text, name) : -1;
    if (st == POD_OK && axis < 0) {
        st = pod_hlo_fail(scan, name.begin, "'%.*s' is no axis of the mesh", pod_hlo_shown(name),
                          scan->text + name.begin);
    }
    if (st == POD_OK && axes->part_size[axis] != 0) {
        st = pod_hlo_fail(scan, name.begin, "an axis is named twice");
    }
    if (st != POD_OK) {
        return st;
    }
    axes->chosen[axes->nchosen++] = axis;
    axes->part_major[axis] = 1;
    axes->part_size[axis] = axes->size[axis];
    if (!pod_hlo_take(scan, ':')) {
        return POD_OK;
    }
    int count = 0;
    const uint32_t at = scan->at;
    st = pod_hlo_numbers(scan, '(', "what comes before a part", POD_HLO_PARTITIONS_MAX,
                         &axes->part_major[axis], 1, &count);
    POD_THEN(st, pod_hlo_number(scan, "a part of an axis", POD_HLO_PARTITIONS_MAX,
                                &axes->part_size[axis]));
    const int64_t product = axes->part_major[axis] * axes->part_size[axis];
    if (st == POD_OK && (count != 1 || product == 0 || axes->size[axis] % product != 0)) {
        st = pod_hlo_fail(scan, at, "a part that doesn't divide its axis");
    }
    return st;
}

/* Dims: of each axis what comes before its part, the part, and the rest. Groups are numbered over
 * all that no group spans, ranks over the chosen parts in their order. */
static pod_status mesh_shuffle(const pod_hlo_scan *scan, uint32_t at, const mesh_axes *axes,
                               pod_hlo_groups *group, pod_hlo_shuffle *shuffle)
{
    int64_t sizes[3 * POD_HLO_SHUFFLE_MAX];
    int64_t order[3 * POD_HLO_SHUFFLE_MAX];
    int place[POD_HLO_SHUFFLE_MAX] = {0};
    int count = 0;
    int norder = 0;
    for (int i = 0; i < axes->count; i++) {
        const bool spans = axes->part_size[i] > 0;
        const bool part = spans && axes->part_size[i] < axes->size[i];
        const int64_t whole[3] = {
            part ? axes->part_major[i] : 1, spans ? axes->part_size[i] : 1,
            !spans ? axes->size[i] : axes->size[i] / (axes->part_size[i] * axes->part_major[i])};
        for (int k = 0; k < 3; k++) {
            place[i] = k == 1 ? count : place[i];
            if (whole[k] != 1 || (k == 1 && spans)) {
                if (k != 1) {
                    order[norder++] = count;
                }
                sizes[count++] = whole[k];
            }
        }
    }
    group->size = 1;
    for (int i = 0; i < axes->nchosen; i++) {
        order[norder++] = place[axes->chosen[i]];
        group->size *= (int32_t)axes->part_size[axes->chosen[i]];
    }
    if (count > POD_HLO_SHUFFLE_MAX) {
        return pod_hlo_fail_limit(scan, at, "axes of a mesh", POD_HLO_SHUFFLE_MAX);
    }
    return shuffle_of(scan, at, sizes, order, count, shuffle);
}

static pod_status take_mesh_groups(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                                   pod_hlo_groups *group, pod_hlo_shuffle shuffle[2])
{
    mesh_axes axes = {.count = 0};
    const uint32_t at = scan->at;
    pod_status st = take_mesh(pool, scan, range, &axes);
    if (st == POD_OK && pod_hlo_take(scan, ',')) {
        st = take_devices(pool, scan, range, group, &shuffle[0]);
    }
    POD_THEN(st, pod_hlo_expect(scan, '{', "the axes of groups"));
    if (st == POD_OK && !pod_hlo_take(scan, '}')) {
        do {
            st = take_chosen(scan, &axes);
        } while (st == POD_OK && pod_hlo_take(scan, ','));
        POD_THEN(st, pod_hlo_expect(scan, '}', "the axes of groups"));
    }
    POD_THEN(st, mesh_shuffle(scan, at, &axes, group, &shuffle[1]));
    group->count = st == POD_OK ? (int32_t)range / group->size : 0;
    return st;
}

/* ---- what the numbers are ---- */

/* Collectives whose channel alone doesn't say it. */
static bool has_global_ids(const pod_hlo_instruction *collective)
{
    return collective->opcode == POD_HLO_ALL_REDUCE || collective->opcode == POD_HLO_ALL_GATHER
           || collective->opcode == POD_HLO_REDUCE_SCATTER;
}

static pod_hlo_numbering numbers_of(const pod_hlo_module *module,
                                    const pod_hlo_instruction *collective)
{
    pod_hlo_span channel;
    if (!pod_hlo_attribute_of(module, collective, POD_HLO_AT_CHANNEL, &channel)) {
        return POD_HLO_REPLICAS;
    }
    if (!has_global_ids(collective)) {
        return POD_HLO_PARTITIONS;
    }
    return pod_hlo_attribute_is(module, collective, POD_HLO_AT_GLOBAL_IDS, "true")
               ? POD_HLO_DEVICES
               : POD_HLO_WHOLE_REPLICAS;
}

static int64_t range_of(const pod_hlo_module *module, pod_hlo_numbering numbers)
{
    switch (numbers) {
    case POD_HLO_REPLICAS:
    case POD_HLO_WHOLE_REPLICAS:
        return module->replicas;
    case POD_HLO_PARTITIONS:
        return module->partitions;
    case POD_HLO_DEVICES:
        break;
    }
    return module->devices;
}

static const char *noun_of(const pod_hlo_module *module, pod_hlo_numbering numbers)
{
    if (numbers == POD_HLO_DEVICES) {
        return module->replicas == 1     ? "a partition"
               : module->partitions == 1 ? "a replica"
                                         : "a device";
    }
    return numbers == POD_HLO_PARTITIONS ? "a partition" : "a replica";
}

/* Numbers that were read before, or a place for them in number_of. */
static pod_status find_text(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                            pod_hlo_span value, pod_hlo_numbering numbers, uint32_t **number,
                            pod_error *err)
{
    uint32_t text = 0;
    const uint32_t known = pool->text.count;
    pod_status st = pod_hlo_intern(&pool->text, module->text, value, &text, err);
    POD_THEN(st, pod_hlo_reserve(&pool->number_of, &pool->numbers_capacity,
                                 (uint64_t)pool->text.count * POD_HLO_NUMBERINGS,
                                 sizeof *pool->number_of, err));
    if (st != POD_OK) {
        return st;
    }
    *number = &pool->number_of[(size_t)text * POD_HLO_NUMBERINGS];
    if (text == known) {
        memset(*number, 0, POD_HLO_NUMBERINGS * sizeof **number);
    }
    *number += numbers;
    return POD_OK;
}

/* Read numbers as those of devices where one of replicas and partitions is single, else, or where they don't fit, as
 * what the attributes say. */
static pod_status read_numbers(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                               const pod_hlo_instruction *collective, pod_hlo_span value,
                               pod_status (*read)(pod_hlo_groups_pool *pool,
                                                  const pod_hlo_module *module, pod_hlo_span value,
                                                  pod_hlo_numbering numbers, uint32_t *number,
                                                  pod_error *err),
                               uint32_t *number, pod_error *err)
{
    const pod_hlo_numbering said = numbers_of(module, collective);
    const bool single = module->replicas == 1 || module->partitions == 1;
    const uint32_t nids = pool->nids;
    pod_error other = {0};
    if (!single) {
        return read(pool, module, value, said, number, err);
    }
    const pod_status st = read(pool, module, value, POD_HLO_DEVICES, number, err);
    if (st != POD_E_INVALID || said == POD_HLO_DEVICES) {
        return st;
    }
    pool->nids = nids;
    return read(pool, module, value, said, number, &other) == POD_OK ? POD_OK : st;
}

/* ---- a value ---- */

static pod_status keep(pod_hlo_groups_pool *pool, pod_hlo_groups *group,
                       const pod_hlo_shuffle shuffle[2], pod_error *err)
{
    if (shuffle[0].ndims > 0 || shuffle[1].ndims > 0) {
        group->shuffles = pool->nshuffles;
        POD_TRY(pod_hlo_reserve(&pool->shuffle, &pool->shuffles_capacity,
                                (uint64_t)pool->nshuffles + 2, sizeof *pool->shuffle, err));
    }
    if (group->shuffles != POD_HLO_NONE) {
        memcpy(&pool->shuffle[pool->nshuffles], shuffle, 2 * sizeof *shuffle);
        pool->nshuffles += 2;
    }
    POD_TRY(pod_hlo_reserve(&pool->group, &pool->groups_capacity, (uint64_t)pool->ngroups + 1,
                            sizeof *pool->group, err));
    pool->group[pool->ngroups++] = *group;
    return POD_OK;
}

/* From the list to devices. */
static void spread(const pod_hlo_module *module, pod_hlo_numbering numbers, pod_hlo_groups *group)
{
    const int32_t replicas = (int32_t)module->replicas;
    const int32_t partitions = (int32_t)module->partitions;
    group->numbers = (uint8_t)numbers;
    group->list_size = group->size;
    group->partitions = partitions;
    group->size *= numbers == POD_HLO_WHOLE_REPLICAS ? partitions : 1;
    group->count *= numbers == POD_HLO_REPLICAS     ? partitions
                    : numbers == POD_HLO_PARTITIONS ? replicas
                                                    : 1;
}

static pod_status read_groups(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                              pod_hlo_span value, pod_hlo_numbering numbers, uint32_t *group,
                              pod_error *err)
{
    uint32_t *known = NULL;
    pod_status st = find_text(pool, module, value, numbers, &known, err);
    if (st != POD_OK || *known > 0) {
        *group = st == POD_OK ? *known - 1 : 0;
        return st;
    }
    const int64_t range = range_of(module, numbers);
    const bool given = value.end > value.begin;
    pod_hlo_shuffle shuffle[2] = {{.ndims = 0}, {.ndims = 0}};
    pod_hlo_groups made = {
        .size = (int32_t)range, .count = 1, .shuffles = POD_HLO_NONE, .ids = POD_HLO_NONE};
    pod_hlo_scan scan = pod_hlo_part(module, value, err);
    pool->what = noun_of(module, numbers);
    if (given && pod_hlo_peek(&scan) == '[') {
        st = take_iota(pool, &scan, range, &made, &shuffle[0]);
    } else if (given && pod_hlo_peek(&scan) != '{') {
        if (!pod_hlo_begins(module->text, value, "mesh")) {
            return pod_hlo_fail(&scan, value.begin, "replica_groups of no form that is known");
        }
        st = take_mesh_groups(pool, &scan, range, &made, shuffle);
    } else if (given) {
        (void)pod_hlo_take(&scan, '{');
        if (!pod_hlo_take(&scan, '}')) {
            made.count = 0;
            st = take_lists(pool, &scan, range, &made);
        }
    }
    POD_THEN(st, pod_hlo_end(&scan, "replica_groups"));
    if (st == POD_OK) {
        spread(module, numbers, &made);
        st = keep(pool, &made, shuffle, err);
    }
    if (st == POD_OK) {
        *group = pool->ngroups - 1;
        *known = pool->ngroups;
    }
    return st;
}

/* As in XLA (GetCollectiveOpGroupMode), ids of devices go with a channel. */
static pod_status check_channel(const pod_hlo_module *module, const pod_hlo_instruction *collective,
                                pod_error *err)
{
    pod_hlo_span channel;
    pod_hlo_span global;
    if (!has_global_ids(collective)
        || !pod_hlo_attribute_is(module, collective, POD_HLO_AT_GLOBAL_IDS, "true")
        || !pod_hlo_attribute_of(module, collective, POD_HLO_AT_GLOBAL_IDS, &global)
        || pod_hlo_attribute_of(module, collective, POD_HLO_AT_CHANNEL, &channel)) {
        return POD_OK;
    }
    const pod_hlo_scan scan = pod_hlo_part(module, global, err);
    return pod_hlo_fail(&scan, global.begin,
                        "use_global_device_ids=true without channel_id; ids of devices need a "
                        "channel_id, without either they are ids of replicas");
}

pod_status pod_hlo_groups_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                               const pod_hlo_instruction *collective, uint32_t *group,
                               pod_error *err)
{
    pod_hlo_span value = {0};
    POD_TRY(check_channel(module, collective, err));
    (void)pod_hlo_attribute_of(module, collective, POD_HLO_AT_GROUPS, &value);
    return read_numbers(pool, module, collective, value, read_groups, group, err);
}

/* "{0,1}" and so on, of which the outer brackets aren't taken. */
static pod_status take_pairs(pod_hlo_groups_pool *pool, pod_hlo_scan *scan, int64_t range,
                             pod_hlo_pairs *made)
{
    pod_status st = new_list(pool, range, scan->err);
    POD_THEN(st, pod_hlo_expect(scan, '{', "source_target_pairs"));
    bool more = st == POD_OK && pod_hlo_peek(scan) != '}';
    while (st == POD_OK && more) {
        st = pod_hlo_expect(scan, '{', "a pair");
        POD_THEN(st, take_id(pool, scan, range, false));
        POD_THEN(st, pod_hlo_expect(scan, ',', "a pair"));
        POD_THEN(st, take_id(pool, scan, range, true));
        POD_THEN(st, pod_hlo_expect(scan, '}', "a pair"));
        made->count++;
        more = pod_hlo_take(scan, ',');
    }
    POD_THEN(st, pod_hlo_expect(scan, '}', "source_target_pairs"));
    return st == POD_OK ? pod_hlo_end(scan, "source_target_pairs") : st;
}

/* From pairs of replicas or partitions, each other by itself, to pairs of devices. */
static pod_status spread_pairs(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                               pod_hlo_numbering numbers, pod_hlo_pairs *made, pod_error *err)
{
    const int32_t partitions = (int32_t)module->partitions;
    const bool replicas = numbers == POD_HLO_REPLICAS;
    const int64_t times = replicas ? module->partitions : module->replicas;
    const uint32_t listed = 2 * made->count;
    if (numbers == POD_HLO_DEVICES || times == 1) {
        return POD_OK;
    }
    POD_TRY(pod_hlo_reserve(&pool->id, &pool->ids_capacity,
                            pool->nids + (uint64_t)listed * (uint64_t)(times - 1), sizeof *pool->id,
                            err));
    for (int32_t k = (int32_t)times - 1; k >= 0; k--) {
        for (uint32_t i = 0; i < listed; i++) {
            const int32_t id = pool->id[made->ids + i];
            pool->id[made->ids + (uint32_t)k * listed + i] =
                replicas ? id * partitions + k : k * partitions + id;
        }
    }
    pool->nids = made->ids + listed * (uint32_t)times;
    made->count *= (uint32_t)times;
    return POD_OK;
}

static pod_status read_pairs(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                             pod_hlo_span value, pod_hlo_numbering numbers, uint32_t *pairs,
                             pod_error *err)
{
    uint32_t *known = NULL;
    pod_status st = find_text(pool, module, value, numbers, &known, err);
    if (st != POD_OK || *known > 0) {
        *pairs = st == POD_OK ? *known - 1 : 0;
        return st;
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, err);
    pod_hlo_pairs made = {.ids = pool->nids};
    pool->what = noun_of(module, numbers);
    st = take_pairs(pool, &scan, range_of(module, numbers), &made);
    POD_THEN(st, spread_pairs(pool, module, numbers, &made, err));
    POD_THEN(st, pod_hlo_reserve(&pool->pairs, &pool->pairs_capacity, (uint64_t)pool->npairs + 1,
                                 sizeof *pool->pairs, err));
    if (st == POD_OK) {
        *pairs = pool->npairs;
        pool->pairs[pool->npairs++] = made;
        *known = pool->npairs;
    }
    return st;
}

pod_status pod_hlo_pairs_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                              const pod_hlo_instruction *permute, uint32_t *pairs, pod_error *err)
{
    pod_hlo_span value = {0};
    if (!pod_hlo_attribute_of(module, permute, POD_HLO_AT_PAIRS, &value)) {
        return pod_hlo_fail_instruction(module, permute, err,
                                        "a permute without source_target_pairs");
    }
    return read_numbers(pool, module, permute, value, read_pairs, pairs, err);
}

/* ---- devices ---- */

static int64_t unshuffle(const pod_hlo_shuffle *shuffle, int64_t position)
{
    if (shuffle->ndims == 0) {
        return position;
    }
    int64_t before = 0;
    for (int i = shuffle->ndims - 1; i >= 0; i--) {
        before += position % shuffle->size[i] * shuffle->stride[i];
        position /= shuffle->size[i];
    }
    return before;
}

/* The number at a position of the list. */
static int64_t listed(const pod_hlo_groups_pool *pool, const pod_hlo_groups *groups,
                      int64_t position)
{
    if (groups->shuffles != POD_HLO_NONE) {
        position = unshuffle(&pool->shuffle[groups->shuffles + 1], position);
        position = unshuffle(&pool->shuffle[groups->shuffles], position);
    }
    return groups->ids != POD_HLO_NONE ? pool->id[groups->ids + position] : position;
}

int32_t pod_hlo_groups_device(const pod_hlo_groups_pool *pool, uint32_t group, int64_t position)
{
    const pod_hlo_groups *groups = &pool->group[group];
    const int64_t partitions = groups->partitions;
    const int64_t size = groups->list_size;
    int64_t device = 0;
    switch ((pod_hlo_numbering)groups->numbers) {
    case POD_HLO_DEVICES:
        device = listed(pool, groups, position);
        break;
    case POD_HLO_REPLICAS: {
        const int64_t place = position / size; /* groups of partition 0, 1, … lie together */
        device = listed(pool, groups, place / partitions * size + position % size) * partitions
                 + place % partitions;
        break;
    }
    case POD_HLO_PARTITIONS:
        device = position / partitions * partitions + listed(pool, groups, position % partitions);
        break;
    case POD_HLO_WHOLE_REPLICAS:
        device = listed(pool, groups, position / partitions) * partitions + position % partitions;
        break;
    }
    return (int32_t)device;
}

void pod_hlo_groups_list(const pod_hlo_groups_pool *pool, uint32_t group, int32_t *devices)
{
    const int64_t n = (int64_t)pool->group[group].size * pool->group[group].count;
    for (int64_t i = 0; i < n; i++) {
        devices[i] = pod_hlo_groups_device(pool, group, i);
    }
}
