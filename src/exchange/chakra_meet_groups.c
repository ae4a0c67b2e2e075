/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of traces as groups of chips: whole axes, or sets that are cut the same way. */
#include "exchange/chakra_build.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { MASKS = 1 << (POD_AXES + 1), NOT_MADE = -2 };

/* ---- whole axes ---- */

static const pod_slice *slice_of(const chakra_builder *b)
{
    return b->options->slice;
}

static unsigned whole_mask(const chakra_builder *b)
{
    const pod_slice *slice = slice_of(b);
    unsigned mask = slice->nslices > 1 ? 1U << POD_AXES : 0U;
    for (int axis = 0; axis < slice->naxes; axis++) {
        mask |= slice->dims[axis] > 1 ? 1U << axis : 0U;
    }
    return mask;
}

/* The axes of a size above 1 that a node names, and bit POD_AXES for the slices. */
static pod_status mask_of(const chakra_builder *b, int64_t place, unsigned *mask)
{
    const pod_slice *slice = slice_of(b);
    const pod_chakra_node *node = chakra_node(b, place);
    /* the slices come after the axes that the chips have, or after three */
    const int32_t slices_at = node->ndims > slice->naxes + 1 ? POD_AXES : slice->naxes;
    *mask = 0;
    if (node->ndims > POD_AXES + 1
        && node->dims == UINT32_MAX >> (POD_CHAKRA_DIMS_MAX - node->ndims)) {
        *mask = whole_mask(b); /* one for each chip, as some writers have it: all */
        return POD_OK;
    }
    for (int32_t i = 0; i < node->ndims; i++) {
        const bool is_axis = i < slices_at;
        const int32_t size = is_axis ? (i < slice->naxes ? slice->dims[i] : 1)
                                     : (i == slices_at ? slice->nslices : 0);
        if ((node->dims >> i & 1U) != 0 && size == 0) {
            return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, place), node,
                                   "involved_dim has dimension %d; %s has %d axes, and then come "
                                   "the slices",
                                   (int)i, slice->name, slice->naxes);
        }
        *mask |= (node->dims >> i & 1U) != 0 && size > 1 ? 1U << (is_axis ? i : POD_AXES) : 0U;
    }
    return POD_OK;
}

/* Join groups of one slice over slices. @param inside  gone afterwards; slices NULL = all */
static pod_status group_join(chakra_builder *b, pod_group *inside, const int32_t *slices,
                             int32_t span, int32_t *number)
{
    pod_group group;
    pod_status st =
        pod_group_init_slices(&group, inside, slice_of(b)->nslices, slices, span, b->err);
    pod_group_fini(inside);
    POD_TRY(st);
    st = pod_programs_group(b->programs, &group, number, b->err);
    if (st == POD_OK) {
        memcpy(b->programs->groups[*number].axes, "dcn", sizeof "dcn");
    }
    return st;
}

static pod_status mask_group(chakra_builder *b, unsigned mask, int32_t *number)
{
    pod_group inside;
    POD_TRY(pod_group_init_axes(&inside, slice_of(b), mask & ((1U << POD_AXES) - 1), b->err));
    return (mask >> POD_AXES & 1U) != 0 ? group_join(b, &inside, NULL, slice_of(b)->nslices, number)
                                        : pod_programs_group(b->programs, &inside, number, b->err);
}

pod_status pod_chakra_all_chips(chakra_builder *b, bool inside, int32_t *group)
{
    const unsigned mask = whole_mask(b);
    return mask_group(b, inside ? mask & ((1U << POD_AXES) - 1) : mask, group);
}

/* ---- sets of chips ---- */

/* A group that a trace defines, as chips of a slice and slices. */
typedef struct chip_set {
    int32_t *chips; /* chips[size] of a slice */
    int32_t size;
    int32_t *slices; /* slices[span]; of one that spans one slice it may be any */
    int32_t span;
    bool ordered;
    int64_t set; /* the set of groups that it belongs to */
} chip_set;

static void chip_set_fini(chip_set *set)
{
    free(set->chips);
    free(set->slices);
}

static int chip_before(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a;
    const int32_t y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static bool has(const int32_t *list, int32_t count, int32_t value)
{
    for (int32_t i = 0; i < count; i++) {
        if (list[i] == value) {
            return true;
        }
    }
    return false;
}

static pod_status chip_set_of(const chakra_builder *b, int64_t pg, chip_set *set)
{
    const pod_chakra_group *group = &b->groups->list[pg];
    const int32_t nchips = slice_of(b)->nchips;
    const int32_t count = group->nchips;
    set->chips = calloc((size_t)count, sizeof *set->chips);
    set->slices = calloc((size_t)count, sizeof *set->slices);
    if (set->chips == NULL || set->slices == NULL) {
        return chakra_no_memory(b);
    }
    for (int32_t i = 0; i < count; i++) {
        if (group->chips[i] >= b->nchips) {
            return pod_fail(b->err, POD_E_INVALID, "group \"%s\" has chip %d; %s has chips 0 to %d",
                            group->name, (int)group->chips[i], slice_of(b)->name,
                            (int)b->nchips - 1);
        }
        if (!has(set->slices, set->span, group->chips[i] / nchips)) {
            set->slices[set->span++] = group->chips[i] / nchips;
        }
        if (group->chips[i] / nchips == set->slices[0]) {
            set->chips[set->size++] = group->chips[i] % nchips;
        }
    }
    bool same = (int64_t)set->size * set->span == count;
    for (int32_t i = 0; i < count; i++) {
        same = same && has(set->chips, set->size, group->chips[i] % nchips);
    }
    if (!same) {
        return pod_fail(b->err, POD_E_INVALID,
                        "group \"%s\" has other chips in one slice than in another; podsim runs "
                        "groups with the same chips of each slice",
                        group->name);
    }
    set->ordered = b->graphs[0].lists;
    if (!set->ordered) {
        qsort(set->chips, (size_t)set->size, sizeof *set->chips, chip_before);
    }
    return POD_OK;
}

static bool same_list(const int32_t *a, const int32_t *b, int32_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static bool meets(const int32_t *a, const int32_t *b, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (has(b, count, a[i])) {
            return true;
        }
    }
    return false;
}

/* Can both be groups of one set? */
static bool go_together(const chip_set *a, const chip_set *b)
{
    return a->size == b->size && a->span == b->span && a->ordered == b->ordered
           && (same_list(a->chips, b->chips, a->size) || !meets(a->chips, b->chips, a->size))
           && (a->span == 1 || same_list(a->slices, b->slices, a->span)
               || !meets(a->slices, b->slices, a->span));
}

/* The lists of a set of groups, each once. @param lists  room for all */
static int32_t lists_of(const chip_set *sets, int64_t count, int64_t set, bool slices,
                        int32_t *lists)
{
    int32_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t *list = slices ? sets[i].slices : sets[i].chips;
        const int32_t size = slices ? sets[i].span : sets[i].size;
        bool known = sets[i].set != set;
        for (int32_t k = 0; k < n && !known; k++) {
            known = same_list(lists + (ptrdiff_t)k * size, list, size);
        }
        if (!known) {
            memcpy(lists + (ptrdiff_t)n * size, list, (size_t)size * sizeof *list);
            n++;
        }
    }
    return n;
}

/* Slices that no group names go together in the order of their numbers. */
static void slices_complete(int32_t *lists, int32_t named, int32_t nslices)
{
    for (int32_t slice = 0; slice < nslices; slice++) {
        if (!has(lists, named, slice)) {
            lists[named++] = slice;
        }
    }
}

/* The program group of a set of groups. @param room  room[chips and slices of all] */
static pod_status set_group(chakra_builder *b, const chip_set *sets, int64_t count, int64_t set,
                            int32_t *room, int32_t *number)
{
    const pod_slice *slice = slice_of(b);
    const chip_set *first = &sets[set];
    pod_group inside;
    const int32_t n = lists_of(sets, count, set, false, room);
    POD_TRY(pod_group_init_some(&inside, slice, room, n, first->size, first->ordered, b->err));
    if (first->span == 1) {
        return pod_programs_group(b->programs, &inside, number, b->err);
    }
    if (inside.count * inside.size != slice->nchips) {
        pod_group_fini(&inside);
        return pod_fail(
            b->err, POD_E_INVALID,
            "group \"%s\" spans slices with chips that are no part of a grid; podsim runs "
            "groups over slices of whole axes, or parts of them",
            b->groups->list[set].name);
    }
    const int32_t named = lists_of(sets, count, set, true, room) * first->span;
    if (slice->nslices % first->span != 0) {
        pod_group_fini(&inside);
        return pod_fail(b->err, POD_E_INVALID,
                        "group \"%s\" spans %d of %d slices; podsim runs groups over a number that "
                        "divides them",
                        b->groups->list[set].name, (int)first->span, slice->nslices);
    }
    slices_complete(room, named, slice->nslices);
    return group_join(b, &inside, room, first->span, number);
}

/* Put each group into the first set that it goes together with, one after the other. */
static void sets_divide(chip_set *sets, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sets[i].set = i;
        for (int64_t set = 0; set < i && sets[i].set == i && sets[i].size > 0; set++) {
            bool fits = sets[set].set == set;
            for (int64_t k = set; k < i && fits; k++) {
                fits = sets[k].set != set || go_together(&sets[i], &sets[k]);
            }
            sets[i].set = fits ? set : i;
        }
    }
}

static pod_status groups_make(chakra_builder *b, chip_set *sets, int32_t *room)
{
    const int64_t count = b->groups->count;
    for (int64_t i = 0; i < count; i++) {
        if (b->groups->list[i].nchips > 0) {
            POD_TRY(chip_set_of(b, i, &sets[i]));
        }
    }
    sets_divide(sets, count);
    for (int64_t i = 0; i < count; i++) {
        if (b->groups->list[i].nchips == 0) {
            POD_TRY(pod_chakra_all_chips(b, false, &b->group_of[i]));
        } else if (b->groups->list[i].nchips == 1) {
            POD_TRY(mask_group(b, 0, &b->group_of[i]));
        } else if (sets[i].set == i) {
            POD_TRY(set_group(b, sets, count, i, room, &b->group_of[i]));
        } else {
            b->group_of[i] = b->group_of[sets[i].set];
        }
    }
    return POD_OK;
}

pod_status pod_chakra_keys(chakra_builder *b)
{
    const size_t count = (size_t)b->groups->count;
    size_t room_needed = (size_t)slice_of(b)->nslices + 1;
    for (size_t i = 0; i < count; i++) {
        room_needed += (size_t)b->groups->list[i].nchips;
    }
    b->group_of = calloc(count + MASKS, sizeof *b->group_of);
    chip_set *sets = calloc(count + 1, sizeof *sets);
    int32_t *room = calloc(room_needed, sizeof *room);
    pod_status st =
        b->group_of != NULL && sets != NULL && room != NULL ? POD_OK : chakra_no_memory(b);
    if (st == POD_OK) {
        for (size_t i = 0; i < count + MASKS; i++) {
            b->group_of[i] = NOT_MADE;
        }
        st = groups_make(b, sets, room);
    }
    for (size_t i = 0; sets != NULL && i < count; i++) {
        chip_set_fini(&sets[i]);
    }
    free(sets);
    free(room);
    return st;
}

pod_status pod_chakra_key(chakra_builder *b, int64_t place, chakra_key *key)
{
    const pod_chakra_node *node = chakra_node(b, place);
    const pod_chakra_graph *graph = chakra_graph(b, place);
    const int32_t chip = b->chip_of[place];
    const char *name = pod_chakra_text(graph, node->group);
    const int64_t pg = name[0] != '\0' ? pod_chakra_groups_find(b->groups, name) : -1;
    if (pg < 0 && name[0] != '\0' && strcmp(name, "0") != 0) {
        return pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                               "no group \"%s\" is defined, by a metadata node or by --groups",
                               name);
    }
    unsigned mask = whole_mask(b);
    if (pg < 0 && node->ndims >= 0) {
        POD_TRY(mask_of(b, place, &mask));
    }
    key->key = (int32_t)(pg >= 0 ? pg : b->groups->count + mask);
    if (b->group_of[key->key] == NOT_MADE) {
        POD_TRY(mask_group(b, mask, &b->group_of[key->key]));
    }
    key->group = b->group_of[key->key];
    const pod_chakra_group *group = pg >= 0 ? &b->groups->list[pg] : NULL;
    if (group != NULL && group->nchips > 0 && !has(group->chips, group->nchips, chip)) {
        return pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                               "is a collective of group \"%s\", which chip %d isn't in", name,
                               (int)chip);
    }
    key->root = group != NULL && group->nchips > 0 ? group->chips[0] : -1;
    /* groups inside a slice have the same numbers in all slices */
    const pod_group *chips = &b->programs->groups[key->group].group;
    key->number = pod_group_number(chips, chip)
                  + (chips->slices > 1 ? 0 : chip / slice_of(b)->nchips * chips->count);
    return POD_OK;
}
